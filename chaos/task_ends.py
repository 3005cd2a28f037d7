"""What was told of background work, against what became of it: each end once, by a wake or by `check_background`."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from chaos.evidence import Row, SessionRows
from chaos.ledger import Entry
from chaos.words import CHECK, CHILD, MAY_RUN_AGAIN, VIGIL_SECONDS, notices_of, settlement_of, wake_of

Found = Iterator[tuple[str, str]]

UNKNOWN = "may or may not have taken effect"
_OF_CHILDREN = {"lost": "child_lost", "double_wakes": "child_repeated"}
_HEARS_WITHIN_US = int(VIGIL_SECONDS / 2 * 1_000_000)
"""A tool that ends so long after its cancel was committed has not heard of it."""


def task_faults(
    session: SessionRows, entries: Mapping[str, list[Entry]], outages: Sequence[tuple[int, int]] = ()
) -> Found:
    """Each task ended once, truthfully, and its end was told once if it was to be told."""
    ends = Counter(event.data["task"]["id"] for event in session.events if event.type == "task.ended")
    handles = json.dumps([part["content"] for part in session.parts("tool-return")])
    checks = _ends_in_checks(session)
    for row in session.tasks:
        task_id, lines = row["id"], entries.get(_output_of(row), [])
        if row["ended_at"] is None:
            yield "hanging", f"task {task_id} is {row['state']}"
            continue
        if ends[task_id] != 1:
            yield "untold", f"task {task_id} is {row['state']} with {ends[task_id]} ends"
        if task_id not in handles and _is_of_a_call(row) and not _is_call_unknown(session, row):
            yield "untold", f"nobody was told of task {task_id}"
        yield from _truth(row, lines, outages)
        for kind, what in _told_once(session, row, checks[task_id]):
            yield _OF_CHILDREN.get(kind, kind) if row["kind"] == "session" else kind, what
    known = {row["id"] for row in session.tasks}
    for task_id in checks.keys() - known:
        yield "untold", f"{CHECK} told of {task_id}, which is not there"


def _output_of(row: Row) -> str:
    """The name of a task's lines in the ledger."""
    return row["call_id"] or row["id"]


def _is_of_a_call(row: Row) -> bool:
    return "schedule" not in json.loads(row["links"])


def _is_call_unknown(session: SessionRows, row: Row) -> bool:
    """The call that made it was cut off before it could say so, and that is told."""
    opened_by = json.loads(row["spec"]).get("opened_by")
    call_id = row["call_id"] or opened_by or str(row["key"]).rpartition(":")[2]
    told = [part for part in session.parts("tool-return") if part["tool_call_id"] == call_id]
    return any(part["outcome"] == "interrupted" and "may" in str(part["content"]).lower() for part in told)


def unknown_faults(session: SessionRows, entries: Mapping[str, list[Entry]], deaths: Mapping[int, int]) -> Found:
    """A call that may not run again and was in flight when its worker died is told as just that."""
    tasks = {_output_of(row): row for row in session.tasks}
    ends = {event.data["call_id"]: event for event in session.events if event.type == "call.ended"}
    for call_id in {*tasks, *ends}:
        begun = [line for line in entries.get(call_id, []) if line.phase == "before"]
        if not begun or begun[0].tool in MAY_RUN_AGAIN or begun[0].worker not in deaths:
            continue
        task = tasks.get(call_id)
        if task is not None:
            ended_us, told = task["ended_at"] or 0, str(task["error"])
        else:
            ended_us, told = ends[call_id].at_us, str(ends[call_id].data["part"]["content"])
        was_in_flight = ended_us > deaths[begun[0].worker]
        if was_in_flight != (UNKNOWN in told):
            how = "was in flight" if was_in_flight else "had ended"
            yield "untold", f"{call_id} {how} when its worker died, and is told as {told[:200]}"


def _truth(row: Row, lines: Sequence[Entry], outages: Sequence[tuple[int, int]]) -> Found:
    after = [line for line in lines if line.phase == "after"]
    if row["state"] == "succeeded" and row["kind"] == "call":
        if not after:
            yield "untold", f"task {row['id']} is told as done and was not"
        asked = row["cancel_requested_at"]
        if asked is not None and row["attempt"] == 1 and _went_on(asked, after, outages):
            yield "lost", f"the cancel of {row['id']}, which went on and ended"
    if row["state"] == "canceled" and row["tool"] not in MAY_RUN_AGAIN and after:
        yield "untold", f"task {row['id']} is told as canceled and took effect"
    if any(line.phase == "before" and line.at_us > row["ended_at"] for line in lines):
        yield "repeated", f"task {row['id']} ran again after its end"


