"""The demo's view of its session: what a chat would show, remarks on it, and what the play decides by."""

from outlast.cli.demo.agent import ASKING_TOOL
from outlast.cli.demo.narration import Narrator
from outlast.cli.terminal.session_view import SessionView
from outlast.events.event import Event


class Watcher:
    """Takes events one by one, from however many processes."""

    def __init__(self, narrator: Narrator) -> None:
        self.position = 0
        """The number of the last event that was seen."""
        self.has_result = False
        """Whether a call has ended with a result."""
        self.words = ""
        """What the agent has said in the text that is open, or said last."""
        self._narrator = narrator
        self._view = SessionView(narrator.screen)
        self._part: str | None = None

    def show(self, event: Event) -> None:
        self.position = event.number or self.position
        self._follow_text(event)
        self._view.show(event)
        self._remark(event)

    def cut_off(self) -> None:
        """The text that is open ends here, in the middle."""
        self._narrator.screen.say(" --")
        self._narrator.screen.end_saying()

    def _follow_text(self, event: Event) -> None:
        data = event.data
        if event.type == "part.started" and data["kind"] == "text":
            self._part, self.words = data["part"], ""
        elif event.type == "part.delta" and data["part"] == self._part:
            self.words += data["text"]

    def _remark(self, event: Event) -> None:
        data = event.data
        match event.type:
            case "call.ended" if "task_id" in data and data["tool"] == ASKING_TOOL:
                self._narrator.remark(event, "it has not run: a task waits for a person, without a process")
            case "request.closed":
                self._narrator.remark(event, f"{data['how']} by {data['by']}")
            case "call.ended" if "task_id" in data:
                self._narrator.remark(event, "past its budget, the call goes on as a task")
            case "call.ended":
                self.has_result = True
                self._narrator.remark(event, "the tool's result is committed")
            case "input.delivered" if data["kind"] == "wake":
                self._narrator.remark(event, "the task's end wakes the conversation")
            case "turn.resumed":
                dropped = ", ".join(data["dropped"])
                self._narrator.remark(event, f"attempt {data['attempt']}; the broken text (part {dropped}) is dropped")
            case _:
                return
