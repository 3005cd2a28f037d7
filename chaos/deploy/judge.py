"""The judge of a deploy: what the judge of one machine says, and whether what could not go on was told truthfully.

Run as `python -m chaos.deploy.judge FOLDER`; prints as JSON the faults, and what was seen.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict
from pathlib import Path
from typing import Any

from chaos import evidence
from chaos.deploy.names import KEPT, REMOVED, RENAMED
from chaos.evidence import Evidence, SessionRows
from chaos.judge import KINDS, Fault, judge, seen
from chaos.task_ends import UNKNOWN

ALL_KINDS = (*KINDS, "untrue_waits", "exits")
NOT_THERE = "is not there"


def wait_faults(waits: Sequence[Mapping[str, Any]]) -> Iterator[Fault]:
    """What waited for an agent that nobody had said so, and nothing else waited or ran."""
    for line in waits:
        told = (line["state"], line["turn_state"], line["no_worker_for"])
        if told != ("queued", "queued", REMOVED):
            yield Fault("untrue_waits", line["session"], f"it waits for {REMOVED}, and is told as {told}")
    if not waits:
        yield Fault("untrue_waits", "", f"nothing waited for {REMOVED}: nothing was shown")


def exit_faults(exits: Sequence[Mapping[str, Any]]) -> Iterator[Fault]:
    """Who is sent away leaves in good order; who comes too late with old code is refused and told why."""
    for line in exits:
        if line["code"] != line["expected"] or line["words"] not in line["said"]:
            yield Fault("exits", "", f"{line['name']} ended with {line['code']}: {line['said'][-300:]}")


def rename_faults(found: Evidence, old: Set[int]) -> Iterator[Fault]:
    """A call that was open under its old name is told, not forgotten, and run by no process but those of the `old`."""
    entries = found.entries()
    shown: Counter[str] = Counter()
    for session_id, session in found.sessions.items():
        if session.row["agent"] != KEPT:
            continue
        for tool, call_id, told in witnesses(session):
            runners = {line.worker for line in entries.get(call_id, [])}
            expected = NOT_THERE if tool == "patrol" else UNKNOWN
            shown[tool] += 1
            if not runners or not runners <= old or expected not in told:
                yield Fault("untold", session_id, f"{tool} {call_id} ran in {runners} and is told as {told[:200]}")
    for tool in ("guard", "patrol"):
        if not shown[tool]:
            yield Fault("untold", "", f"no call of {tool} was open when it became {RENAMED[tool]}: nothing was shown")


def witnesses(session: SessionRows) -> Iterator[tuple[str, str, str]]:
    """The calls that lasted until the deploy: tool, call and what was told of its end."""
    tasks = {row["call_id"]: str(row["error"]) for row in session.tasks}
    for event in session.events:
        if event.type == "call.ended" and event.data["tool"] in ("guard", "patrol"):
            call_id = event.data["call_id"]
            yield event.data["tool"], call_id, tasks.get(call_id, json.dumps(event.data))


def verdict(folder: Path) -> dict[str, Any]:
    found = evidence.read(folder)
    waits, exits = _lines(folder / "waits.jsonl"), _lines(folder / "exits.jsonl")
    old = {line["pid"] for line in exits}
    faults = [*judge(found), *wait_faults(waits), *exit_faults(exits), *rename_faults(found, old)]
    counts = seen(found)
    attempts = [row["attempt"] for session in found.sessions.values() for row in session.turns]
    counts["turns handed over"] = sum(each > 1 for each in attempts)
    counts["turns that waited for the removed agent"] = len(waits)
    counts["open calls of a renamed tool"] = sum(
        1 for each in found.sessions.values() if each.row["agent"] == KEPT for _ in witnesses(each)
    )
    return {"faults": [asdict(each) for each in faults], "seen": counts}


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


if __name__ == "__main__":
    print(json.dumps(verdict(Path(sys.argv[1]))))
