"""The judge: a process that was not there, and says what of a round was lost, repeated, hanging or untold.

Run as `python -m chaos.judge FOLDER`; prints as JSON the faults it found, and how much it has seen.
"""

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from chaos import evidence, streams, task_ends
from chaos.evidence import TERMINAL, Evidence, LogEvent, Row, SessionRows
from chaos.fire_judge import FIRE_KINDS, fire_faults, fires_seen
from chaos.ledger import Entry
from chaos.words import CONTROLS, MAY_RUN_AGAIN, OUTLASTS_ITS_BUDGET, OUTSIDE, plans_in, result_of, wake_of
from chaos.work_judge import WORK_KINDS, work_faults, work_seen

KINDS = (
    "lost",
    "repeated",
    "double_wakes",
    "hanging",
    "untold",
    "streams",
    "runners",
    "errors",
    *WORK_KINDS,
    *FIRE_KINDS,
)
_UNEXPECTED = ("ended unexpectedly", "could not be brought to an end", "Traceback (most recent", "turn failed")


@dataclass(frozen=True, slots=True)
class Fault:
    kind: str
    session_id: str
    what: str


def judge(found: Evidence) -> Iterator[Fault]:
    yield from _promises(found)
    entries = found.entries()
    for session_id, session in found.sessions.items():
        checks = (
            _inputs(session),
            _calls(session, entries, found.woke_in),
            task_ends.task_faults(session, entries, found.outages),
            task_ends.unknown_faults(session, entries, found.deaths),
            _turns(session),
            _hold(session),
        )
        for check in checks:
            for kind, what in check:
                yield Fault(kind, session_id, what)
        for what in streams.log_faults(session.events, [part["content"] for part in session.parts("text")]):
            yield Fault("streams", session_id, what)
    for kind, session_id, what in (*work_faults(found), *fire_faults(found)):
        yield Fault(kind, session_id, what)
    yield from _readers(found)
    for line in found.log_lines:
        if any(sign in line for sign in _UNEXPECTED):
            yield Fault("errors", "", line[:500])


def _promises(found: Evidence) -> Iterator[Fault]:
    """What a client was told is so: accepted inputs are kept, stops stop, refusals leave nothing."""
    told = Counter(token for session in found.sessions.values() for token in session.told_tokens())
    for line in found.record:
        session = found.sessions.get(line["session"])
        if session is None:
            yield Fault("lost", line["session"], "the session itself")
            continue
        token = line["token"]
        if line["op"] in ("send", "wake"):
            waits = [row for row in session.inputs if row["idempotency_key"] == token and row["state"] == "waiting"]
            if "refused" in line:
                if told[token]:
                    yield Fault("repeated", line["session"], f"{token} was refused and delivered")
            elif told[token] == 0 and not (waits and session.is_held):
                yield Fault("lost", line["session"], f"{token} was accepted and is not in history")
            elif waits and told[token]:
                yield Fault("repeated", line["session"], f"{token} was delivered and still waits")
        elif line["op"] == "stop" and line.get("answer"):
            turns = [row for row in session.turns if row["id"] == line["answer"]]
            if not turns or turns[0]["ended_at"] is None:
                yield Fault("lost", line["session"], f"the stop of {line['answer']}")
        elif line["op"] == "cancel" and "answer" in line:
            states = [row["state"] for row in session.tasks if row["id"] == token]
            if line["answer"] in ("succeeded", "failed", "canceled") and states != [line["answer"]]:
                yield Fault("lost", line["session"], f"the cancel of {token} ended as {line['answer']}, now {states}")


def _inputs(session: SessionRows) -> Iterator[tuple[str, str]]:
    """Each input stands once in history, in the message it names; none waits where nothing holds it."""
    told = Counter(session.told_tokens())
    places = {message["position"]: json.dumps(message["parts"]) for message in session.messages}
    for row in session.inputs:
        token = next((token for token, _ in plans_in(row["text"])), row["idempotency_key"])
        if told[token] > 1:
            yield ("double_wakes" if row["kind"] == "wake" else "repeated", f"{token} was told {told[token]} times")
        sign = wake_of(row["task_id"]) if row["task_id"] else f"[{token}:"
        if row["kind"] in ("settlement", "request"):
            sign = row["text"].partition("(")[0]
        if row["state"] == "delivered" and sign not in places.get(row["message"], ""):
            yield "lost", f"{sign} is not in message {row['message']}"
        if row["state"] == "waiting" and not session.is_held:
            yield "hanging", f"{sign} waits although nothing holds the session"
    delivered = Counter(each.data["input_id"] for each in session.events if each.type == "input.delivered")
    for row in session.inputs:
        if delivered[row["id"]] != (row["state"] == "delivered"):
            yield "untold", f"{row['id']} has {delivered[row['id']]} delivery events"


