"""A chat as it runs: what is typed goes to the session, what happens in it is shown, until the person leaves."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from typing import Any, Literal, TypeVar

from rich.text import Text

from outlast.cli.chat_commands import Commands
from outlast.cli.chat_home import AnySession, ChatHome
from outlast.cli.chat_input import Key, Line, Wish, Wishes
from outlast.cli.chat_screen import LiveScreen, Screen
from outlast.cli.chat_view import ChatView
from outlast.cli.waiting import Waiting
from outlast.client.session import Session as RemoteSession
from outlast.errors import OutlastError

COMPLETED, FAILED, STOPPED, TERMINATED = 0, 1, 130, 143
SHOWN_EXCHANGES = 3
_TICK_SECONDS = 0.5
_SIGNALS = (Key.INTERRUPT, Key.TERMINATE)
T = TypeVar("T")


class Signalled(Exception):
    """Somebody wants this program to end what it does."""

    def __init__(self, key: Wish) -> None:
        super().__init__(key)
        self.code = TERMINATED if key is Key.TERMINATE else STOPPED


class ChatRoom:
    """One session on one screen."""

    def __init__(
        self, home: ChatHome, session: AnySession, screen: Screen, wishes: Wishes, explain: Callable[[str], str]
    ) -> None:
        self.session = session
        self.screen = screen
        self._home = home
        self._wishes = wishes
        self._kept: deque[Wish] = deque()
        """What was typed while something else was waited for."""
        self._view = ChatView(screen, explain=explain)
        self._commands = Commands(home, session, screen)
        self._waiting = Waiting(self._why_waits, self._view.note)
        self._position = 0
        self._moved = asyncio.Event()

    def reading(self, descriptor: int) -> AbstractContextManager[None]:
        """Meanwhile, what is typed there is read, and drawn where there is a prompt."""
        if isinstance(self.screen, LiveScreen):
            self._wishes.redraw = self.screen.draw
        return self._wishes.reading(descriptor)

    async def talk(self, *, after: int, is_interactive: bool) -> int:
        """Until the person leaves, or until a pipe has ended and all of it is answered. Gives the exit code.

        `after`: the number of the last event that need not be shown.
        """
        self._position = after
        async with _group() as group:
            showing = self._show_in(group)
            if self.screen.has_status:
                showing.append(group.create_task(self._tick(), name="chat status"))
            try:
                code = await (self._take_wishes() if is_interactive else self._take_pipe())
            except Signalled as signalled:
                code = signalled.code
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
            except Signalled as signalled:
                code = await self._break_off(signalled)
            for each in showing:
                each.cancel()
        return code

    def _show_in(self, group: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        watching = group.create_task(self._waiting.watch(), name="why it waits")
        return [group.create_task(self._follow(), name="chat events"), watching]

    async def _why_waits(self) -> str | None:
        return await self._home.why_waits(self.session.id)

    async def fates(self) -> Sequence[str]:
        """What becomes of that which goes on."""
        return await self._home.fates(self.session.id, has_turn=self.has_turn)

    @property
    def has_turn(self) -> bool:
        return self._view.now.turn_id is not None

    async def _take_wishes(self) -> int:
        while True:
            wish = await self._next()
            match wish:
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
            while isinstance(wish := await self._next(), Line):
                if not await self._take_line(wish.text, when_busy="queue"):
                    break
            if wish in _SIGNALS:
                raise Signalled(wish)
            return await self._finish()
        except Signalled as signalled:
            return await self._break_off(signalled)

    async def _next(self) -> Wish:
        return self._kept.popleft() if self._kept else await self._wishes.next()

    async def _take_line(self, text: str, *, when_busy: Literal["steer", "queue"] = "steer") -> bool:
        """A message, a command or nothing. False: the person wants to leave. What is queued is waited for."""
        if not text.strip():
            return True
        if text.startswith("/") and not text.startswith("//"):
            return await self._commands.run(text)
        try:
            said = text.removeprefix("/") if text.startswith("//") else text
            sent = await self.session.send(said, when_busy=when_busy)
            if when_busy == "queue":
                await self._heeding(sent.outcome())
        except OutlastError as exc:
            self.screen.line(Text(exc.message, style="red"))
        return True

    async def _heeding(self, work: Coroutine[Any, Any, T]) -> T:
        """Do this; a signal meanwhile ends it with `Signalled`. What is typed meanwhile is kept for later."""
        working = asyncio.create_task(work, name="chat waits")
        try:
            while not working.done():
                wishing = asyncio.create_task(self._wishes.next(), name="chat signals")
                await asyncio.wait({working, wishing}, return_when=asyncio.FIRST_COMPLETED)
                if not wishing.done():
                    wishing.cancel()
                    with suppress(asyncio.CancelledError):
                        await wishing
                elif wishing.result() in _SIGNALS:
                    raise Signalled(wishing.result())
                else:
                    self._kept.append(wishing.result())
            return working.result()
        finally:
            working.cancel()

    async def _finish(self) -> int:
        """Wait until the session has settled; a signal meanwhile ends the wait."""
        await self._heeding(self.session.settled())
        await self._catch_up()
        return FAILED if self._view.last_end == "turn.failed" else COMPLETED

    async def _break_off(self, signalled: Signalled) -> int:
        if signalled.code == STOPPED:
            with suppress(Signalled):
                await self._stop()
                await self._catch_up()
        return signalled.code

    async def _stop(self) -> None:
        """A second Ctrl-C does not wait for it."""
        try:
            await self._heeding(self.session.stop())
        except OutlastError as exc:
            self.screen.line(Text(exc.message, style="red"))

    async def _follow(self) -> None:
        async with self.session.events(after=self._position) as stream:
            async for event in stream:
                self._view.show(event)
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
