"""A chat with any pydantic-ai agent in a terminal; the conversation outlives it."""

import os
import shlex
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import NoReturn

from rich.console import Console
from rich.text import Text

from outlast.cli import target
from outlast.cli.app_file import AnyOutlast, load_app
from outlast.cli.asking import say
from outlast.cli.chat import error_log
from outlast.cli.chat.backend import AnySession, ChatBackend, LocalBackend, RemoteBackend
from outlast.cli.chat.error_log import ErrorDetails
from outlast.cli.chat.input import InputQueue
from outlast.cli.chat.loop import FAILED, STOPPED, ChatLoop, start_of_replay
from outlast.cli.connected import connected
from outlast.cli.server import shutdown
from outlast.cli.server_file import ServerFile
from outlast.cli.target import Target
from outlast.cli.terminal.console import console
from outlast.cli.terminal.screen import PlainScreen, Screen, WrappingScreen
from outlast.cli.terminal.stream import answers
from outlast.errors import DatabaseInUse, NotFound, OutlastError

CANNOT_START = 2


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """What the command line asks for."""

    app: str | None
    database: str | None
    session_id: str | None
    is_continuing: bool
    message: str | None
    url: str | None
    token: str | None
    agent: str | None

    def continue_command(self, session: AnySession) -> str:
        """The command that goes on with a session."""
        app = [] if self.app is None else [self.app]
        url = [] if self.url is None else ["--url", self.url]
        database = [] if self.database is None else ["--database", self.database]
        return shlex.join(["outlast", "chat", *app, *url, *database, "--session", session.id])


def run(options: ChatOptions) -> NoReturn:
    """Chat until the person quits or the message is answered; ends with an exit code."""
    shutdown.run_and_exit(_start(options, error_log.configure()))


async def _start(options: ChatOptions, details: ErrorDetails) -> int:
    out = _stdout(options)  # before the app is loaded: it may print
    try:
        outlast = None if options.app is None else load_app(options.app, database=options.database)
        if outlast is not None:
            details.mask = outlast.secrets.mask
        return await _run(outlast, options, out, details)
    except OutlastError as exc:
        say(exc.message)
        return CANNOT_START


async def _run(outlast: AnyOutlast | None, options: ChatOptions, out: Console, details: ErrorDetails) -> int:
    with InputQueue() as inputs:
        async with _backend(outlast, options) as backend:
            session, is_new = await _session(backend, options)
            try:
                # What was said before is for a person who looks on, not for a program that reads answers.
                is_replayed = sys.stdin.isatty() and options.message is None and not is_new
                after = await start_of_replay(session) if is_replayed else session.last_event
                async with _screen(options, inputs, out) as screen:
                    loop = ChatLoop(backend, session, screen, inputs, details.explain)
                    code = await _chat(loop, options, after=after, is_new=is_new)
                # Said when the terminal is given back: a Ctrl-C that follows is a signal again, and nobody misses it.
                await _say_how_to_continue(loop, options)
                return code
            except OutlastError as exc:
                say(exc.message)
                return FAILED
            finally:
                inputs.exit_on_interrupt(STOPPED)


def _is_person(options: ChatOptions) -> bool:
    return sys.stdin.isatty() and options.message is None


def _stdout(options: ChatOptions) -> Console:
    """For a program that reads it, answers alone: whatever the app prints goes to stderr."""
    return console() if _is_person(options) else console(answers())


@asynccontextmanager
async def _screen(options: ChatOptions, inputs: InputQueue, out: Console) -> AsyncGenerator[Screen]:
    """A prompt where a person types, else plain text: answers on stdout, the rest on stderr. What is typed is read."""
    is_person = _is_person(options)
    if is_person and out.is_terminal and not out.is_dumb_terminal:
        # Only here: pipes start faster without it.
        from outlast.cli.chat.prompt import Prompt

        async with Prompt(out, inputs.put) as prompt:
            with WrappingScreen(prompt) as screen:
                yield screen
        return
    reading = nullcontext() if options.message is not None else inputs.lines_from(sys.stdin.fileno())
    with reading, PlainScreen(out, notes=None if is_person else console(stderr=True)) as screen:
        yield screen


@asynccontextmanager
async def _backend(outlast: AnyOutlast | None, options: ChatOptions) -> AsyncGenerator[ChatBackend]:
    """This process, unless a server is asked for or holds the database."""
    async with AsyncExitStack() as stack:
        yield await _enter(stack, outlast, options)


async def _enter(stack: AsyncExitStack, outlast: AnyOutlast | None, options: ChatOptions) -> ChatBackend:
    if outlast is None:
        place = target.find(options.url or os.environ.get("OUTLAST_URL"), options.token)
    else:
        try:
            return LocalBackend(await stack.enter_async_context(outlast))
        except DatabaseInUse as exc:
            place = _server_of(outlast, exc)
            say(f"A server has this database: talking with it at {place.url}")
    return RemoteBackend(await stack.enter_async_context(connected(place)))


def _server_of(outlast: AnyOutlast, held: DatabaseInUse) -> Target:
    place = ServerFile.beside(outlast.path).read()
    if place is None or str(place.pid) != held.details.get("pid"):
        raise held
    return Target(place.url, place.token)


async def _session(backend: ChatBackend, options: ChatOptions) -> tuple[AnySession, bool]:
    """The session that the options name, and whether it is new."""
    if options.session_id is not None:
        try:
            return await backend.get(options.session_id), False
        except NotFound as exc:
            raise OutlastError(f"There is no session {options.session_id} here.") from exc
    latest = await backend.latest(options.agent) if options.is_continuing else None
    return (latest, False) if latest is not None else (await backend.create(options.agent), True)


async def _chat(loop: ChatLoop, options: ChatOptions, *, after: int, is_new: bool) -> int:
    """One message and its answer, or all that is typed. `after`: the last event that need not be shown."""
    if options.message is not None:
        return await loop.ask(options.message)
    greeting = f"{'New session' if is_new else 'Session'} {loop.session.id}. /help lists commands."
    loop.screen.line(Text(greeting, style="dim"))
    return await loop.talk(after=after, is_interactive=sys.stdin.isatty())


async def _say_how_to_continue(loop: ChatLoop, options: ChatOptions) -> None:
    for line in await loop.unfinished():
        loop.screen.line(Text(line, style="dim"))
    loop.screen.line(Text(f"Go on with: {options.continue_command(loop.session)}", style="dim"))
