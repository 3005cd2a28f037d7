"""The AI SDK encoder turns a list of events into chunks: no request, no server, no clock."""

from datetime import UTC, datetime
from typing import Any

from pydantic_core import from_json

from outlast.events.event import Event
from outlast.ids import SessionId, TaskId, TurnId
from outlast.protocols.ai_sdk.encoder import TurnEncoder, encode, to_json
from tests.support.logs.turn_events import (
    COMPLETED,
    QUEUED,
    RESPONSE,
    STARTED,
    TASK,
    TURN,
    USAGE,
    answered,
    asked,
    events,
    text,
)

COMMON = frozenset(
    {
        *("start", "start-step", "finish-step", "finish", "error", "abort", "message-metadata"),
        *(f"{kind}-{move}" for kind in ("text", "reasoning") for move in ("start", "delta", "end")),
        *(f"tool-input-{move}" for move in ("start", "delta", "available", "error")),
        *(f"tool-output-{move}" for move in ("available", "error")),
    }
)
"""Chunk types that `ai` 5, 6 and 7 all take; beside them only `data-*`."""


def chunks(given: list[Event]) -> list[dict[str, Any]]:
    encoded = [from_json(to_json(chunk)) for chunk in encode(TURN, given)]
    assert all(each["type"] in COMMON or each["type"].startswith("data-") for each in encoded)
    return encoded


def types(given: list[Event]) -> list[str]:
    return [each["type"] for each in chunks(given)]


