"""The fixtures that hold both folds, this one and the console's, to the same views: events, and what they come to.

`python -m tests.support.views.fixtures` writes them anew. A file holds `events` as the API sends them, the `view` after
the last of them, and `halfway`: the view after half of them, from which a reader goes on.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from outlast.events.event import Event
from outlast.ids import SessionId, TaskId, TurnId
from outlast.wire.event import EventAnswer
from tests.support.views.compare import comparable
from tests.support.views.reader import ViewReader, empty

FOLDER = Path(__file__).parents[2] / "fixtures" / "events"
_BEGAN = datetime(2026, 11, 15, 12, tzinfo=UTC)
_USAGE: Mapping[str, Any] = {
    **{"requests": 1, "input_tokens": 12, "output_tokens": 5, "cache_read_tokens": 0, "cache_write_tokens": 0},
    "cost_microdollars": 30,
}


@dataclass
class Log:
    """A session's log as it is written; a second passes with each event."""

    events: list[Event] = field(default_factory=list[Event])
    turns: int = 0
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])

    def add(self, type_: str, turn: str | None = None, task: str | None = None, /, **data: Any) -> None:
        number = len(self.events) + 1
        at = _BEGAN + timedelta(seconds=number)
        turn_id = None if turn is None else TurnId(turn)
        task_id = None if task is None else TaskId(task)
        self.events.append(Event(SessionId("ses_1"), number, type_, at, data, turn_id, task_id))

    def begin(self, text: str | None, *, origin: str = "user", **queued: Any) -> str:
        """A message is accepted and starts a turn, which is given it."""
        self.turns += 1
        turn = f"trn_{self.turns}"
        said = {"input_id": f"inp_{self.turns}", "kind": "message", "mode": "steer", "text": text, "by": "ada"}
        if text is not None:
            self.add("input.accepted", **said, key=f"key_{self.turns}")
        self.add("turn.queued", turn, origin=origin, **queued)
        self.add("turn.started", turn, attempt=1, worker_id="wrk_1", model="large")
        if text is not None:
            self.add("input.delivered", turn, **said, key=f"key_{self.turns}", message=1)
        return turn

    def say(self, turn: str, part: str, *texts: str, kind: str = "text", is_open: bool = False) -> None:
        self.add("part.started", turn, part=part, kind=kind)
        offset = 0
        for each in texts:
            self.add("part.delta", turn, part=part, offset=offset, text=each)
            offset += len(each)
        if not is_open:
            self.add("part.ended", turn, part=part, length=offset)

    def ask(
        self, turn: str, part: str, call_id: str, tool: str, args: Mapping[str, Any], *, starts: bool = True
    ) -> None:
        """The model asks for a call, and it begins."""
        self.add("part.started", turn, part=part, kind="call", call_id=call_id, tool=tool)
        self.add("part.delta", turn, part=part, offset=0, text=json.dumps(args))
        self.add("part.ended", turn, part=part, length=len(json.dumps(args)))
        self.respond(turn)
        if starts:
            self.add("call.started", turn, call_id=call_id, tool=tool, args=dict(args))

    def respond(self, turn: str) -> None:
        self.add("response.completed", turn, message=2, model="large-1", usage=dict(_USAGE), finish="stop")

    def answer(self, turn: str, call_id: str, tool: str, result: Any, *, outcome: str = "success", **more: Any) -> None:
        part = {"part_kind": "tool-return", "tool_call_id": call_id, "tool_name": tool, "content": result}
        self.add("call.ended", turn, call_id=call_id, tool=tool, outcome=outcome, part=part, **more)

    def complete(self, turn: str, output: Any, **more: Any) -> None:
        self.add("turn.completed", turn, output=output, usage=dict(_USAGE), **more)

    def task(self, what: str, turn: str | None, task_id: str, state: str, **more: Any) -> None:
        """What it was before, and what is new: nothing that was told of a task is left out later."""
        before = self.tasks.get(task_id, {"id": task_id, "kind": "call", "title": "survey", "tool": "survey"})
        self.tasks[task_id] = {**before, "state": state, **more}
        self.add(f"task.{what}", turn, task_id, task=self.tasks[task_id])