def _calls(
    session: SessionRows, entries: dict[str, list[Entry]], woke_in: Callable[[Entry, int], bool]
) -> Iterator[tuple[str, str]]:
    """Each call has one answer, and it is true."""
    returns: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for part in session.parts("tool-return"):
        returns[part["tool_call_id"]].append(part)
    for part in session.parts("retry-prompt"):
        returns[part["tool_call_id"]].append(part)
    ends = {event.data["call_id"]: event for event in reversed(session.events) if event.type == "call.ended"}
    counts = Counter(event.data["call_id"] for event in session.events if event.type == "call.ended")
    asked = Counter(part["tool_call_id"] for part in session.parts("tool-call"))
    for call_id, count in asked.items():
        if count > 1:
            yield "repeated", f"{call_id} was asked for {count} times"
        if len(returns[call_id]) != 1 or counts[call_id] != 1:
            yield "untold", f"{call_id} has {len(returns[call_id])} answers and {counts[call_id]} ends"
            continue
        end, lines = ends[call_id], entries.get(call_id, [])
        yield from _call(call_id, returns[call_id][0], end, lines)
        for what in _late(end, lines, woke_in):
            yield "repeated", what
    for call_id in returns.keys() - asked.keys():
        yield "untold", f"{call_id} was answered and never asked for"


def _is_parked(part: dict[str, Any]) -> bool:
    return part["tool_name"] in OUTLASTS_ITS_BUDGET and "'type': 'background'" in str(part.get("content"))


def _late(end: LogEvent, lines: Sequence[Entry], woke_in: Callable[[Entry, int], bool]) -> Iterator[str]:
    """Effects that came after the call's end was committed; not of one that became a task, which goes on."""
    part, begun = end.data["part"], [line for line in lines if line.phase == "before"]
    late = [] if _is_parked(part) else [line for line in begun if line.at_us > end.at_us]
    is_unknown = task_ends.UNKNOWN in str(part.get("content"))
    if late and not (is_unknown and len(begun) == 1 and woke_in(late[0], end.at_us)):
        yield f"{end.data['call_id']} ran after its end was committed"


