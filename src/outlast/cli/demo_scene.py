"""How events of the demo look to its audience."""

from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from rich.text import Text

from outlast.cli import words
from outlast.cli.demo_process import SeenEvent
from outlast.cli.play import Meter, Speech, Stage


class Scene:
    """Shows events one by one and remembers what the next scene needs. Use it in `with`."""

    def __init__(self, stage: Stage, *, position: int = 0) -> None:
        self.position = position
        self.has_result = False
        self.words = ""
        """What the agent has said in the text that is open, or said last."""
        self._stage = stage
        self._open = ExitStack()
        self._meter = ExitStack()
        self._bar: Meter | None = None
        self._quarter = -1
        self._task: dict[str, Any] | None = None
        self._part: str | None = None
        self._speech: Speech | None = None

    def show(self, event: SeenEvent) -> None:
        self.position = event.number
        data = event.data
        match event.type:
            case "input.accepted" if data["kind"] == "message":
                self._stage.line("you", data["text"])
            case "input.delivered" if self.has_result:
                self._log(event, "your second message goes to the model, with the tool's result")
            case "call.started":
                self._stage.line("tool", f"{data['tool']}({words.arguments(data['args'])}) is running ...")
            case "call.ended" if "task_id" in data:
                self._stage.line("tool", f"{data['tool']} is past its budget: it goes on in the background as a task")
            case "task.created" | "task.changed":
                self._progress(data["task"])
            case "task.ended":
                self._progress(data["task"])
                self._end_meter()
                self._task = None
                self._stage.line("task", f"{data['task']['title']} has {data['task']['state']}")
            case "input.delivered" if data["kind"] == "wake":
                self._log(event, "the task's end wakes the conversation")
            case "call.ended":
                self.has_result = True
                self._stage.line("tool", f"{data['tool']} is done: its result is committed as #{event.number}")
            case "turn.resumed":
                dropped = ", ".join(data["dropped"])
                self._log(event, f"attempt {data['attempt']}; the broken text (part {dropped}) is dropped")
            case "turn.completed":
                self._log(event, "the turn has ended")
            case _:
                self._text(event)

    def break_off(self) -> None:
        """The words that are open end here, in the middle."""
        if self._speech is not None:
            self._speech.add(" --")
        self._close()

    def _progress(self, task: dict[str, Any]) -> None:
        """A bar that moves where it can be drawn again, and a line at each quarter where not."""
        self._task = task
        done = words.share(task["progress"])
        if done is None or self._speech is not None:
            return
        line = f"{task['title']} {words.progress_line(task['progress'])}"
        if self._stage.is_live:
            if self._bar is None:
                self._bar = self._meter.enter_context(self._stage.meter("task"))
            self._bar.set(line)
        elif int(done * 4) > self._quarter:
            self._quarter = int(done * 4)
            self._stage.line("task", line)

    def _text(self, event: SeenEvent) -> None:
        data = event.data
        if event.type == "part.started" and data["kind"] == "text":
            self._end_meter()
            self._part, self.words = data["part"], ""
            self._speech = self._open.enter_context(self._stage.speech("agent"))
        elif self._speech is None or data.get("part") != self._part:
            return
        elif event.type == "part.delta":
            self.words += data["text"]
            self._speech.add(data["text"])
        elif event.type == "part.ended":
            self._close()
            if self._task is not None:
                self._progress(self._task)

    def _end_meter(self) -> None:
        self._bar = None
        self._meter.close()

    def _close(self) -> None:
        self._end_meter()
        self._speech = self._part = None
        self._open.close()

    def _log(self, event: SeenEvent, words: str) -> None:
        self._stage.line("log", Text(f"#{event.number} {event.type}: {words}", style="dim"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()


def event_line(type_: str, data: dict[str, Any]) -> str:
    """A stored event in one line."""
    match type_:
        case "call.started" | "call.ended":
            said = f"{data['tool']} {data.get('outcome', '')}"
        case "input.accepted" | "input.delivered":
            said = f'"{data["text"]}"'
        case "turn.resumed":
            said = f"attempt {data['attempt']}, dropped {', '.join(data['dropped'])}"
        case _:
            said = ""
    return f"{type_} {said}".strip()