def plain(log: Log) -> None:
    """A question and its answer, with a title and a read mark."""
    log.add("session.created", agent="agent", title=None)
    turn = log.begin("How deep is it?")
    log.say(turn, "1.1.0", "Let me ", "think.", kind="reasoning")
    log.say(turn, "1.1.1", "Three ", "\N{WATER WAVE} metres.")
    log.respond(turn)
    log.complete(turn, "Three \N{WATER WAVE} metres.")
    log.add("session.changed", title="Depth", read_to=10)


def steering(log: Log) -> None:
    """Messages that come while a turn runs: one steers, one is edited, one is taken back, one waits on."""
    turn = log.begin("Look.")
    log.say(turn, "1.1.0", "Looking.")
    log.ask(turn, "1.1.1", "c1", "look", {"at": "river"})
    file = {"id": "fil_1", "name": "map.png", "media_type": "image/png", "bytes": 12}
    for number, mode in ((7, "steer"), (8, "queue"), (9, "queue")):
        more = {"files": [file]} if number == 7 else {}
        log.add("input.accepted", input_id=f"inp_{number}", kind="message", mode=mode, text=f"Message {number}", **more)
    log.add("input.edited", input_id="inp_8", text="Message 8, better")
    log.add("input.removed", input_id="inp_9")
    log.add("call.progress", turn, call_id="c1", progress={"current": 1, "total": 2})
    log.answer(turn, "c1", "look", {"seen": True})
    said = {"input_id": "inp_7", "kind": "message", "mode": "steer", "text": "Message 7", "files": [file]}
    log.add("input.delivered", turn, **said, message=4)
    log.say(turn, "1.2.0", "Seen, and noted.")
    log.respond(turn)
    log.complete(turn, "Seen, and noted.")


def parked_call(log: Log) -> None:
    """A call outruns its budget, goes on as a task, and its end wakes the session."""
    turn = log.begin("Survey it.")
    log.ask(turn, "1.1.0", "c1", "survey", {"river": "Loire"})
    log.add("call.waiting", turn, call_id="c1", tool="survey", reason="It holds a lock.")
    log.task("created", turn, "tsk_1", "running", call_id="c1", wake="on_terminal")
    log.answer(turn, "c1", "survey", {"task": "tsk_1"}, outcome="parked", task_id="tsk_1")
    log.say(turn, "1.2.0", "It runs.")
    log.respond(turn)
    log.complete(turn, "It runs.")
    log.task("changed", turn, "tsk_1", "running", progress={"current": 2, "total": 4})
    log.task("ended", turn, "tsk_1", "succeeded", result_preview="12 km")
    wake = {"input_id": "inp_9", "kind": "wake", "mode": "steer", "text": "Background task tsk_1 finished."}
    log.add("input.accepted", None, "tsk_1", **wake, task_ids=["tsk_1"])
    log.turns = 1
    woken = log.begin(None, origin="wake")
    log.add("input.delivered", woken, "tsk_1", **wake, task_ids=["tsk_1"], message=5)
    log.say(woken, "1.1.0", "It is 12 km long.")
    log.respond(woken)
    log.complete(woken, "It is 12 km long.")


def withdrawn_wake(log: Log) -> None:
    """The model asks for a task that has just ended: its wake is taken back."""
    turn = log.begin("Is it done?")
    log.ask(turn, "1.1.0", "c1", "check_background", {})
    log.task("ended", None, "tsk_1", "failed", error={"kind": "tool_error", "message": "No river."})
    wake = {"input_id": "inp_9", "kind": "wake", "mode": "steer", "text": "Background task tsk_1 failed."}
    log.add("input.accepted", None, "tsk_1", **wake, task_ids=["tsk_1"])
    log.answer(turn, "c1", "check_background", [{"id": "tsk_1", "state": "failed"}])
    log.add("input.removed", None, input_id="inp_9", reason="withdrawn")
    log.say(turn, "1.2.0", "It failed.")
    log.respond(turn)
    log.complete(turn, "It failed.")


