"""The judge of chaos runs can fail: evidence that is sound, and the same evidence with one thing wrong."""

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from chaos.evidence import Evidence, LogEvent, Row, SessionRows
from chaos.judge import judge, seen
from chaos.ledger import Entry
from chaos.words import settlement_of, wake_of

INTERRUPTED = {"kind": "interrupted", "message": "It may or may not have taken effect."}
DEATH = 500
"""When worker 1 died; what happened before was its work, what came after that of worker 2."""


def handle(task_id: str) -> Row:
    return {"type": "background", "task_id": task_id}


def returned(call_id: str, tool: str, content: Any, outcome: str = "success") -> Row:
    part = {"part_kind": "tool-return", "tool_call_id": call_id, "tool_name": tool}
    return {**part, "content": content, "outcome": outcome}


def asked(call_id: str, tool: str) -> Row:
    return {"part_kind": "tool-call", "tool_call_id": call_id, "tool_name": tool}


def prompt(text: str) -> Row:
    return {"part_kind": "user-prompt", "content": text}


CHECKED = {"tasks": [{"task_id": "k1", "state": "succeeded", "result": "m1.0.0 took effect"}]}
WAKE = f"{wake_of('k2')}vigil) failed. Error (interrupted): It may or may not have taken effect."
WORD = f"{settlement_of('k2')}vigil), whose effect was unknown: worked."
UNKNOWN = "This call was running when its process ended. It may or may not have taken effect."
RETURNS = [
    returned("m1.0.0", "survey", handle("k1")),
    returned("m1.0.1", "vigil", handle("k2")),
    returned("m1.1.0", "check_background", CHECKED),
    returned("m1.2.0", "slow", UNKNOWN, "interrupted"),
]
TALK = [
    [prompt("[m1:survey+vigil,check,slow]")],
    [asked("m1.0.0", "survey"), asked("m1.0.1", "vigil")],
    RETURNS[:2],
    [asked("m1.1.0", "check_background")],
    RETURNS[2:3],
    [asked("m1.2.0", "slow")],
    RETURNS[3:],
    [prompt(WAKE)],
    [{"part_kind": "text", "content": "Done."}],
]
"""One turn: two calls are parked, one is waited for, and a third is in flight when the worker dies, as is `vigil`."""


def messages() -> list[Row]:
    """Responses are those of the model: every part in them is a call or a word of its own."""
    rows: list[Row] = []
    for position, parts in enumerate(TALK, 1):
        is_response = parts[0]["part_kind"] in ("tool-call", "text")
        more = {"kind": "response", "usage": {"output_tokens": 1}} if is_response else {"kind": "request"}
        rows.append({"position": position, "turn_id": "t1", "parts": parts, **more})
    return rows


def task(task_id: str, call_id: str, tool: str, state: str, ended_at: int, **values: Any) -> Row:
    row = {"id": task_id, "call_id": call_id, "tool": tool, "state": state, "ended_at": ended_at, "attempt": 1}
    return {
        **row,
        "result": None,
        "error": None,
        "cancel_requested_at": None,
        "wake": "on_terminal",
        "metadata": "{}",
        "kind": "call",
        "origin": "call",
        "spec": "{}",
        "links": "{}",
        "request": None,
        "late_outcome": None,
        "key": None,
        "admitted_at": None,
        "created_at": 0,
        **values,
    }


def given(input_id: str, state: str, message: int | None, **values: Any) -> Row:
    row = {"id": input_id, "state": state, "message": message, "kind": "wake", "task_id": None}
    return {**row, "text": "", "idempotency_key": None, **values}


def log() -> list[LogEvent]:
    text = {"part": "2.1.0", "kind": "text"}
    told: list[tuple[str, int, Row]] = [
        ("turn.queued", 1, {}),
        ("turn.started", 2, {"attempt": 1}),
        ("input.delivered", 3, {"input_id": "i1"}),
        *(("call.ended", 100, _end(part)) for part in RETURNS[:2]),
        ("task.ended", 300, {"task": {"id": "k1"}}),
        ("call.ended", 310, _end(RETURNS[2])),
        ("task.ended", DEATH + 10, {"task": {"id": "k2"}}),
        ("turn.resumed", DEATH + 20, {"attempt": 2}),
        ("call.ended", DEATH + 30, _end(RETURNS[3])),
        ("input.delivered", DEATH + 40, {"input_id": "i3"}),
        ("part.started", DEATH + 50, text),
        ("part.delta", DEATH + 50, {**text, "offset": 0, "text": "Done."}),
        ("part.ended", DEATH + 50, {**text, "length": 5}),
        ("turn.completed", DEATH + 60, {"usage": {"requests": 4, "output_tokens": 4}}),
    ]
    return [LogEvent(number, type_, "t1", data, at) for number, (type_, at, data) in enumerate(told, 1)]


