"""A chat with any pydantic-ai agent in a terminal; the conversation outlives it."""

import os
import shlex
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import NoReturn

from rich.text import Text

from outlast.cli import chat_log, leaving, target
from outlast.cli.app_file import AnyOutlast, load_app
from outlast.cli.asking import say
from outlast.cli.chat_home import AnySession, ChatHome, LocalHome, RemoteHome
from outlast.cli.chat_input import Wishes
from outlast.cli.chat_log import Reasons
from outlast.cli.chat_room import FAILED, STOPPED, ChatRoom, start_of_replay
from outlast.cli.chat_screen import LiveScreen, PlainScreen, Screen
from outlast.cli.connected import connected
from outlast.cli.console import console
from outlast.cli.line_editor import LineEditor
from outlast.cli.server_file import ServerFile
from outlast.cli.target import Target
from outlast.errors import DatabaseInUse, NotFound, OutlastError

CANNOT_BEGIN = 2


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line asks for."""

    app: str | None
    database: str | None
    session_id: str | None
    is_continuing: bool
    message: str | None
    url: str | None
    token: str | None

    def again(self, session: AnySession) -> str:
        """The command that goes on with a session."""
        app = [] if self.app is None else [self.app]
        url = [] if self.url is None else ["--url", self.url]
        database = [] if self.database is None else ["--database", self.database]
        return shlex.join(["outlast", "chat", *app, *url, *database, "--session", session.id])


def run(wanted: Wanted) -> NoReturn:
    """Talk until the person leaves or the message is answered; ends with an exit code."""
    leaving.run(_begin(wanted, chat_log.begin()))


async def _begin(wanted: Wanted, reasons: Reasons) -> int:
    try:
        outlast = None if wanted.app is None else load_app(wanted.app, database=wanted.database)
        if outlast is not None:
            reasons.mask = outlast.secrets.mask
        return await _run(outlast, wanted, reasons)
    except OutlastError as exc:
        say(exc.message)
        return CANNOT_BEGIN


async def _run(outlast: AnyOutlast | None, wanted: Wanted, reasons: Reasons) -> int:
    screen = _screen(wanted)
    with Wishes(screen.editor if isinstance(screen, LiveScreen) else None) as wishes:
        async with _home(outlast, wanted) as home:
            session, is_new = await _session(home, wanted)
            try:
                return await _talk(ChatRoom(home, session, screen, wishes, reasons.beside), wanted, is_new=is_new)
            except OutlastError as exc:
                say(exc.message)
                return FAILED
            finally:
                wishes.leave_on_interrupt(STOPPED)


def _screen(wanted: Wanted) -> Screen:
    """Where a person types, a prompt; else the answers go to stdout and everything else to stderr."""
    shown = console()
    if wanted.message is not None or not sys.stdin.isatty():
        return PlainScreen(shown, notes=console(stderr=True))
    if shown.is_terminal and not shown.is_dumb_terminal:
        return LiveScreen(shown, LineEditor())
    return PlainScreen(shown)


@asynccontextmanager
async def _home(outlast: AnyOutlast | None, wanted: Wanted) -> AsyncGenerator[ChatHome]:
    """This process, unless a server is asked for or holds the database."""
    async with AsyncExitStack() as stack:
        yield await _enter(stack, outlast, wanted)


async def _enter(stack: AsyncExitStack, outlast: AnyOutlast | None, wanted: Wanted) -> ChatHome:
    if outlast is None:
        place = target.find(wanted.url or os.environ.get("OUTLAST_URL"), wanted.token)
    else:
        try:
            return LocalHome(await stack.enter_async_context(outlast))
        except DatabaseInUse as exc:
            place = _server_of(outlast, exc)
            say(f"A server has this database: talking with it at {place.url}")
    return RemoteHome(await stack.enter_async_context(connected(place)))


def _server_of(outlast: AnyOutlast, held: DatabaseInUse) -> Target:
    place = ServerFile.beside(outlast.path).read()
    if place is None or str(place.pid) != held.details.get("pid"):
        raise held
    return Target(place.url, place.token)


async def _session(home: ChatHome, wanted: Wanted) -> tuple[AnySession, bool]:
    """The session that is wanted, and whether it is new."""
    if wanted.session_id is not None:
        try:
            return await home.get(wanted.session_id), False
        except NotFound as exc:
            raise OutlastError(f"There is no session {wanted.session_id} here.") from exc
    latest = await home.latest() if wanted.is_continuing else None
    return (latest, False) if latest is not None else (await home.create(), True)


async def _talk(room: ChatRoom, wanted: Wanted, *, is_new: bool) -> int:
    """One message and its answer; or what is typed, after the last exchanges of a session that is gone on with."""
    screen, is_interactive = room.screen, sys.stdin.isatty()
    if wanted.message is not None:
        with screen:
            code = await room.ask(wanted.message)
            await _say_goodbye(room, screen, wanted)
            return code
    # What was said before belongs to a person who looks on, not to a program that reads answers.
    after = 0 if is_new else await start_of_replay(room.session) if is_interactive else room.session.last_event
    with room.reading(sys.stdin.fileno()), screen:
        greeting = f"{'New session' if is_new else 'Session'} {room.session.id}. /help lists commands."
        screen.line(Text(greeting, style="dim"))
        code = await room.talk(after=after, is_interactive=is_interactive)
        await _say_goodbye(room, screen, wanted)
    return code


async def _say_goodbye(room: ChatRoom, screen: Screen, wanted: Wanted) -> None:
    for fate in await room.fates():
        screen.line(Text(fate, style="dim"))
    screen.line(Text(f"Go on with: {wanted.again(room.session)}", style="dim"))