def killed(log: Log) -> None:
    """A process dies in mid-sentence and in a call: the next attempt goes on without the lost words."""
    turn = log.begin("Pay, then tell me.")
    log.ask(turn, "1.1.0", "c1", "pay", {"amount": 7})
    log.ask(turn, "1.1.1", "c2", "look", {})
    log.ask(turn, "1.1.2", "c3", "look", {})
    log.answer(turn, "c2", "look", "seen")
    log.answer(turn, "c3", "look", "It may be run again.", outcome="interrupted", is_unknown=False)
    log.add("turn.resumed", turn, attempt=2, worker_id="wrk_2", dropped=[])
    log.answer(turn, "c1", "pay", "It may or may not have run.", outcome="interrupted")
    log.say(turn, "2.1.0", "I have pa", is_open=True)
    log.add("turn.resumed", turn, attempt=3, worker_id="wrk_3", dropped=["2.1.0"])
    log.say(turn, "3.1.0", "Nobody knows ", "whether it is paid.")
    log.respond(turn)
    log.complete(turn, "Nobody knows whether it is paid.")
    log.add("call.settled", turn, call_id="c1", tool="pay", verdict="worked", by="ada", note="I saw it.")
    word = {"input_id": "inp_9", "kind": "settlement", "mode": "steer", "text": "ada says that it took effect."}
    log.add("input.accepted", **word)
    told = log.begin(None)
    log.add("input.delivered", told, **word, message=6)
    log.say(told, "1.1.0", "Good.")
    log.respond(told)
    log.complete(told, "Good.")


def broken_response(log: Log) -> None:
    """A response does not arrive whole, its words are dropped, and the turn fails in the end."""
    turn = log.begin("Tell me.")
    log.say(turn, "1.1.0", "Once upon", is_open=True)
    log.add("part.started", turn, part="1.1.1", kind="call", call_id="c1", tool="look")
    log.add("response.dropped", turn, reason="model_error", dropped=["1.1.0", "1.1.1"], retry_in=1.5)
    log.say(turn, "1.2.0", "Once", is_open=True)
    log.add("response.dropped", turn, reason="model_error", dropped=["1.2.0"])
    data = {"kind": "model_error", "message": "The model is away.", "is_retryable": True, "reference": "ref_1"}
    log.add("turn.failed", turn, **data, usage=dict(_USAGE))
    again = log.begin(None, origin="retry")
    log.say(again, "1.1.0", "Once upon a time.")
    log.respond(again)
    log.complete(again, "Once upon a time.")


def approval(log: Log) -> None:
    """A call waits for a person, who says yes with other arguments."""
    turn = log.begin("Pay 9.")
    log.ask(turn, "1.1.0", "c1", "pay", {"amount": 9})
    request = {"id": "req_1", "kind": "approval", "prompt": "Pay 9?", "args": {"amount": 9}}
    log.task("created", turn, "tsk_1", "awaiting_input", call_id="c1", request=request)
    log.add("request.opened", turn, "tsk_1", request=request, tool="pay", title="pay")
    log.answer(turn, "c1", "pay", {"task": "tsk_1"}, outcome="parked", task_id="tsk_1")
    log.say(turn, "1.2.0", "Ask them.")
    log.respond(turn)
    log.complete(turn, "Ask them.")
    closed = {"how": "approved", "by": "ada", "at": "2026-11-15T12:01:00+00:00", "args_changed": True}
    log.add("request.closed", turn, "tsk_1", request_id="req_1", kind="approval", **closed, args={"amount": 8})
    log.task("changed", turn, "tsk_1", "running", request={**request, "closed": closed})
    log.task("ended", turn, "tsk_1", "succeeded", result_preview="paid")