def _end(part: Row) -> Row:
    outcome = "parked" if "'type': 'background'" in str(part["content"]) else part["outcome"]
    return {"call_id": part["tool_call_id"], "outcome": outcome, "part": deepcopy(part)}


def sound() -> Evidence:
    events = log()
    session = SessionRows(
        {"id": "s", "is_held": 0, "turn_id": None, "last_event": len(events)},
        inputs=[
            given("i1", "delivered", 1, kind="message", idempotency_key="m1"),
            given("i2", "withdrawn", None, task_id="k1"),
            given("i3", "delivered", 8, task_id="k2"),
        ],
        turns=[{"id": "t1", "state": "completed", "ended_at": DEATH + 60, "error": None, "attempt": 2}],
        tasks=[
            task("k1", "m1.0.0", "survey", "succeeded", 300, result=json.dumps("m1.0.0 took effect")),
            task("k2", "m1.0.1", "vigil", "failed", DEATH + 10, error=json.dumps(INTERRUPTED)),
        ],
        messages=deepcopy(messages()),
        events=events,
    )
    ledger = [
        Entry("m1.0.0", "a", "survey", "before", 1, 90),
        Entry("m1.0.0", "a", "survey", "after", 1, 290),
        Entry("m1.0.1", "b", "vigil", "before", 1, 90),
        Entry("m1.2.0", "c", "slow", "before", 1, 400),
    ]
    told = [[each.number, each.type, each.turn_id, deepcopy(each.data)] for each in events]
    return Evidence(
        {"s": session},
        ledger,
        [
            {"op": "send", "session": "s", "token": "m1", "answer": "i1"},
            {"op": "cancel", "session": "s", "token": "k1", "answer": "succeeded"},
        ],
        [{"reader": "reader 0", "session": "s", "after": 0, "events": told}],
        [],
        {1: DEATH},
    )


def test_sound_evidence_has_no_faults() -> None:
    """P1 to P5: what the other test breaks is whole before."""
    assert list(judge(sound())) == []
    assert seen(sound())["effects told as unknown"] == 2


@pytest.mark.parametrize(
    ("froze", "asked_us", "is_fault"),
    [
        pytest.param((390, 5_000_000), 380, False, id="after its last question"),
        pytest.param((390, 5_000_000), 4_999_000, True, id="before a question that it asked too late"),
        pytest.param((390, 5_000_000), 0, True, id="and never asked"),
        pytest.param((390, DEATH + 10), 380, True, id="and had woken when the call was given up"),
        pytest.param((DEATH + 35, 5_000_000), 380, True, id="only after the call was given up"),
    ],
)
def test_a_call_may_begin_late_only_when_its_process_stood_still(
    froze: tuple[int, int], asked_us: int, is_fault: bool
) -> None:
    """P2, P5: told as unknown, and run once, by a process that froze between its last question and the tool."""
    found = sound()
    found.freezes = {1: [froze]}
    found.deaths = {}
    found.ledger[-1] = Entry("m1.2.0", "c", "slow", "before", 1, 5_000_100, asked_us)
    assert [fault.kind for fault in judge(found)] == (["repeated"] if is_fault else [])
    assert seen(found)["calls begun in the instant of a freeze"] == (0 if is_fault else 1)


def _wake_although_told(found: Evidence) -> None:
    session = found.sessions["s"]
    session.inputs[1] |= {"state": "delivered", "message": 8}
    session.messages[7]["parts"].append(prompt(f"{wake_of('k1')}survey) finished."))


def _wake_twice(found: Evidence) -> None:
    found.sessions["s"].messages[7]["parts"].append(prompt(WAKE))


def _two_wakes(found: Evidence) -> None:
    session = found.sessions["s"]
    session.inputs.append({**session.inputs[2], "id": "i4", "state": "withdrawn"})


def _withdrawn_and_never_told(found: Evidence) -> None:
    entry = found.sessions["s"].messages[4]["parts"][0]["content"]["tasks"][0]
    entry |= {"state": "running"}


def _wake_never_made(found: Evidence) -> None:
    session = found.sessions["s"]
    del session.inputs[2]
    del session.messages[7]


