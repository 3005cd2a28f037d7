"""What can be typed in a chat besides messages: lines that begin with a slash."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from pydantic_core import from_json
from rich.text import Text

from outlast.cli.chat.backend import AnySession, ChatBackend
from outlast.cli.terminal import words
from outlast.cli.terminal.screen import Screen
from outlast.errors import InvalidInput, OutlastError
from outlast.wire.task import Task

HELP = """\
/tasks         the background tasks of this conversation
/cancel ID     cancel a task
/approve ID    let a call run that waits for your word
/refuse ID WHY keep it from running
/reply ID TEXT answer what a task asks; JSON where it asks for more than a text
/output ID     what a task has put out so far
/stop          stop the turn, as Ctrl-C does
/retry         go on after a turn that failed or was stopped
/quit          leave, as Ctrl-D does
//text         send a message that begins with a slash
While the agent works, what you type reaches it at its next step."""
SHOWN_TASKS = 20
CANCEL_SECONDS = 2.0
STYLES = {"succeeded": "green", "failed": "red", "canceled": "yellow"}


class Commands:
    def __init__(self, backend: ChatBackend, session: AnySession, screen: Screen) -> None:
        self._backend = backend
        self._session = session
        self._screen = screen

    async def run(self, line: str) -> bool:
        """Do what the line says; False when it says to quit. What cannot be done is told."""
        name, _, argument = line[1:].partition(" ")
        try:
            match name:
                case "quit" | "exit":
                    return False
                case "help":
                    self._say(HELP)
                case "tasks":
                    await self._tasks()
                case "cancel":
                    await self._cancel(argument.strip())
                case "approve":
                    await self._backend.approve((await self._asking(argument, "approval"))[0].id)
                case "refuse":
                    task, why = await self._asking(argument, "approval")
                    await self._backend.refuse(task.id, reason=why)
                case "reply":
                    task, said = await self._asking(argument, "question")
                    await self._backend.reply(task.id, _answer(task, said))
                case "output":
                    await self._output(argument.strip())
                case "stop":
                    if await self._session.stop() is None:
                        self._say("Nothing runs.")
                case "retry":
                    await self._session.retry()
                case _:
                    self._say(f"There is no /{name}. /help lists what there is.")
        except OutlastError as exc:
            self._screen.line(Text(exc.message, style="red"))
        return True

    async def _tasks(self) -> None:
        found = await self._backend.tasks(self._session.id, limit=SHOWN_TASKS)
        if not found:
            self._say("No tasks: a call becomes one when it outruns its budget.")
        for task in found:
            self._screen.line(_row(task))

    async def _cancel(self, given: str) -> None:
        task = await self._find(given, is_open=True)
        after = await self._backend.cancel(task.id, wait=CANCEL_SECONDS)
        if not after.is_over:
            self._say(f"{after.title} was asked to cancel and has not confirmed it yet.")
        elif after.state != "canceled":
            self._say(f"{after.title} {after.state} before it could be canceled.")

    async def _output(self, given: str) -> None:
        task = await self._find(given, is_open=False)
        piece = await self._backend.output(task.id)
        if not piece.total:
            self._say(f"{task.title} has put out nothing.")
        while piece.text:
            if piece.cut:
                self._say(f"({piece.cut} characters are no longer kept)")
            self._screen.line(Text(piece.text.removesuffix("\n")))
            piece = await self._backend.output(task.id, offset=piece.next_offset)

    async def _asking(self, argument: str, kind: str) -> tuple[Task, str]:
        """The task that asks for this, of this conversation and those below it, and the words behind its id.

        Without an id it is the only one.
        """
        found = [
            each
            for each in await self._backend.requests(self._session.id)
            if each.request and each.request.kind == kind
        ]
        first, _, rest = argument.strip().partition(" ")
        named = [each for each in found if first and each.id.endswith(first)]
        if len(named) == 1:
            return named[0], rest.strip()
        if len(found) == 1:
            return found[0], argument.strip()
        raise InvalidInput(f"Say which task: {_ids(found)}." if found else "There is no task here that asks for that.")

    async def _find(self, given: str, *, is_open: bool) -> Task:
        """The task with this id, or whose id ends so; without one, the only task there is."""
        known = await self._backend.tasks(self._session.id, is_open=is_open)
        found = [task for task in known if task.id == given] or [task for task in known if task.id.endswith(given)]
        if len(found) == 1:
            return found[0]
        raise InvalidInput(_which(given, found, known))

    def _say(self, text: str) -> None:
        for line in text.splitlines():
            self._screen.line(Text(line, style="dim"))


def _answer(task: Task, said: str) -> Any:
    """A text is a text; where something else is asked for, it is read as JSON if it can be."""
    schema = task.request.schema_ if task.request is not None else None
    if schema is None or schema.get("type") == "string":
        return said
    try:
        return from_json(said)
    except ValueError:
        return said


def _which(given: str, found: Sequence[Task], known: Sequence[Task]) -> str:
    if not known:
        return "There is no task here for that."
    if given and not found:
        return f"There is no task {given!r} here for that: it can be {_ids(known)}."
    return f"Say which task: {_ids(found)}."


def _ids(found: Sequence[Task]) -> str:
    return ", ".join(f"{task.id} ({task.title})" for task in found[:SHOWN_TASKS])


def _row(task: Task) -> Text:
    state = "cancel requested" if task.is_cancel_requested and not task.is_over else task.shown_state
    if task.error is not None and task.settled is None:
        state = f"{state} ({task.error['kind']})"
    said = [words.progress_line(task.progress) if not task.is_over else "", task.detail or ""]
    if task.ran_seconds is not None:
        said.append(words.duration(timedelta(seconds=task.ran_seconds)))
    return Text.assemble(
        f"{task.id}  ",
        (task.name, "bold"),
        "  " if task.narration else f"({words.arguments(task.args)})  ",
        (state, STYLES.get(task.state, "")),
        ("".join(f"  {each}" for each in said if each), "dim"),
    )