def question_of_a_sub_session(log: Log) -> None:
    """A sub-session works for this one and asks; the model is told what it asks."""
    turn = log.begin("Research it.")
    log.ask(turn, "1.1.0", "c1", "run_sub_session", {"text": "Research."})
    child = {"kind": "session", "call_id": "c1", "links": {"child_session": "ses_2"}}
    log.task("created", turn, "tsk_1", "running", **child)
    log.answer(turn, "c1", "run_sub_session", {"task": "tsk_1"}, outcome="parked", task_id="tsk_1")
    log.complete(turn, None, text="It goes on in the background.")
    request = {"id": "req_1", "kind": "question", "prompt": "Which river?"}
    log.task("changed", turn, "tsk_1", "awaiting_input", **child, request=request)
    log.add("request.opened", turn, "tsk_1", request=request, title="research")
    asks = {"input_id": "inp_9", "kind": "request", "mode": "steer", "text": "Task tsk_1 asks: Which river?"}
    log.add("input.accepted", None, "tsk_1", **asks, task_ids=["tsk_1"])
    woken = log.begin(None, origin="wake")
    log.add("input.delivered", woken, "tsk_1", **asks, task_ids=["tsk_1"], message=4)
    log.say(woken, "1.1.0", "The Loire?", is_open=True)


def regenerated(log: Log) -> None:
    """An answer is made again, twice; a steering message that came in between stays."""
    turn = log.begin("Draw.")
    log.ask(turn, "1.1.0", "c1", "draw", {})
    log.answer(turn, "c1", "draw", "drawn")
    said = {"input_id": "inp_9", "kind": "message", "mode": "steer", "text": "In blue."}
    log.add("input.accepted", **said)
    log.add("input.delivered", turn, **said, message=4)
    log.say(turn, "1.2.0", "Red.")
    log.respond(turn)
    log.complete(turn, "Red.")
    second = log.begin(None, origin="regenerate", regenerates=turn)
    log.say(second, "1.1.0", "Green.")
    log.respond(second)
    log.complete(second, "Green.")
    third = log.begin(None, origin="regenerate", regenerates=second)
    log.say(third, "1.1.0", "Blue.")
    log.respond(third)
    log.complete(third, "Blue.")


def stopped(log: Log) -> None:
    """A person stops a turn in mid-sentence; the session is held, flagged and resumed."""
    turn = log.begin("Count.")
    log.say(turn, "1.1.0", "One ", is_open=True)
    log.add("session.held", reason="stopped")
    log.add("part.ended", turn, part="1.1.0", length=4)
    log.add("turn.stopped", turn, reason="user", usage=dict(_USAGE))
    log.add("session.flagged", reason="woken_too_often", woken_turns=7)
    log.add("input.accepted", input_id="inp_9", kind="message", mode="steer", text="Go on.", key="k9")
    log.add("session.resumed")
    log.add("turn.queued", "trn_9", origin="user", place=3, until="2026-11-16T00:00:00+00:00")


def images(log: Log) -> None:
    """Files that a tool gives, an artifact, and a part of an answer that is an image."""
    turn = log.begin("Draw.")
    log.ask(turn, "1.1.0", "c1", "draw", {"what": "river"})
    kept = {"$file": {"key": f"ses_1/{'0f' * 32}", "as": "base64", "bytes": 400}}
    picture = {"kind": "binary", "media_type": "image/png", "identifier": "4effda", "data": kept}
    artifact = {"id": "fil_2", "name": "plan.pdf", "media_type": "application/pdf", "bytes": 9}
    log.answer(turn, "c1", "draw", "[file 1]", content=["See:", picture], artifacts=[artifact])
    log.ask(turn, "1.2.0", "c2", "read", {"path": "log"})
    large = {"$file": {"key": f"ses_1/{'aa' * 32}", "as": "text", "bytes": 300_000, "preview": "first words"}}
    log.answer(turn, "c2", "read", {"text": large}, usage={**_USAGE, "cost_microdollars": None})
    log.say(turn, "1.3.0", kind="file")
    log.respond(turn)
    log.complete(turn, "")


def typed_output(log: Log) -> None:
    """An agent's typed output: the call that gives it has no end of its own."""
    turn = log.begin("How deep?")
    log.ask(turn, "1.1.0", "c1", "final_result", {"metres": 3}, starts=False)
    log.complete(turn, {"metres": 3}, output_type="Depth")