def _settle(found: Evidence, *, told: int) -> None:
    """A person speaks before the wake of k2 is told: it is withdrawn."""
    session = found.sessions["s"]
    session.tasks[1]["settled"] = json.dumps({"verdict": "worked"})
    session.inputs[2] |= {"state": "withdrawn", "message": None}
    session.inputs.append(given("i4", "delivered", 8, kind="settlement", text=WORD))
    session.messages[7]["parts"] = [prompt(WORD) for _ in range(told)]
    delivery = next(each for each in session.events if each.data.get("input_id") == "i3")
    delivery.data["input_id"] = found.readers[0]["events"][delivery.number - 1][3]["input_id"] = "i4"


def test_an_end_that_a_person_settled_needs_no_wake() -> None:
    """P3: the word of the person is the news."""
    found = sound()
    _settle(found, told=1)
    assert list(judge(found)) == []


def _settled_and_never_told(found: Evidence) -> None:
    _settle(found, told=0)


def _settled_and_told_twice(found: Evidence) -> None:
    _settle(found, told=2)


def _settled_and_then_told_by_a_wake(found: Evidence) -> None:
    _settle(found, told=1)
    session = found.sessions["s"]
    session.inputs[2]["state"] = "waiting"
    session.messages[8]["parts"].append(prompt(WAKE))


def _check_told_a_lie(found: Evidence) -> None:
    found.sessions["s"].messages[4]["parts"][0]["content"]["tasks"][0]["result"] = "nothing"


def _in_flight_told_as_failed(found: Evidence) -> None:
    found.sessions["s"].tasks[1]["error"] = json.dumps({"kind": "tool_error", "message": "It broke."})


def _in_flight_told_as_cancelled(found: Evidence) -> None:
    session = found.sessions["s"]
    for part in (session.messages[6]["parts"][0], session.events[9].data["part"]):
        part["content"] = "This call was cancelled before it finished. It may have happened in part."


def _unknown_although_it_ended(found: Evidence) -> None:
    found.deaths[1] = DEATH + 1_000


def _unknown_told_twice(found: Evidence) -> None:
    found.sessions["s"].messages[6]["parts"].append(deepcopy(RETURNS[3]))


def _ran_twice(found: Evidence) -> None:
    found.ledger.append(Entry("m1.2.0", "c", "slow", "before", 2, DEATH + 5))


def _ran_after_its_end(found: Evidence) -> None:
    found.ledger.append(Entry("m1.0.0", "a", "survey", "before", 2, DEATH + 5))


def _canceled_and_done(found: Evidence) -> None:
    found.sessions["s"].tasks[0] |= {"state": "canceled", "result": None}


def _cancel_unheard(found: Evidence) -> None:
    found.sessions["s"].tasks[0]["cancel_requested_at"] = -10_000_000


def _cancel_answered_otherwise(found: Evidence) -> None:
    found.record[1]["answer"] = "canceled"


def _task_open(found: Evidence) -> None:
    found.sessions["s"].tasks[1] |= {"state": "running", "ended_at": None}


def _end_told_twice(found: Evidence) -> None:
    events = found.sessions["s"].events
    events.append(LogEvent(len(events) + 1, "task.ended", None, {"task": {"id": "k2"}}, DEATH + 70))


def _input_lost(found: Evidence) -> None:
    del found.sessions["s"].messages[0]


def _reader_hangs(found: Evidence) -> None:
    del found.readers[0]["events"][-1]


@pytest.mark.parametrize(
    ("doctor", "kind"),
    [
        (_wake_although_told, "double_wakes"),
        (_wake_twice, "double_wakes"),
        (_two_wakes, "double_wakes"),
        (_withdrawn_and_never_told, "lost"),
        (_wake_never_made, "lost"),
        (_settled_and_never_told, "lost"),
        (_settled_and_told_twice, "repeated"),
        (_settled_and_then_told_by_a_wake, "double_wakes"),
        (_check_told_a_lie, "untold"),
        (_in_flight_told_as_failed, "untold"),
        (_in_flight_told_as_cancelled, "untold"),
        (_unknown_although_it_ended, "untold"),
        (_unknown_told_twice, "untold"),
        (_ran_twice, "repeated"),
        (_ran_after_its_end, "repeated"),
        (_canceled_and_done, "untold"),
        (_cancel_unheard, "lost"),
        (_cancel_answered_otherwise, "lost"),
        (_task_open, "hanging"),
        (_end_told_twice, "untold"),
        (_input_lost, "lost"),
        (_reader_hangs, "hanging"),
    ],
)
def test_one_thing_wrong_is_found(doctor: Callable[[Evidence], None], kind: str) -> None:
    """P1 to P5: each broken promise is a fault of its kind."""
    found = sound()
    doctor(found)
    assert kind in {fault.kind for fault in judge(found)}
