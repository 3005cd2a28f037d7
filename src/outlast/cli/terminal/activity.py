"""What is going on in a session at this moment, as its events tell."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from rich.text import Text

from outlast.cli.terminal import words
from outlast.events.event import Event
from outlast.events.shown import in_words

OVER = ("succeeded", "failed", "canceled")


@dataclass(slots=True)
class SeenCall:
    tool: str
    args: Any
    started_at: datetime
    progress: dict[str, Any] | None = None
    narration: str | None = None
    is_cut: bool = False
    """Its process ended under it: nobody knows when."""

    @property
    def name(self) -> str:
        return self.narration or f"{self.tool}({words.arguments(self.args)})"


@dataclass(slots=True)
class Activity:
    """Takes events in order; its fields are right after each of them."""

    turn_id: str | None = None
    turn_since: datetime | None = None
    has_begun: bool = False
    """Whether somebody runs the turn, or did."""
    is_held: bool = False
    calls: dict[str, SeenCall] = field(default_factory=dict[str, SeenCall])
    """Calls that the turn waits for."""
    begun: dict[str, SeenCall] = field(default_factory=dict[str, SeenCall])
    """Every call that was started, for what is told of it later."""
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """Tasks that are open."""
    waiting: dict[str, str] = field(default_factory=dict[str, str])
    """Messages that wait to be delivered."""

    def add(self, event: Event) -> None:
        data = event.data
        match event.type:
            case "session.held":
                self.is_held = True
            case "session.resumed":
                self.is_held = False
            case "turn.queued":
                self.turn_id, self.turn_since, self.has_begun = event.turn_id, event.at, False
            case "turn.started":
                self.has_begun = True
            case "turn.resumed":
                for call in self.calls.values():
                    call.is_cut = True
            case "turn.completed" | "turn.failed" | "turn.stopped":
                self.turn_id = self.turn_since = None
                self.calls.clear()
            case "input.accepted" if data["kind"] == "message" and self.turn_id is not None:
                self.waiting[data["input_id"]] = data["text"]
            case "input.edited" if data["input_id"] in self.waiting:
                self.waiting[data["input_id"]] = data["text"]
            case "input.delivered" | "input.removed":
                self.waiting.pop(data["input_id"], None)
            case "task.created" | "task.changed" if data["task"]["state"] not in OVER:
                self.tasks[data["task"]["id"]] = data["task"]
            case "task.ended":
                self.tasks.pop(data["task"]["id"], None)
            case _:
                self._call(event)

    def _call(self, event: Event) -> None:
        data = event.data
        match event.type:
            case "call.started":
                call = SeenCall(data["tool"], in_words(data.get("args")), event.at, narration=data.get("narration"))
                self.calls[data["call_id"]] = self.begun[data["call_id"]] = call
            case "call.progress" if data["call_id"] in self.calls:
                self.calls[data["call_id"]].progress = data["progress"]
            case "call.ended":
                self.calls.pop(data["call_id"], None)
            case _:
                return

    def rows(self) -> list[Text]:
        """One for each call and task that runs and each message that waits; or that the turn is at work."""
        now = datetime.now(UTC)
        rows = [_row("⋯", call.name, call.progress, now - call.started_at) for call in self.calls.values()]
        if self.turn_since is not None and not rows:
            doing = "at work" if self.has_begun else "waits"
            rows.append(Text(f"⋯ {doing}, {words.duration(now - self.turn_since)}", style="dim"))
        for task in self.tasks.values():
            began = task.get("started_at")
            since = None if began is None else now - datetime.fromisoformat(began)
            rows.append(_row("↷", task_name(task), task["progress"], since, note=_note(task)))
        rows += [Text(f"… waits: {words.shortened(text, 60)}", style="cyan dim") for text in self.waiting.values()]
        return rows


def task_name(task: dict[str, Any]) -> str:
    if task.get("narration"):
        return task["narration"]
    return task["title"] if task["tool"] in (None, task["title"]) else f"{task['title']} ({task['tool']})"


def _note(task: dict[str, Any]) -> str:
    if task["is_cancel_requested"]:
        return "asked to cancel"
    return task["detail"] or (task["state"] if task["state"] != "running" else "")


def _row(mark: str, name: str, progress: dict[str, Any] | None, since: Any, *, note: str = "") -> Text:
    passed = "" if since is None else words.duration(since)
    parts = [part for part in (words.progress_line(progress), note, passed) if part]
    return Text.assemble(
        (f"{mark} ", "yellow"), name, ("  " + "  ".join(parts), "dim"), no_wrap=True, overflow="ellipsis"
    )
