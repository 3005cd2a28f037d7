"""The loop of a chat: what is typed goes to the session, its events are shown, until the person quits."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal, TypeVar

from rich.text import Text

from outlast.cli.chat.backend import AnySession, ChatBackend
from outlast.cli.chat.input import Input, InputQueue, Key, Line
from outlast.cli.chat.slash import Commands
from outlast.cli.terminal.console import ring
from outlast.cli.terminal.screen import Screen
from outlast.cli.terminal.session_view import SessionView
from outlast.cli.waiting import Waiting
from outlast.cli.whole_output import with_output
from outlast.client.session import Session as RemoteSession
from outlast.errors import OutlastError

COMPLETED, FAILED, STOPPED, TERMINATED = 0, 1, 130, 143
SHOWN_EXCHANGES = 3
_TICK_SECONDS = 0.5
_SIGNALS = (Key.INTERRUPT, Key.TERMINATE)
T = TypeVar("T")


class Interrupted(Exception):
    """A signal came while something was waited for."""

    def __init__(self, key: Input) -> None:
        super().__init__(key)
        self.code = TERMINATED if key is Key.TERMINATE else STOPPED


class ChatLoop:
    """One session on one screen."""

    def __init__(
        self,
        backend: ChatBackend,
        session: AnySession,
        screen: Screen,
        inputs: InputQueue,
        explain: Callable[[str], str],
    ) -> None:
        self.session = session
        self.screen = screen
        self._backend = backend
        self._inputs = inputs
        self._kept: deque[Input] = deque()
        """What was typed while something else was waited for."""
        self._view = SessionView(screen, explain=explain, ring=ring)
        self._commands = Commands(backend, session, screen)
        self._waiting = Waiting(self._why_waits, self._view.note)
        self._position = 0
        self._moved = asyncio.Event()

    async def talk(self, *, after: int, is_interactive: bool) -> int:
        """Until the person quits, or until a pipe has ended and all of it is answered. Gives the exit code.

        `after`: the number of the last event that need not be shown.
        """
        self._position = after
        async with _group() as group:
            showing = self._show_in(group)
            if self.screen.has_status:
                showing.append(group.create_task(self._tick(), name="chat status"))
            try:
                code = await (self._take_input() if is_interactive else self._take_pipe())
            except Interrupted as interrupted:
                code = interrupted.code
            await self._catch_up()
            for each in showing:
                each.cancel()
        return code

    async def ask(self, message: str) -> int:
        """One message, until it is answered and no task of it is open any more."""
        self._position = (await self.session.refresh()).last_event
        async with _group() as group:
            showing = self._show_in(group)
            try:
                await self.session.send(message)
                code = await self._finish()
            except Interrupted as interrupted:
                code = await self._stop_and_report(interrupted)
            for each in showing:
                each.cancel()
        return code

    def _show_in(self, group: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        watching = group.create_task(self._waiting.watch(), name="why it waits")
        return [group.create_task(self._follow(), name="chat events"), watching]

    async def _why_waits(self) -> str | None:
        return await self._backend.why_waits(self.session.id)

    async def unfinished(self) -> Sequence[str]:
        """What still runs, and what becomes of it: a line each."""
        return await self._backend.unfinished(self.session.id, has_turn=self.has_turn)

    @property
    def has_turn(self) -> bool:
        return self._view.activity.turn_id is not None

    async def _take_input(self) -> int:
        while True:
            match await self._next():
                case Line(text):
                    if not await self._take_line(text):
                        return COMPLETED
                case Key.INTERRUPT if self.has_turn:
                    await self._stop()
                case Key.INTERRUPT | Key.END:
                    return COMPLETED
                case Key.TERMINATE:
                    return TERMINATED

    async def _take_pipe(self) -> int:
        """A line after another: each is answered before the next is sent."""
        try:
            while isinstance(given := await self._next(), Line):
                if not await self._take_line(given.text, when_busy="queue"):
                    break
            if given in _SIGNALS:
                raise Interrupted(given)
            return await self._finish()
        except Interrupted as interrupted:
            return await self._stop_and_report(interrupted)

    async def _next(self) -> Input:
        return self._kept.popleft() if self._kept else await self._inputs.next()

    async def _take_line(self, text: str, *, when_busy: Literal["steer", "queue"] = "steer") -> bool:
        """A message, a command or nothing. False: the person wants to quit. What is queued is waited for."""
        if not text.strip():
            return True
        if text.startswith("/") and not text.startswith("//"):
            return await self._commands.run(text)
        try:
            said = text.removeprefix("/") if text.startswith("//") else text
            sent = await self.session.send(said, when_busy=when_busy)
            if when_busy == "queue":
                await self._unless_interrupted(sent.outcome())
        except OutlastError as exc:
            self.screen.line(Text(exc.message, style="red"))
        return True

    async def _unless_interrupted(self, work: Coroutine[Any, Any, T]) -> T:
        """Do this; a signal meanwhile ends it with `Interrupted`. What is typed meanwhile is kept for later."""
        working = asyncio.create_task(work, name="chat waits")
        try:
            while not working.done():
                taking = asyncio.create_task(self._inputs.next(), name="chat signals")
                await asyncio.wait({working, taking}, return_when=asyncio.FIRST_COMPLETED)
                if not taking.done():
                    taking.cancel()
                    with suppress(asyncio.CancelledError):
                        await taking
                elif taking.result() in _SIGNALS:
                    raise Interrupted(taking.result())
                else:
                    self._kept.append(taking.result())
            return working.result()
        finally:
            working.cancel()

    async def _finish(self) -> int:
        """Wait until the session has settled; a signal meanwhile ends the wait."""
        await self._unless_interrupted(self.session.settled())
        await self._catch_up()
        return FAILED if self._view.last_end == "turn.failed" else COMPLETED

    async def _stop_and_report(self, interrupted: Interrupted) -> int:
        if interrupted.code == STOPPED:
            with suppress(Interrupted):
                await self._stop()
        return interrupted.code

    async def _stop(self) -> None:
        """A second Ctrl-C does not wait for it. When it is over, its end is shown: from then on Ctrl-C leaves."""
        try:
            outcome = await self._unless_interrupted(self.session.stop())
            await self._unless_interrupted(self._catch_up())
            if outcome is None or outcome.state != "stopped":
                self.screen.line(Text("That turn had ended already. Ctrl-C again leaves.", style="dim"))
        except OutlastError as exc:
            self.screen.line(Text(exc.message, style="red"))

    async def _follow(self) -> None:
        async with self.session.events(after=self._position) as stream:
            async for event in stream:
                self._view.show(await with_output(self.session, event))
                self._position = stream.position
                self._moved.set()

    async def _catch_up(self) -> None:
        """Until everything that has happened by now is shown."""
        last = (await self.session.refresh()).last_event
        while self._position < last:
            self._moved.clear()
            await self._moved.wait()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            self._view.refresh()


@asynccontextmanager
async def _group() -> AsyncGenerator[asyncio.TaskGroup]:
    """What goes wrong in one of them ends all, and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from failed


async def start_of_replay(session: AnySession, *, exchanges: int = SHOWN_EXCHANGES) -> int:
    """The number after which the last exchanges of a session begin."""
    before: list[int] = [0]
    is_remote = isinstance(session, RemoteSession)
    accepted = session.events(follow=False, types=["input.accepted"]) if is_remote else session.events(follow=False)
    async with accepted as stream:
        async for event in stream:
            if event.type == "input.accepted" and event.data["kind"] == "message" and event.number is not None:
                before.append(event.number - 1)
    return before[-exchanges:][0] if len(before) > exchanges else 0
