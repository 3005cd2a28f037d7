"""A talker: it holds one conversation after another over HTTP, and writes down what it was promised."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Literal, TypeVar

from chaos.client import Record
from chaos.cluster.line import AWAY, Line
from chaos.cluster.reading import ClusterReader, Readers
from chaos.words import STEPS, message
from outlast.client import Client
from outlast.client.session import Session
from outlast.errors import OutlastError

T = TypeVar("T")
Mode = Literal["steer", "queue", "interrupt"]

_FLOWS = ("alone", "alone", "alone", "alone", "steer", "queue", "interrupt", "stop", "stop+resume", "many", "cancel")


class Pace:
    """At most so many messages a second, of all talkers together."""

    def __init__(self, rate: float) -> None:
        self._span = 1 / rate
        self._next = 0.0

    async def wait(self) -> None:
        now = asyncio.get_running_loop().time()
        self._next = max(self._next + self._span, now)
        await asyncio.sleep(self._next - now)


@dataclass(slots=True)
class Talker:
    line: Line
    readers: Readers
    record: Record
    pace: Pace
    chance: random.Random
    name: str
    is_over: bool = False
    reader: ClusterReader = field(init=False)
    _numbers: "count[int]" = field(default_factory=count)

    async def run(self) -> None:
        """Until it is over."""
        while not self.is_over:
            await self.begin()
            for _ in range(self.chance.randint(1, 4)):
                if not self.is_over:
                    await self._flow()
            self.readers.leave(self.reader.session_id)

    async def begin(self) -> None:
        """A new session, with one reader or two."""
        key = self._token("s")
        session = await self.line.ask(lambda client: client.sessions.create(idempotency_key=key))
        self.reader = self.readers.add(session.id)
        if self.chance.random() < 0.3:
            self.readers.add(session.id)

    async def send(self, mode: Mode, steps: Sequence[str]) -> None:
        """A message with a key of its own is sent until it is answered, and is there once."""
        await self.pace.wait()
        token = self._token("m")
        text = message(token, steps)

        async def send(session: Session) -> str:
            return (await session.send(text, when_busy=mode, idempotency_key=token)).input_id

        await self._do("send", send, token=token)

    async def _flow(self) -> None:
        flow = self.chance.choice(_FLOWS)
        await self.send("steer", ["vigil"] if flow == "cancel" else self._steps())
        if flow != "many":
            await _within(2.0, self.reader.running)
        await self._pass(0.25)
        match flow.split("+"):
            case ["steer" | "queue" | "interrupt" as mode]:
                await self.send(mode, self._steps())
            case ["cancel"]:
                await self._cancel()
            case ["many"]:
                for mode in ("queue", "steer", "queue"):
                    await self.send(mode, self._steps()[:1])
            case ["stop", *then]:
                await self._do_once("stop", _stop)
                await self._pass(0.3)
                if then:
                    await self._do_once("resume", _resume)
            case _:
                await self._pass(0.8)
        await _within(self.chance.choice((0.5, 4.0, 8.0)), self.reader.idle)

    async def _cancel(self) -> None:
        """Cancel something that runs in the background, if anything does by now."""
        await _within(3.0, self.reader.parked)
        if self.reader.open_tasks:
            task_id = self.chance.choice(sorted(self.reader.open_tasks))

            async def cancel(client: Client) -> str:
                return (await client.tasks.cancel(task_id, wait=2.0)).state

            await self._note("cancel", self.line.ask(cancel), token=task_id)

    async def _do(self, op: str, do: Callable[[Session], Awaitable[T]], *, token: str | None = None) -> None:
        session_id = self.reader.session_id

        async def with_session(client: Client) -> T:
            return await do(await client.sessions.get(session_id))

        await self._note(op, self.line.ask(with_session), token=token)

    async def _do_once(self, op: str, do: Callable[[Session], Awaitable[T]]) -> None:
        """What is not safe to repeat: without an answer nothing was promised."""
        session_id = self.reader.session_id

        async def with_session(client: Client) -> T:
            return await do(await client.sessions.get(session_id))

        with suppress(*AWAY):
            await self._note(op, self.line.ask_once(with_session), token=None)

    async def _note(self, op: str, asked: Awaitable[object], *, token: str | None) -> None:
        session_id = self.reader.session_id
        try:
            answer = await asked
        except AWAY:
            raise
        except OutlastError as exc:
            self.record.write(op=op, session=session_id, token=token, refused=exc.code)
        else:
            self.record.write(op=op, session=session_id, token=token, answer=answer)

    def _token(self, kind: str) -> str:
        return f"{kind}{self.name}x{next(self._numbers)}"

    def _steps(self) -> list[str]:
        return self.chance.choices(STEPS, k=self.chance.randint(1, 2))

    async def _pass(self, most: float) -> None:
        if self.chance.random() < 0.7:
            await asyncio.sleep(self.chance.uniform(0, most))


async def _stop(session: Session) -> str | None:
    outcome = await session.stop()
    return None if outcome is None else outcome.turn_id


async def _resume(session: Session) -> str | None:
    turn = await session.resume()
    return None if turn is None else turn.id


async def _within(seconds: float, event: asyncio.Event) -> None:
    """Wait for something that may not come in time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
