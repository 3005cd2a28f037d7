"""A chat with any pydantic-ai agent in a terminal; the conversation outlives it."""

import asyncio
import os
import shlex
import sys
import threading
from dataclasses import dataclass
from io import TextIOWrapper
from typing import NoReturn, cast

import structlog
import typer
from rich.console import Console
from rich.text import Text

from outlast.cli.app_file import AnyOutlast, load_app
from outlast.cli.chat_input import Wishes
from outlast.cli.chat_room import FAILED, STOPPED, ChatRoom, start_of_replay
from outlast.cli.chat_screen import LiveScreen, PlainScreen, Screen
from outlast.cli.line_editor import LineEditor
from outlast.errors import NotFound, OutlastError
from outlast.sessions.session import Session
from outlast.store.tasks import Task

CANNOT_BEGIN = 2


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line asks for."""

    app: str
    database: str | None
    session_id: str | None
    is_continuing: bool
    message: str | None

    def again(self, session: Session) -> str:
        """The command that goes on with a session."""
        database = [] if self.database is None else ["--database", self.database]
        return shlex.join(["outlast", "chat", self.app, *database, "--session", session.id])


def run(wanted: Wanted) -> NoReturn:
    """Talk until the person leaves or the message is answered; ends with an exit code."""
    _prepare_streams()
    try:
        if wanted.session_id is not None and wanted.is_continuing:
            raise OutlastError("Give either --session or --continue.")
        outlast = load_app(wanted.app, database=wanted.database)
        code = asyncio.run(_run(outlast, wanted))
    except OutlastError as exc:
        _complain(exc)
        code = CANNOT_BEGIN
    _leave(code)


async def _run(outlast: AnyOutlast, wanted: Wanted) -> int:
    console = Console(highlight=False)
    is_live = wanted.message is None and sys.stdin.isatty() and console.is_terminal and not console.is_dumb_terminal
    editor = LineEditor() if is_live else None
    with Wishes(editor) as wishes:
        async with outlast:
            session, is_new = await _session(outlast, wanted)
            try:
                if wanted.message is not None:
                    return await _ask(outlast, session, wanted, wishes)
                screen = PlainScreen(console) if editor is None else LiveScreen(console, editor)
                return await _talk(outlast, session, wanted, wishes, screen, is_new=is_new)
            except OutlastError as exc:
                _complain(exc)
                return FAILED
            finally:
                wishes.leave_on_interrupt(STOPPED)


async def _session(outlast: AnyOutlast, wanted: Wanted) -> tuple[Session, bool]:
    """The session that is wanted, and whether it is new."""
    if wanted.session_id is not None:
        try:
            return await outlast.sessions.get(wanted.session_id), False
        except NotFound as exc:
            raise OutlastError(f"There is no session {wanted.session_id} in this database.") from exc
    if wanted.is_continuing:
        for latest in await outlast.sessions.list(limit=1):
            return latest, False
    return await outlast.sessions.create(), True


async def _ask(outlast: AnyOutlast, session: Session, wanted: Wanted, wishes: Wishes) -> int:
    """The answer goes to stdout, everything else to stderr."""
    assert wanted.message is not None
    notes = Console(stderr=True, highlight=False)
    after = (await session.snapshot())["last_event"]
    with PlainScreen(Console(highlight=False), notes=notes) as screen:
        room = ChatRoom(outlast, session, screen, wishes, after=after)
        code = await room.ask(wanted.message)
        await _say_goodbye(room, screen, wanted)
        return code


async def _talk(
    outlast: AnyOutlast, session: Session, wanted: Wanted, wishes: Wishes, screen: Screen, *, is_new: bool
) -> int:
    after = 0 if is_new else await start_of_replay(session)
    if isinstance(screen, LiveScreen):
        wishes.redraw = screen.draw
    with wishes.reading(sys.stdin.fileno()), screen:
        greeting = f"{'New session' if is_new else 'Session'} {session.id}. /help lists commands."
        screen.line(Text(greeting, style="dim"))
        room = ChatRoom(outlast, session, screen, wishes, after=after)
        code = await room.talk(is_interactive=sys.stdin.isatty())
        await _say_goodbye(room, screen, wanted)
    return code


async def _say_goodbye(room: ChatRoom, screen: Screen, wanted: Wanted) -> None:
    """What still goes on ends with this process: say what will become of it."""
    if room.has_turn:
        screen.line(Text("The turn is not over: at the next start it goes on from its last step.", style="dim"))
    for task in await room.what_goes_on():
        screen.line(Text(f"↷ {task.title} ({task.id}) still runs. {_fate(task)}", style="dim"))
    screen.line(Text(f"Go on with: {wanted.again(room.session)}", style="dim"))


def _fate(task: Task) -> str:
    if task.may_run_again:
        return "It runs again at the next start."
    return (
        "If it does not end in the next seconds, the agent is told at the next start that it may or may not have "
        "taken effect."
    )


def _complain(exc: OutlastError) -> None:
    Console(stderr=True, highlight=False).print(Text(exc.message), soft_wrap=True)


def _prepare_streams() -> None:
    """A terminal that lacks a character shows another; warnings never stand between the words of an answer."""
    for stream in (sys.stdout, sys.stderr):
        cast(TextIOWrapper, stream).reconfigure(errors="replace")
    if not structlog.is_configured():
        structlog.configure(
            wrapper_class=structlog.make_filtering_bound_logger("warning"),
            logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
            cache_logger_on_first_use=False,
        )


def _leave(code: int) -> NoReturn:
    """Threads of sync tools cannot be ended and would keep the process; what they were doing is in the log."""
    sys.stdout.flush()
    sys.stderr.flush()
    if any(thread.name.startswith("outlast-tool") for thread in threading.enumerate()):
        os._exit(code)
    raise typer.Exit(code)
