"""How events of the demo look to its audience."""

import json
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from rich.text import Text

from outlast.cli.demo_process import SeenEvent
from outlast.cli.play import Speech, Stage


class Scene:
    """Shows events one by one and remembers what the next scene needs. Use it in `with`."""

    def __init__(self, stage: Stage, *, position: int = 0) -> None:
        self.position = position
        self.has_result = False
        self.words = ""
        """What the agent has said in the text that is open, or said last."""
        self._stage = stage
        self._open = ExitStack()
        self._part: str | None = None
        self._speech: Speech | None = None

    def show(self, event: SeenEvent) -> None:
        self.position = event.number
        data = event.data
        match event.type:
            case "input.accepted":
                self._stage.line("you", data["text"])
            case "input.delivered" if self.has_result:
                self._log(event, "your second message goes to the model, with the tool's result")
            case "call.started":
                self._stage.line("tool", f"{data['tool']}({_arguments(data['args'])}) is running ...")
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

    def _text(self, event: SeenEvent) -> None:
        data = event.data
        if event.type == "part.started" and data["kind"] == "text":
            self._part, self.words = data["part"], ""
            self._speech = self._open.enter_context(self._stage.speech("agent"))
        elif self._speech is None or data.get("part") != self._part:
            return
        elif event.type == "part.delta":
            self.words += data["text"]
            self._speech.add(data["text"])
        elif event.type == "part.ended":
            self._close()

    def _close(self) -> None:
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


def _arguments(given: Any) -> str:
    args: dict[str, Any] = json.loads(given) if isinstance(given, str) else given
    return ", ".join(f"{name}={value!r}" for name, value in args.items())