def test_a_turn_is_one_message_with_steps() -> None:
    """The turn's id is the message's id; a response and its calls are a step; usage comes before the finish."""
    found = chunks(
        events(
            QUEUED,
            STARTED,
            *asked("1.1.0", "c1", '{"area"', ":3}"),
            RESPONSE,
            ("call.started", {"call_id": "c1", "tool": "survey", "args": {"area": 3}}),
            answered("c1", {"depth": 4}),
            *text("1.2.0", "Hel", "lo"),
            RESPONSE,
            COMPLETED,
        )
    )
    metadata = {"session_id": "ses_1", "turn_id": "trn_1", "origin": "user"}
    named = {"outlast": {"part": "1.2.0"}}
    assert found == [
        {"type": "start", "messageId": "trn_1", "messageMetadata": metadata},
        {"type": "start-step"},
        {"type": "tool-input-start", "toolCallId": "c1", "toolName": "survey"},
        {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": '{"area"'},
        {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": ":3}"},
        {"type": "tool-input-available", "toolCallId": "c1", "toolName": "survey", "input": {"area": 3}},
        {"type": "tool-output-available", "toolCallId": "c1", "output": {"depth": 4}},
        {"type": "finish-step"},
        {"type": "start-step"},
        {"type": "text-start", "id": "1.2.0", "providerMetadata": named},
        {"type": "text-delta", "id": "1.2.0", "delta": "Hel"},
        {"type": "text-delta", "id": "1.2.0", "delta": "lo"},
        {"type": "text-end", "id": "1.2.0"},
        {"type": "finish-step"},
        {"type": "message-metadata", "messageMetadata": {"state": "completed", "model": "m", "usage": USAGE}},
        {"type": "finish", "finishReason": "stop"},
    ]


def test_reasoning_and_folded_text_are_just_deltas() -> None:
    """A fold changes how often a text is cut, not what is said; a part that stays empty is not shown."""
    said = [
        ("part.started", {"part": "1.1.0", "kind": "reasoning"}),
        ("part.delta", {"part": "1.1.0", "offset": 0, "text": "Hm.", "first": 2, "marks": [[0, 2], [1, 3]]}),
        ("part.ended", {"part": "1.1.0", "length": 3}),
        *text("1.1.1"),
    ]
    found = chunks(events(QUEUED, *said, RESPONSE, COMPLETED))
    assert [each["type"] for each in found[1:6]] == [
        "start-step",
        "reasoning-start",
        "reasoning-delta",
        "reasoning-end",
        "finish-step",
    ]
    assert found[3]["delta"] == "Hm."


def test_a_parked_call_has_one_output_and_its_news_are_data() -> None:
    """The handle is the call's only output; later news update one data part in place, whatever turn they are from."""
    handle = {"type": "background", "task_id": "tsk_1"}
    own = events(
        QUEUED,
        *asked("1.1.0", "c1", "{}"),
        RESPONSE,
        ("task.created", {"task": TASK}),
        answered("c1", handle, "parked", task_id="tsk_1"),
        answered("c1", "too late"),
    )
    others = events(("task.changed", {"task": {**TASK, "progress": {"done": 1}}}), turn_id=TurnId("trn_0"))
    ended = events(("task.ended", {"task": {**TASK, "state": "succeeded"}}), turn_id=TurnId("trn_0"))
    found = chunks([*own, *others, *ended, *events(COMPLETED)])
    outputs = [each for each in found if each["type"].startswith("tool-output")]
    assert outputs == [{"type": "tool-output-available", "toolCallId": "c1", "output": handle}]
    (call,) = [each for each in found if each["type"] == "data-call"]
    assert (call["id"], call["data"]["outcome"], call["data"]["task_id"]) == ("c1", "parked", "tsk_1")
    news = [each for each in found if each["type"] == "data-task"]
    assert [each["id"] for each in news] == ["tsk_1"] * 3
    assert [each["data"]["state"] for each in news] == ["running", "running", "succeeded"]


def test_a_message_begins_with_the_news_since_the_last_one() -> None:
    """A task that ended between two turns is told in the next message, once, as it is then."""
    between = [
        ("task.changed", {"task": {**TASK, "progress": {"done": 1}}}),
        ("task.ended", {"task": {**TASK, "state": "failed"}}),
    ]
    found = chunks([*events(*between, turn_id=TurnId("trn_0")), *events(QUEUED, COMPLETED)])
    assert [each["type"] for each in found[:3]] == ["start", "data-task", "message-metadata"]
    assert found[0]["messageMetadata"]["origin"] == "user"
    assert found[1]["data"]["state"] == "failed"


def test_events_of_other_turns_are_passed_over() -> None:
    """A session's log may hold more than one turn."""
    others = events(*text("1.1.0", "other"), turn_id=TurnId("trn_0"))
    assert types([*others, *events(QUEUED), *others]) == ["start"]


def test_a_dropped_response_is_closed_and_named() -> None:
    """Clients cannot un-say: open parts are closed, a call that was never asked for says so, and all are named."""
    found = chunks(
        events(
            QUEUED,
            *text("1.1.0", "whole"),
            ("part.started", {"part": "1.1.1", "kind": "text"}),
            ("part.delta", {"part": "1.1.1", "offset": 0, "text": "bro"}),
            ("part.started", {"part": "1.1.2", "kind": "call", "call_id": "c1", "tool": "survey"}),
            ("part.delta", {"part": "1.1.2", "offset": 0, "text": '{"a'}),
            ("response.dropped", {"reason": "model_error", "dropped": ["1.1.0", "1.1.1", "1.1.2"], "retry_in": 0}),
            *text("1.2.0", "Again."),
            RESPONSE,
            COMPLETED,
        )
    )
    at = [each["type"] for each in found].index("data-dropped")
    assert found[at] == {"type": "data-dropped", "data": {"parts": ["1.1.0", "1.1.1", "1.1.2"]}}
    assert found[at - 2] == {"type": "text-end", "id": "1.1.1"}
    assert (found[at - 1]["type"], found[at - 1]["input"]) == ("tool-input-error", '{"a')
    assert [each["type"] for each in found[at + 1 : at + 4]] == ["finish-step", "start-step", "text-start"]


def test_a_replay_has_no_trace_of_what_was_dropped() -> None:
    """The log forgets dropped parts: whoever reads it later is told nothing of them."""
    resumed = ("turn.resumed", {"attempt": 2, "worker_id": "wrk_2", "dropped": ["1.1.0"]})
    assert types(events(QUEUED, STARTED, resumed)) == ["start"]


def test_messages_and_wakes_stand_where_they_were_heard() -> None:
    """A message that began the turn is the client's own; one that came later, and what woke the turn, are data."""
    first = ("input.delivered", {"input_id": "inp_1", "kind": "message", "text": "Go.", "message": 1})
    later = ("input.delivered", {"input_id": "inp_2", "kind": "message", "text": "Also!", "message": 3})
    woken = ("input.delivered", {"input_id": "inp_3", "kind": "wake", "text": "Finished.", "message": 4})
    given = events(QUEUED, first, *text("1.1.0", "One."), RESPONSE, later, *text("1.2.0", "Two."))
    found = chunks([*given, *events(RESPONSE, woken)])
    assert [each["type"] for each in found][4:8] == ["text-end", "finish-step", "data-message", "start-step"]
    data = [each for each in found if each["type"].startswith("data-")]
    assert data == [
        {"type": "data-message", "id": "inp_2", "data": {"input_id": "inp_2", "kind": "message", "text": "Also!"}},
        {"type": "data-wake", "id": "inp_3", "data": {"input_id": "inp_3", "text": "Finished.", "task_id": None}},
    ]


def test_a_wake_names_its_task() -> None:
    """A page finds the task that woke the session, and its `data-task` in an earlier message."""
    data = {"input_id": "inp_3", "kind": "wake", "text": "Finished.", "message": 4}
    event = Event(
        SessionId("ses_1"), 1, "input.delivered", datetime(2026, 1, 1, tzinfo=UTC), data, TURN, TaskId("tsk_1")
    )
    assert chunks([event])[1]["data"]["task_id"] == "tsk_1"


def test_a_stop_is_an_abort_that_leaves_nothing_open() -> None:
    """What was said stays; a call that was not yet asked for never ran; clients see no step that ends in calls."""
    found = chunks(
        events(
            QUEUED,
            ("part.started", {"part": "1.1.0", "kind": "text"}),
            ("part.delta", {"part": "1.1.0", "offset": 0, "text": "On my"}),
            ("part.started", {"part": "1.1.1", "kind": "call", "call_id": "c1", "tool": "survey"}),
            ("turn.stopped", {"reason": "user", "usage": USAGE}),
            ("part.delta", {"part": "1.1.0", "offset": 5, "text": "never sent"}),
        )
    )
    assert [each["type"] for each in found[5:]] == [
        "text-end",
        "tool-input-error",
        "finish-step",
        "start-step",
        "finish-step",
        "message-metadata",
        "abort",
    ]
    assert found[-2]["messageMetadata"]["state"] == "stopped"


def test_a_failure_is_an_error_with_its_facts_in_the_metadata() -> None:
    """The client shows the message; whether to try again, and the reference, stand in the metadata."""
    failed = {
        "kind": "model_error",
        "message": "It failed.",
        "is_retryable": True,
        "reference": "ref_1",
        "usage": USAGE,
    }
    found = chunks(events(QUEUED, *text("1.1.0", "So"), ("turn.failed", failed)))
    assert found[-1] == {"type": "error", "errorText": "It failed."}
    assert found[-2]["messageMetadata"]["error"] == {key: failed[key] for key in failed if key != "usage"}


def test_calls_that_fail_wait_or_tell_of_themselves() -> None:
    """An error shows its text; waiting and progress share one data part that is updated in place."""
    found = chunks(
        events(
            QUEUED,
            *asked("1.1.0", "c1", "no json"),
            RESPONSE,
            ("call.waiting", {"call_id": "c1", "tool": "survey", "reason": "32 tasks are open"}),
            ("call.progress", {"call_id": "c1", "progress": {"done": 1, "total": 2}}),
            answered("c1", "It broke.", "failed"),
        )
    )
    assert found[4]["input"] == "no json"
    open_call = {"call_id": "c1", "tool": "survey", "waiting": "32 tasks are open", "outcome": None, "task_id": None}
    assert [each["data"] for each in found if each["type"] == "data-call"] == [
        {**open_call, "progress": None},
        {**open_call, "progress": {"done": 1, "total": 2}},
    ]
    assert found[-1] == {"type": "tool-output-error", "toolCallId": "c1", "errorText": "It broke."}


def test_an_end_of_a_call_of_another_message_comes_as_a_pair() -> None:
    """Stock clients end their stream at an output for a call that they do not have."""
    found = chunks(events(QUEUED, answered("c0", "late")))
    assert [each["type"] for each in found[1:]] == ["tool-input-available", "tool-output-available"]


def test_a_typed_output_and_a_closing_line_are_shown() -> None:
    """An agent whose output is a call, and one that says nothing in the end, still give the page something to show."""
    typed = {"output": {"city": "Oslo"}, "usage": USAGE}
    found = chunks(events(QUEUED, *asked("1.1.0", "c1", '{"city":"Oslo"}'), RESPONSE, ("turn.completed", typed)))
    assert {"type": "tool-output-available", "toolCallId": "c1", "output": {"city": "Oslo"}} in found
    assert {"type": "data-output", "id": "trn_1", "data": {"output": {"city": "Oslo"}}} in found
    closing = {"output": "", "text": "Done. Tools used: survey.", "usage": USAGE}
    found = chunks(events(QUEUED, ("turn.completed", closing)))
    assert {"type": "text-delta", "id": "closing", "delta": "Done. Tools used: survey."} in found


def test_a_call_that_gives_nothing_has_an_output_all_the_same() -> None:
    """Stock clients refuse an output that is left out."""
    found = chunks(events(QUEUED, *asked("1.1.0", "c1", "null"), RESPONSE, answered("c1", None)))
    assert found[-2] == {"type": "tool-input-available", "toolCallId": "c1", "toolName": "survey", "input": None}
    assert found[-1] == {"type": "tool-output-available", "toolCallId": "c1", "output": None}


def test_what_lies_in_the_file_store_is_said_by_its_size() -> None:
    """Keys of stored files are nobody's business."""
    content = [{"kind": "binary", "data": {"$file": {"key": "k", "as": "base64", "bytes": 9}}}]
    found = chunks(events(QUEUED, answered("c1", content)))
    assert found[-1]["output"] == [{"kind": "binary", "data": {"bytes": 9}}]


def test_after_the_end_nothing_is_said() -> None:
    """News of tasks after the turn belong to the next message."""
    encoder = TurnEncoder(TURN)
    for event in events(QUEUED, COMPLETED):
        encoder.add(event)
    assert encoder.is_over
    assert encoder.add(events(("task.ended", {"task": TASK}))[0]) == []