def _call(call_id: str, part: dict[str, Any], end: LogEvent, lines: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    before = [line for line in lines if line.phase == "before"]
    after = [line for line in lines if line.phase == "after"]
    outcome, content = part.get("outcome"), part.get("content")
    if len({line.key for line in lines}) > 1:
        yield "repeated", f"{call_id} had several idempotency keys"
    if part["tool_name"] not in MAY_RUN_AGAIN and len(before) > 1:
        yield "repeated", f"{call_id} ran {len(before)} times"
    is_parked = _is_parked(part)
    if end.data["outcome"] != ("parked" if is_parked else outcome) or end.data["part"]["content"] != content:
        yield "untold", f"{call_id} ended as {end.data} and was told as {outcome}: {content}"
    match outcome:
        case "success" if is_parked or part["tool_name"] in CONTROLS:
            pass  # what became of it is told by its task; of a check, it is compared with its tasks
        case "success":
            if part["tool_name"] in OUTSIDE and isinstance(content, dict):
                content = cast(Row, content)["result"]
            if not after or content != result_of(call_id):
                yield "untold", f"{call_id} is told as done ({content}) and was not"
        case "interrupted" if str(content).endswith("It was not run."):
            if lines:
                yield "untold", f"{call_id} is told as not run and began"
        case "interrupted":
            if "may" not in str(content):
                yield "untold", f"{call_id} was interrupted and is told as {content!r}"
        case "failed":
            if part["tool_name"] != "fail" or not after:
                yield "untold", f"{call_id} did not fail and is told as {content!r}"
        case _:
            yield "untold", f"{call_id} is told as {outcome}"


def _turns(session: SessionRows) -> Iterator[tuple[str, str]]:
    """Every turn is over, was ended once, ran by itself, and one attempt after the other."""
    if session.row["turn_id"] is not None:
        yield "hanging", f"the session still points to {session.row['turn_id']}"
    ends = Counter(event.turn_id for event in session.events if event.type in TERMINAL)
    for row in session.turns:
        if row["ended_at"] is None:
            yield "hanging", f"{row['id']} is {row['state']}"
        elif ends[row["id"]] != 1:
            yield "untold", f"{row['id']} is {row['state']} with {ends[row['id']]} terminal events"
        elif not any(each.turn_id == row["id"] and each.type == f"turn.{row['state']}" for each in session.events):
            yield "untold", f"{row['id']} is {row['state']}, but its end says something else"
        if row["state"] == "failed" and json.loads(row["error"])["kind"] != "crash_loop":
            yield "errors", f"{row['id']} failed: {row['error']}"
        attempts = [
            event.data["attempt"]
            for event in session.events
            if event.turn_id == row["id"] and event.type in ("turn.started", "turn.resumed")
        ]
        if attempts != list(range(1, row["attempt"] + 1)):
            yield "runners", f"{row['id']} was claimed as {attempts}, its attempt is {row['attempt']}"
    yield from _usage(session)
    yield from _overlaps(session.events)


def _usage(session: SessionRows) -> Iterator[tuple[str, str]]:
    """What a turn used is what its responses used, whoever ran them."""
    responses = [message for message in session.messages if message["kind"] == "response"]
    for event in session.events:
        if event.type in TERMINAL:
            used = [message["usage"]["output_tokens"] for message in responses if message["turn_id"] == event.turn_id]
            told = event.data["usage"]
            if (told.get("requests", 0), told.get("output_tokens", 0)) != (len(used), sum(used)):
                yield "untold", f"{event.turn_id} used {used}, its end says {told}"


def _overlaps(events: Sequence[LogEvent]) -> Iterator[tuple[str, str]]:
    running: str | None = None
    for event in events:
        if event.type == "turn.queued":
            if running is not None:
                yield "runners", f"{event.turn_id} began while {running} was not over"
            running = event.turn_id
        elif event.type.startswith(("turn.", "part.", "response.", "call.")) and event.turn_id != running:
            yield "runners", f"event {event.number} of {event.turn_id} while {running} was the session's turn"
        if event.type in TERMINAL:
            running = None


def _hold(session: SessionRows) -> Iterator[tuple[str, str]]:
    """While a session is on hold nothing starts a turn."""
    is_held = False
    for event in session.events:
        if event.type in ("session.held", "session.resumed"):
            is_held = event.type == "session.held"
        elif event.type == "turn.queued" and is_held:
            yield "lost", f"{event.turn_id} was started while the session was on hold"


def _readers(found: Evidence) -> Iterator[Fault]:
    for reader in found.readers:
        session = found.sessions[reader["session"]]
        told = [LogEvent(*event) for event in reader["events"]]
        last = told[-1].number if told else reader["after"]
        if last < session.row["last_event"]:
            yield Fault("hanging", reader["session"], f"{reader['reader']} stopped at {last}")
        for what in streams.faults(session.events, reader["after"], told):
            yield Fault("streams", reader["session"], f"{reader['reader']}: {what}")


def seen(found: Evidence) -> Counter[str]:
    """How much there was to judge: a round without any of it would prove nothing."""
    counts: Counter[str] = Counter()
    entries = found.entries()
    for session in found.sessions.values():
        calls = [event for event in session.events if event.type == "call.ended"]
        counts["inputs"] += len(session.inputs)
        counts["turns"] += len(session.turns)
        counts["calls"] += len(calls)
        counts["tasks"] += len(session.tasks)
        counts["tasks canceled"] += sum(row["state"] == "canceled" for row in session.tasks)
        counts["wakes delivered"] += sum(each["state"] == "delivered" for each in session.inputs if each["task_id"])
        counts["wakes withdrawn"] += sum(each["state"] == "withdrawn" for each in session.inputs)
        counts["effects told as unknown"] += sum(
            task_ends.UNKNOWN in said
            for said in (*(str(row["error"]) for row in session.tasks), *(json.dumps(each.data) for each in calls))
        )
        counts["calls begun in the instant of a freeze"] += sum(
            line.phase == "before" and line.at_us > end.at_us and found.woke_in(line, end.at_us)
            for end in calls
            for line in entries.get(end.data["call_id"], [])
        )
    counts["readers"] = len(found.readers)
    return counts + work_seen(found) + fires_seen(found)


def main(folder: Path) -> None:
    found = evidence.read(folder)
    print(json.dumps({"faults": [asdict(fault) for fault in judge(found)], "seen": seen(found)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
