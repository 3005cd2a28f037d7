"""How a session's events look in a terminal: in `chat`, `send`, `attach` and `demo`."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from rich.text import Text

from outlast.cli.terminal import words
from outlast.cli.terminal.activity import Activity, SeenCall, task_name
from outlast.cli.terminal.screen import Screen
from outlast.events.event import Event
from outlast.events.shown import in_words, unsaid

STOPPED = "Stopped. Type to go on, or /retry."
BROKEN_OFF = "(the words above were broken off and do not count)"
QUARTERS = 4


class SessionView:
    """Shows events one by one, in order, with their whole output. `last_end` is the type of the last end of a turn."""

    def __init__(
        self,
        screen: Screen,
        *,
        watched: str | None = None,
        explain: Callable[[str], str] = lambda text: text,
        ring: Callable[[], None] = lambda: None,
    ) -> None:
        """`watched`: the session's id, where nothing can be typed into it: hints then name commands.

        `explain` says what the person who runs the program may know of an error beside its text. `ring` is called when
        somebody is needed.
        """
        self.activity = Activity()
        self.last_end: str | None = None
        self._screen = screen
        self._watched = watched
        self._explain = explain
        self._ring = ring
        self._parts: dict[str, str] = {}
        self._has_rows = False
        self._said: dict[str, list[str]] = {}
        """Words of the running turn, by response."""
        self._shown_inputs: set[str] = set()
        self._quarters: dict[str, int] = {}
        self._held_back: dict[str, dict[str, Any]] = {}
        """Tasks whose progress is told when the open text has ended."""

    def show(self, event: Event) -> None:
        was_idle = self.activity.turn_id is None
        self.activity.add(event)
        match event.type.partition(".")[0]:
            case "input":
                self._input(event, was_idle=was_idle)
            case "part":
                self._part(event)
            case "call":
                self._call(event)
            case "task":
                self._task(event)
            case "turn" | "response" | "session":
                self._turn(event)
            case "request":
                self._request(event)
            case _:
                pass
        self.refresh()

    def refresh(self) -> None:
        """Show how things stand; time has passed even if nothing happened."""
        rows = self.activity.rows() if self._screen.has_status else []
        if rows or self._has_rows:
            self._screen.status(rows)
        self._has_rows = bool(rows)

    def note(self, text: str, style: str = "dim") -> None:
        self._screen.line(Text(text, style=style))

    def _input(self, event: Event, *, was_idle: bool) -> None:
        """A message that need not wait is shown at once; one that waits is shown again where the model gets it."""
        data = event.data
        if data.get("kind") != "message":
            return
        if event.type == "input.accepted" and was_idle:
            self._shown_inputs.add(data["input_id"])
            self._you(data["text"])
        elif event.type == "input.accepted" and not self._screen.has_status:
            self.note(f"… waits: {words.shortened(data['text'], 60)}", "cyan dim")
        elif event.type == "input.delivered" and data["input_id"] not in self._shown_inputs:
            self._you(data["text"], " (delivered)")

    def _you(self, text: str, remark: str = "") -> None:
        self._screen.line(Text.assemble(("you › ", "bold cyan"), (text, "cyan"), (remark, "dim")))

    def _part(self, event: Event) -> None:
        data = event.data
        part = data["part"]
        if event.type == "part.started":
            self._parts[part] = data["kind"]
        elif event.type == "part.delta" and self._parts.get(part) in ("text", "reasoning"):
            is_reasoning = self._parts[part] == "reasoning"
            if not is_reasoning:
                self._said.setdefault(part.rpartition(".")[0], []).append(data["text"])
            self._screen.say(data["text"], is_reasoning=is_reasoning)
        elif event.type == "part.ended":
            self._parts.pop(part, None)
            self._screen.end_saying()
            self._tell_held_back()

    def _call(self, event: Event) -> None:
        data = event.data
        if event.type == "call.waiting":
            self.note(f"⋯ {data['tool']}: {data['reason']}")
        elif event.type == "call.started" and not self._screen.has_status:
            self.note(f"⋯ {self.activity.begun[data['call_id']].name}")
        elif event.type == "call.ended":
            self._call_ended(event)

    def _call_ended(self, event: Event) -> None:
        data = event.data
        call = self.activity.begun.get(data["call_id"]) or SeenCall(data["tool"], None, event.at)
        call.narration = data.get("narration") or call.narration
        passed = words.duration(event.at - call.started_at)
        if data.get("task_id"):
            line = Text.assemble(
                ("↷ ", "yellow"), call.name, (f" goes on in the background as {data['task_id']}", "dim")
            )
        elif data["outcome"] == "success":
            line = Text.assemble(("✓ ", "green"), call.name, (f" {passed}", "dim"))
        else:
            said = words.shortened(self._explain(str(in_words(data["part"].get("content", "")))), 300)
            # Of a call whose process ended, the time until somebody noticed would count as well.
            after = "" if call.is_cut else f" after {passed}"
            line = Text.assemble(("✗ ", "red"), call.name, (f" {data['outcome']}{after}: {said}", "dim"))
        self._screen.line(line)

    def _task(self, event: Event) -> None:
        task = event.data["task"]
        if event.type == "task.ended":
            self._task_ended(task)
        elif event.type in ("task.created", "task.changed") and not self._screen.has_status:
            self._tell_quarter(task)

    def _request(self, event: Event) -> None:
        """Somebody is needed: said aloud, with what to type."""
        if event.type != "request.opened":
            return
        request, task = event.data["request"], event.task_id
        how = {
            "approval": f"{words.arguments(request.get('args'))}  /approve or /refuse",
            "connection": f"outlast connections set {request.get('provider')}",
        }.get(request["kind"], "/reply")
        self._screen.line(
            Text.assemble(("? ", "bold yellow"), (f"{request['prompt']}", "bold"), (f"  {how}  {task}", "dim"))
        )
        self._ring()

    def _task_ended(self, task: dict[str, Any]) -> None:
        ran = task.get("ran_seconds")
        after = "" if ran is None else f" after {words.duration(timedelta(seconds=ran))}"
        name = task_name(task)
        if task["state"] == "succeeded":
            line = Text.assemble(("✓ ", "green"), (f"{name} finished{after}", "bold"))
        elif task["state"] == "canceled":
            line = Text.assemble(("■ ", "yellow"), (f"{name} was canceled{after}", "bold"))
        else:
            error = task["error"] or {"kind": "failed", "message": ""}
            # How long it ran is then not known: the time until somebody noticed would count as well.
            is_cut = error["kind"] == "interrupted"
            how = "was interrupted when its process ended" if is_cut else f"failed{after} ({error['kind']})"
            why = self._explain(str(error["message"]))
            line = Text.assemble(("✗ ", "red"), (f"{name} {how}: {why}", "bold"))
        line.append(f"  {task['id']}", "dim")
        if self.activity.is_held and task["wake"] != "silent":
            line.append("  The agent hears of it when you go on.", "dim")
        self._screen.line(line)
        self._quarters.pop(task["id"], None)
        self._held_back.pop(task["id"], None)

    def _tell_quarter(self, task: dict[str, Any]) -> None:
        """Where no status is seen, progress is a line at each quarter; never in the middle of a sentence."""
        done = words.share(task["progress"])
        if done is None:
            return
        quarter = int(done * QUARTERS)
        if quarter <= self._quarters.get(task["id"], 0):
            return
        if any(kind in ("text", "reasoning") for kind in self._parts.values()):
            self._held_back[task["id"]] = task
        else:
            self._quarters[task["id"]] = quarter
            self.note(f"↷ {task_name(task)} {words.progress_line(task['progress'])}")

    def _tell_held_back(self) -> None:
        held_back, self._held_back = self._held_back, {}
        for task in held_back.values():
            self._tell_quarter(task)

    def _turn(self, event: Event) -> None:
        data = event.data
        match event.type:
            case "turn.started":
                self._said.clear()
            case "turn.resumed":
                self._end_parts()
                self.note("↻ The process ended in the middle of this; it goes on from its last step.")
            case "response.dropped":
                self._end_parts()
                again = "" if data.get("retry_in") is None else f"; trying again in {data['retry_in']:g} s"
                self.note(f"{BROKEN_OFF if data['dropped'] else '↻ the model did not answer'}{again}")
            case "session.flagged" if "woken_turns" not in data:
                self.note(data.get("message") or data["reason"], "yellow")
            case "session.flagged":
                self.note(f"■ The agent woke itself {data['woken_turns']} times; it waits for you now.", "yellow")
            case _ if event.is_terminal:
                self._ended(event)
            case _:
                pass

    def _ended(self, event: Event) -> None:
        data = event.data
        self.last_end = event.type
        self._end_parts()
        if event.type == "turn.completed":
            self._say_result(data)
        elif event.type == "turn.stopped":
            how = STOPPED if self._watched is None else f"Stopped. {self._how_to_retry()} goes on."
            self._screen.line(Text.assemble(("■ ", "yellow"), (how, "dim")))
        else:
            hint = f" {self._how_to_retry()} tries again." if data.get("is_retryable") else ""
            self._screen.line(Text.assemble(("✗ ", "red"), f"{self._explain(data['message'])} ({data['kind']}){hint}"))

    def _end_parts(self) -> None:
        """Of a response that is over, or that nobody goes on with."""
        self._parts.clear()
        self._screen.end_saying()
        self._tell_held_back()

    def _how_to_retry(self) -> str:
        return "/retry" if self._watched is None else f"“outlast sessions retry {self._watched}”"

    def _say_result(self, data: dict[str, Any]) -> None:
        """What the model has not said itself: a closing line, or an output of the agent's type."""
        said = data.get("text") or unsaid(data.get("output"), map("".join, self._said.values()))
        if said:
            self._screen.say(said)
            self._screen.end_saying()
