"""Events of a turn, made by hand: what a log holds, in few words."""

from datetime import UTC, datetime
from typing import Any

from outlast.events.event import Event
from outlast.ids import SessionId, TurnId

Said = tuple[str, dict[str, Any]]

TURN = TurnId("trn_1")
USAGE = {"requests": 1, "input_tokens": 3, "output_tokens": 5, "cost_microdollars": None}
TASK = {"id": "tsk_1", "tool": "survey", "call_id": "c1", "state": "running", "progress": None}


def events(*said: Said, turn_id: TurnId | None = TURN) -> list[Event]:
    return [
        Event(SessionId("ses_1"), number, type_, datetime(2026, 1, 1, tzinfo=UTC), data, turn_id)
        for number, (type_, data) in enumerate(said, start=1)
    ]


def text(part: str, *deltas: str) -> list[Said]:
    return [
        ("part.started", {"part": part, "kind": "text"}),
        *(("part.delta", {"part": part, "offset": 0, "text": each}) for each in deltas),
        ("part.ended", {"part": part, "length": 0}),
    ]


def asked(part: str, call_id: str, *args: str) -> list[Said]:
    return [
        ("part.started", {"part": part, "kind": "call", "call_id": call_id, "tool": "survey"}),
        *(("part.delta", {"part": part, "offset": 0, "text": each}) for each in args),
        ("part.ended", {"part": part, "length": 0}),
    ]


def answered(call_id: str, content: Any, outcome: str = "success", **more: Any) -> Said:
    return "call.ended", {
        "call_id": call_id,
        "tool": "survey",
        "outcome": outcome,
        "part": {"content": content},
        **more,
    }


QUEUED: Said = ("turn.queued", {"origin": "user"})
STARTED: Said = ("turn.started", {"attempt": 1, "worker_id": "wrk_1", "model": None})
RESPONSE: Said = ("response.completed", {"message": 2, "model": "m", "usage": {}, "finish": "stop"})
COMPLETED: Said = ("turn.completed", {"output": "Hello", "usage": USAGE})