def compaction(log: Log) -> None:
    """A long history is cut before a request."""
    turn = log.begin("Go on.")
    cut = {"messages": 40, "results_cut": 3, "characters_before": 90_000, "characters_after": 40_000}
    log.add("history.compacted", turn, **cut, reason="size")
    log.say(turn, "1.1.0", "Going on.")
    log.respond(turn)
    log.complete(turn, "Going on.")
    log.add("session.deleted")


def unreadable(log: Log) -> None:
    """An event of a turn cannot be read: its place says so, and the rest is there."""
    turn = log.begin("Tell.")
    lost = {"kind": "unreadable", "message": "This was stored in a form that cannot be read (9 bytes)."}
    log.add("session.flagged", turn, reason="unreadable", type="response.completed", **lost)
    log.say(turn, "1.1.0", "Three metres.")
    log.complete(turn, "Three metres.")


def folded_deltas(log: Log) -> None:
    """The deltas of a part that has ended were folded into one."""
    turn = log.begin("Tell.")
    log.add("part.started", turn, part="1.1.0", kind="text")
    number = len(log.events) + 1
    log.add("part.delta", turn, part="1.1.0", offset=0, text="Three metres.", first=number, marks=[[0, 13]])
    log.add("part.ended", turn, part="1.1.0", length=13)
    log.respond(turn)
    log.complete(turn, "Three metres.")


def schedules(log: Log) -> None:
    """A schedule of the session is made, changed, fires, is passed over, is paused and deleted: no turn tells of it."""
    schedule = {
        **{"id": "sch_1", "kind": "message", "title": "Morning", "tool": None, "text": "Good morning.", "at": None},
        **{"cron": "0 8 * * *", "zone": "UTC", "state": "active", "reason": None, "missed": "once", "overlap": "skip"},
        **{"next_at": "2026-11-16T08:00:00+00:00", "made_by": {"kind": "person"}, "task_id": None},
    }
    due = {
        **{"schedule_id": "sch_1", "title": "Morning", "due_at": "2026-11-16T08:00:00+00:00", "how": "due", "count": 1},
        **{"late_seconds": 0.5, "detail": None, "task_id": None, "next_at": None},
    }
    log.add("schedule.created", schedule=schedule)
    log.add("schedule.changed", schedule=schedule)
    log.add("schedule.fired", **due, number=1, outcome="fired", reason=None, input_id="inp_1")
    turn = log.begin("Good morning.", origin="schedule")
    log.say(turn, "1.1.0", "Good morning to you.")
    log.respond(turn)
    log.complete(turn, "Good morning to you.")
    log.add("schedule.skipped", **due, number=2, outcome="skipped", reason="overlap", input_id=None)
    log.add("schedule.paused", schedule={**schedule, "state": "paused", "reason": "person"})
    log.add("schedule.deleted", schedule_id="sch_1")


SCENES: Sequence[Callable[[Log], None]] = (
    *(plain, steering, parked_call, withdrawn_wake, killed, broken_response, approval, question_of_a_sub_session),
    *(regenerated, stopped, images, typed_output, compaction, folded_deltas, schedules, unreadable),
)


def events_of(scene: Callable[[Log], None]) -> Sequence[Event]:
    log = Log()
    scene(log)
    return log.events


def written(scene: Callable[[Log], None]) -> str:
    """A fixture as its file has it."""
    events = events_of(scene)
    half = len(events) // 2
    fixture = {
        "about": scene.__doc__,
        "events": [EventAnswer.of(each).model_dump(mode="json") for each in events],
        "halfway": _seen(events[:half]),
        "view": _seen(events),
    }
    return json.dumps(fixture, indent=1, ensure_ascii=False) + "\n"


def _seen(events: Sequence[Event]) -> Any:
    view = comparable(ViewReader(empty()).add_all(events))
    return {**view, "tasks": [*view["tasks"].values()]}


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for scene in SCENES:
        (FOLDER / f"{scene.__name__}.json").write_text(written(scene))


if __name__ == "__main__":
    main()