def _went_on(asked: int, after: Sequence[Entry], outages: Sequence[tuple[int, int]]) -> bool:
    """It took effect long after its cancel, which could be heard."""
    heard = asked + _HEARS_WITHIN_US
    is_deaf = any(begun <= heard and asked <= over for begun, over in outages)
    return not is_deaf and any(line.at_us > heard for line in after)


def _told_once(session: SessionRows, row: Row, checks: Sequence[tuple[int, Row]]) -> Found:
    """Without being asked, the end is told once; not at all when the model has looked, or a person has spoken."""
    task_id = row["id"]
    wakes = [each for each in session.inputs if each["task_id"] == task_id and each["kind"] == "wake"]
    told_at = _prompts_with(wake_of(task_id), session, but=notices_of(task_id))
    settled_at = _prompts_with(settlement_of(task_id), session)
    is_settled = row.get("settled") is not None
    yield from _settled_once(session, task_id, settled_at, is_settled=is_settled)
    if len(told_at) > 1 or len(wakes) > 1:
        yield "double_wakes", f"the end of {task_id} was told {len(told_at)} times, in {len(wakes)} inputs"
    if row["wake"] == "silent":
        if wakes:
            yield "double_wakes", f"the silent {task_id} woke its session"
    elif not told_at:
        is_kept = session.is_held and any(each["state"] == "waiting" for each in wakes)
        was_withdrawn = any(each["state"] == "withdrawn" for each in wakes)
        if not is_kept and not (was_withdrawn and (checks or is_settled)):
            yield "lost", f"the wake of {task_id}"
    elif any(position < told_at[0] for position in (*settled_at, *(position for position, _ in checks))):
        yield "double_wakes", f"the end of {task_id} was told by {CHECK} or settled, and then told by a wake"
    for _, entry in checks:
        result = None if row["result"] is None else json.loads(row["result"])
        error = None if row["error"] is None else json.loads(row["error"])
        if (entry["state"], entry.get("result"), entry.get("error")) != (row["state"], result, error):
            yield "untold", f"{CHECK} told of {task_id} as {entry}, but it is {row['state']}"


def _settled_once(session: SessionRows, task_id: str, settled_at: Sequence[int], *, is_settled: bool) -> Found:
    """What a person said of a task is told once, like any input."""
    sign = settlement_of(task_id)
    waits = any(each["state"] == "waiting" and str(each["text"]).startswith(sign) for each in session.inputs)
    if len(settled_at) > 1 or (settled_at and not is_settled):
        yield "repeated", f"the word about {task_id} was told {len(settled_at)} times, settled: {is_settled}"
    if is_settled and not settled_at and not (waits and session.is_held):
        yield "lost", f"the word about {task_id}"


def _prompts_with(sign: str, session: SessionRows, *, but: re.Pattern[str] | None = None) -> list[int]:
    """The position of each user message that holds these words, as often as it does; `but` is something else."""
    return [
        message["position"]
        for message in session.messages
        for part in message["parts"]
        if part["part_kind"] == "user-prompt"
        for _ in range(str(part["content"]).count(sign) - len(but.findall(str(part["content"])) if but else ()))
    ]


def _ends_in_checks(session: SessionRows) -> dict[str, list[tuple[int, dict[str, Any]]]]:
    """By task, each answer that told its end, with the position of its message."""
    found: dict[str, list[tuple[int, dict[str, Any]]]] = defaultdict(list)
    for message in session.messages:
        for part in message["parts"]:
            if part["part_kind"] == "tool-return" and isinstance(part["content"], dict):
                of_tool = {CHECK: part["content"].get("tasks", []), CHILD: [part["content"]]}
                for entry in of_tool.get(part["tool_name"], []):
                    if entry.get("state") in ("succeeded", "failed", "canceled"):
                        found[entry["task_id"]].append((message["position"], entry))
    return found
