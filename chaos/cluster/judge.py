"""The judge of a cluster: what the judge of one machine says, and who was taken for dead although it lived.

Run as `python -m chaos.cluster.judge FOLDER`; prints as JSON the faults, what was seen, and how long recovery took.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from chaos import evidence
from chaos.evidence import TERMINAL, Evidence, LogEvent, SessionRows
from chaos.judge import KINDS, Fault, judge, seen
from chaos.task_ends import UNKNOWN

ALL_KINDS = (*KINDS, "false_takeovers")
SILENCE_US = 8_500_000
"""A worker may be taken for dead after ten seconds of silence. It says each second that it lives, under load a bit
later than it means to: when it froze, it may have been silent for that long already."""
HANGING_SECONDS = 40.0
"""A reader that hears of an event so late hung: longer than any freeze of the process it reads from."""
GRACE_US = 900_000
"""A worker without its connection may be taken for dead after a second; it may have been seen a bit before."""
_START_US = 5_000_000
_QUIET_US = 3_000_000
"""So long after the start of the database nobody is taken for dead."""
_STALL_US = 8_000_000
"""A message that stalls a worker has done so by then, unless the cluster is overloaded."""
_OF_AN_ATTEMPT = ("turn.", "part.", "response.", "call.")


@dataclass(frozen=True, slots=True)
class Attempt:
    worker_id: str
    at_us: int


@dataclass(frozen=True, slots=True)
class Lives:
    """Which process had which names, when processes died, and when they were frozen."""

    names: Mapping[str, tuple[int, int]]
    """By worker id: the process, and when it took the name."""
    deaths: Mapping[int, tuple[int, int]]
    """By process: when the signal was sent, and when it was surely gone."""
    freezes: Mapping[int, list[tuple[int, int]]]
    cuts: Sequence[tuple[int, int]] = ()
    """From when to when connections were being cut, or the database restarted."""

    def was_away(self, process: int, named_us: int, at_us: int) -> bool:
        """Others could rightly take it for dead: it was, or it stood still for too long since it had its name."""
        if process in self.deaths and self.deaths[process][0] <= at_us:
            return True
        return any(
            to_us >= named_us and self._was_silent(from_us, min(to_us, at_us))
            for from_us, to_us in self.freezes.get(process, [])
        )

    def _was_silent(self, from_us: int, to_us: int) -> bool:
        """A process that stands still is silent; without a connection, which it cannot make anew, it looks dead."""
        if to_us - from_us >= SILENCE_US:
            return True
        return any(
            over_us >= from_us - GRACE_US and to_us - max(begun_us, from_us) >= GRACE_US
            for begun_us, over_us in self.cuts
        )


def lives(folder: Path) -> Lives:
    freezes: dict[int, list[tuple[int, int]]] = {}
    for line in _lines(folder / "freezes.jsonl"):
        freezes.setdefault(line["worker"], []).append((line["from_us"], line["to_us"]))
    return Lives(
        {line["worker_id"]: (line["process"], line["at_us"]) for line in _lines(folder / "names.jsonl")},
        {line["worker"]: (line["asked_us"], line["at_us"]) for line in _lines(folder / "deaths.jsonl")},
        freezes,
        [(line["from_us"], line["done_us"]) for line in _away(folder)],
    )


def takeover_faults(found: Evidence, known: Lives) -> Iterator[Fault]:
    """A turn or a task that went on elsewhere, or was told as left, although its worker lived."""
    entries = found.entries()
    for session_id, session in found.sessions.items():
        for turn_id, attempts in attempts_of(session).items():
            for former, later in pairwise(attempts):
                process, named_us = known.names[former.worker_id]
                if former.worker_id != later.worker_id and not known.was_away(process, named_us, later.at_us):
                    what = f"{turn_id} went from {former.worker_id} (process {process}) to {later.worker_id}"
                    yield Fault("false_takeovers", session_id, what)
        for call_id, what, at_us in _left(session):
            begun = [line for line in entries.get(call_id, []) if line.phase == "before"]
            if begun and not known.was_away(begun[0].worker, 0, at_us):
                what = f"{what} was taken from process {begun[0].worker}, which lived"
                yield Fault("false_takeovers", session_id, what)
    first: dict[int, str] = {}
    for worker_id, (process, at_us) in known.names.items():
        if first.setdefault(process, worker_id) != worker_id and not known.was_away(process, 0, at_us):
            yield Fault("false_takeovers", "", f"process {process} was taken for dead: it is {worker_id} since then")


def _left(session: SessionRows) -> Iterator[tuple[str, str, int]]:
    """Calls and tasks that were taken from a worker: run again, or told as unknown."""
    tasks = {row["call_id"] or row["id"] for row in session.tasks}
    for row in session.tasks:
        if row["attempt"] > 1 or UNKNOWN in str(row["error"]):
            yield row["call_id"] or row["id"], f"task {row['id']}", row["ended_at"] or 0
    for event in session.events:
        if event.type == "call.ended" and event.data["call_id"] not in tasks and UNKNOWN in json.dumps(event.data):
            yield event.data["call_id"], f"call {event.data['call_id']}", event.at_us


def attempts_of(session: SessionRows) -> dict[str, list[Attempt]]:
    """By turn, who claimed it, in order."""
    found: dict[str, list[Attempt]] = {}
    for event in session.events:
        if event.type in ("turn.started", "turn.resumed") and event.turn_id is not None:
            found.setdefault(event.turn_id, []).append(Attempt(event.data["worker_id"], event.at_us))
    return found


def recoveries(found: Evidence, known: Lives) -> Iterator[tuple[int, float]]:
    """The kill, and the seconds from it to the first new event, of each turn that ran on a killed worker."""
    for session in found.sessions.values():
        by_turn: dict[str | None, list[LogEvent]] = {}
        for event in session.events:
            if event.type.startswith(_OF_AN_ATTEMPT):
                by_turn.setdefault(event.turn_id, []).append(event)
        for turn_id, attempts in attempts_of(session).items():
            for attempt in attempts:
                process, _ = known.names[attempt.worker_id]
                if process not in known.deaths:
                    continue
                asked_us, gone_us = known.deaths[process]
                later = [each for each in by_turn[turn_id] if each.at_us > gone_us]
                before = [each for each in by_turn[turn_id] if attempt.at_us < each.at_us <= gone_us]
                has_ended = any(each.type in TERMINAL or each.type == "turn.resumed" for each in before)
                if attempt.at_us <= asked_us and later and not has_ended:
                    yield asked_us, (later[0].at_us - asked_us) / 1_000_000


def is_alone(kill_us: int, seconds: float, faults: Sequence[tuple[int, int]]) -> bool:
    """Whether no fault but the kill itself went on between it and the recovery."""
    to_us = kill_us + int(seconds * 1_000_000)
    return sum(begun <= to_us and over >= kill_us for begun, over in faults) <= 1


def hanging_faults(found: Evidence) -> Iterator[Fault]:
    for reader in found.readers:
        if reader["lags"] and max(reader["lags"]) > HANGING_SECONDS:
            what = f"{reader['reader']} heard of an event after {max(reader['lags'])} s"
            yield Fault("hanging", reader["session"], what)


def exit_faults(folder: Path) -> Iterator[Fault]:
    """A process may give up at its start while the database is away, and at no other time."""
    away = _away(folder)
    for line in _lines(folder / "deaths.jsonl"):
        is_away = any(each["from_us"] <= line["at_us"] <= each["to_us"] + _START_US for each in away)
        if line["by"] != "driver" and not is_away:
            yield Fault("errors", "", f"{line['name']} (process {line['worker']}) ended by itself: {line['by']}")


def _delaying(outages: Sequence[dict[str, Any]]) -> Iterator[tuple[int, int]]:
    """When faults went on that may delay a recovery: not those of processes that only accept."""
    for line in outages:
        kind, from_us, done_us = line["kind"], line["from_us"], line["done_us"]
        if kind == "stall":
            yield from_us, min(done_us, from_us + _STALL_US)
        elif not kind.endswith("api"):
            yield from_us, done_us + (_QUIET_US if kind.startswith("restart") else 0)


def _away(folder: Path) -> list[dict[str, Any]]:
    """When the database, or connections to it, went away."""
    return [line for line in _lines(folder / "outages.jsonl") if line["kind"].startswith(("restart", "cut"))]


def verdict(folder: Path) -> dict[str, Any]:
    found = evidence.read(folder)
    known = lives(folder)
    outages = _lines(folder / "outages.jsonl")
    found.outages = [(line["from_us"], line["to_us"]) for line in outages]
    found.freezes = known.freezes
    found.readers = _whole(found.readers)
    # A process that was frozen may have lost what it ran long before it died.
    found.deaths = {process: at_us for process, at_us in found.deaths.items() if process not in known.freezes}
    faults = [*judge(found), *takeover_faults(found, known), *hanging_faults(found), *exit_faults(folder)]
    recovered = list(recoveries(found, known))
    others = list(_delaying(outages))
    ended = [event.at_us for each in found.sessions.values() for event in each.events if event.type in TERMINAL]
    return {
        "faults": [asdict(fault) for fault in faults],
        "seen": seen(found),
        "recoveries": sorted(seconds for _, seconds in recovered),
        "recoveries_alone": sorted(seconds for at_us, seconds in recovered if is_alone(at_us, seconds, others)),
        "lags": sorted(lag for reader in found.readers for lag in reader["lags"]),
        "turn_ends_us": sorted(ended),
        "messages_us": sorted(
            row["created_at"] for each in found.sessions.values() for row in each.inputs if row["kind"] == "message"
        ),
    }


def _whole(pieces: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each reader once, with all it was told."""
    found: dict[str, dict[str, Any]] = {}
    for each in pieces:
        known = found.setdefault(each["reader"], each)
        if known is not each:
            known["events"] += each["events"]
            known["lags"] += each["lags"]
    return list(found.values())


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


if __name__ == "__main__":
    print(json.dumps(verdict(Path(sys.argv[1]))))
