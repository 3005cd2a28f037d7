"""A chat as it runs: what is typed goes to the session, what happens in it is shown, until the person leaves."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from rich.text import Text

from outlast.cli.chat_commands import Commands
from outlast.cli.chat_input import Key, Line, Wish, Wishes
from outlast.cli.chat_screen import Screen
from outlast.cli.chat_view import ChatView
from outlast.errors import OutlastError
from outlast.runtime import Outlast
from outlast.sessions.session import Session
from outlast.store.tasks import Task

COMPLETED, FAILED, STOPPED, TERMINATED = 0, 1, 130, 143
SHOWN_EXCHANGES = 3
_TICK_SECONDS = 0.5


class ChatRoom:
    """One session on one screen."""

    def __init__(
        self, outlast: Outlast[Any, Any], session: Session, screen: Screen, wishes: Wishes, *, after: int
    ) -> None:
        """`after`: the number of the last event that need not be shown."""
        self.session = session
        self._outlast = outlast
        self._screen = screen
        self._wishes = wishes
        self._view = ChatView(screen)
        self._commands = Commands(outlast, session, screen)
        self._position = after
        self._moved = asyncio.Event()

    async def talk(self, *, is_interactive: bool) -> int:
        """Until the person leaves, or until a pipe has ended and all of it is answered. Gives the exit code."""
        async with _group() as group:
            showing = [group.create_task(self._follow(), name="chat events")]
            if self._screen.has_status:
                showing.append(group.create_task(self._tick(), name="chat status"))
            code = await self._take_wishes(is_interactive=is_interactive)
            await self._catch_up()
            for each in showing:
                each.cancel()
        return code

    async def ask(self, message: str) -> int:
        """One message, until it is answered and no task of it is open any more."""
        async with _group() as group:
            following = group.create_task(self._follow(), name="chat events")
            await self.session.send(message)
            code = await self._finish()
            following.cancel()
        return code

    async def what_goes_on(self) -> Sequence[Task]:
        return await self._outlast.tasks.list(session_id=self.session.id, is_open=True)

    @property
    def has_turn(self) -> bool:
        return self._view.now.turn_id is not None

    async def _take_wishes(self, *, is_interactive: bool) -> int:
        while True:
            wish = await self._wishes.next()
            match wish:
                case Line(text):
                    if not await self._take_line(text):
                        return COMPLETED
                case Key.INTERRUPT if self.has_turn:
                    await self._stop()
                case Key.INTERRUPT:
                    return COMPLETED if is_interactive else STOPPED
                case Key.TERMINATE:
                    return TERMINATED
                case Key.END:
                    return COMPLETED if is_interactive else await self._finish()

    async def _take_line(self, text: str) -> bool:
        """A message, a command or nothing. False: the person wants to leave."""
        if not text.strip():
            return True
        if text.startswith("/") and not text.startswith("//"):
            return await self._commands.run(text)
        try:
            await self.session.send(text.removeprefix("/") if text.startswith("//") else text)
        except OutlastError as exc:
            self._screen.line(Text(exc.message, style="red"))
        return True

    async def _finish(self) -> int:
        """Wait until the session has settled; a signal meanwhile ends the wait."""
        settling = asyncio.create_task(self.session.settled(), name="chat settles")
        try:
            while not settling.done():
                wishing = asyncio.create_task(self._wishes.next(), name="chat signals")
                await asyncio.wait({settling, wishing}, return_when=asyncio.FIRST_COMPLETED)
                if not wishing.done():
                    wishing.cancel()
                    with suppress(asyncio.CancelledError):
                        await wishing
                elif wishing.result() in (Key.INTERRUPT, Key.TERMINATE):
                    return await self._break_off(wishing.result())
            settling.result()
        finally:
            settling.cancel()
        await self._catch_up()
        return FAILED if self._view.last_end == "turn.failed" else COMPLETED

    async def _break_off(self, wish: Wish) -> int:
        if wish is Key.TERMINATE:
            return TERMINATED
        await self._stop()
        await self._catch_up()
        return STOPPED

    async def _stop(self) -> None:
        try:
            await self.session.stop()
        except OutlastError as exc:
            self._screen.line(Text(exc.message, style="red"))

    async def _follow(self) -> None:
        async with self.session.events(after=self._position) as stream:
            async for event in stream:
                self._view.show(event)
                self._position = stream.position
                self._moved.set()

    async def _catch_up(self) -> None:
        """Until everything that has happened by now is shown."""
        last = (await self.session.snapshot())["last_event"]
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


async def start_of_replay(session: Session, *, exchanges: int = SHOWN_EXCHANGES) -> int:
    """The number after which the last exchanges of a session begin."""
    before: list[int] = [0]
    previous = 0
    async with session.events(follow=False) as stream:
        async for event in stream:
            if event.type == "input.accepted" and event.data["kind"] == "message":
                before.append(previous)
            previous = stream.position
    return before[-exchanges:][0] if len(before) > exchanges else 0
