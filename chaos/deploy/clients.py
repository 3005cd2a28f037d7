"""The users of what is deployed: they ask whichever server answers, and follow their sessions from one to the next."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TypeVar

from chaos.client import Record
from chaos.reading import Reader
from chaos.words import STEPS, plan_of
from outlast.client import Client
from outlast.errors import OutlastError, ServerFault, StoreUnavailable, Unreachable

T = TypeVar("T")

AWAY = (Unreachable, StoreUnavailable, ServerFault, TimeoutError)
"""No answer that says anything about what was asked: another server may have one."""
_PATIENCE = 1.0
_ANSWER_SECONDS = 10.0
_PAUSE_SECONDS = 0.1


class Balancer:
    """All servers that there are or will be, and what was heard instead of an answer."""

    def __init__(self, ports: Sequence[int], token: str, chance: random.Random) -> None:
        self.clients = [Client(f"http://127.0.0.1:{port}", token, patience=_PATIENCE) for port in ports]
        self.troubles: Counter[str] = Counter()
        self._chance = chance

    async def ask(self, do: Callable[[Client], Awaitable[T]]) -> T:
        """Ask until somebody answers: only for what is done once however often it is asked."""
        while True:
            try:
                async with asyncio.timeout(_ANSWER_SECONDS):
                    return await do(self._chance.choice(self.clients))
            except AWAY as exc:
                self.note(exc)
                await asyncio.sleep(_PAUSE_SECONDS)

    def choose(self) -> Client:
        return self._chance.choice(self.clients)

    def note(self, exc: BaseException) -> None:
        said = f": {exc}" if isinstance(exc, ServerFault) else ""
        self.troubles[f"{type(exc).__name__}{said}"] += 1

    async def close(self) -> None:
        for each in self.clients:
            await each.close()


class Readers:
    """Each follows one session to the end of the run, through any server that is there."""

    def __init__(self, balancer: Balancer) -> None:
        self.all: list[Reader] = []
        self._balancer = balancer
        self._following: list[asyncio.Task[None]] = []

    def add(self, session_id: str) -> Reader:
        reader = Reader(f"reader {len(self.all)}", session_id, 0, 0.0)
        self.all.append(reader)
        self._following.append(asyncio.create_task(self._follow(reader), name=reader.name))
        return reader

    def behind(self, ends: dict[str, int]) -> list[Reader]:
        return [each for each in self.all if each.position < ends.get(each.session_id, 0)]

    async def close(self) -> None:
        for each in self._following:
            each.cancel()
        if self._following:
            await asyncio.wait(self._following)

    def write(self, path: Path) -> None:
        with path.open("w") as file:
            for each in self.all:
                line = {"reader": each.name, "session": each.session_id, "after": each.after, "events": each.events}
                file.write(json.dumps(line) + "\n")

    async def _follow(self, reader: Reader) -> None:
        while True:
            try:
                session = await self._balancer.choose().sessions.get(reader.session_id)
                async with session.events(after=reader.position) as stream:
                    async for event in stream:
                        reader.take([event.number, event.type, event.turn_id, event.data])
            except AWAY as exc:
                self._balancer.note(exc)
            await asyncio.sleep(_PAUSE_SECONDS)


class LoadClient:
    """Holds one conversation after another, and writes down what it was promised."""

    def __init__(
        self, balancer: Balancer, readers: Readers, record: Record, chance: random.Random, name: str, *, pause: float
    ) -> None:
        self.is_over = False
        self._balancer, self._readers, self._record = balancer, readers, record
        self._chance, self._name, self._pause = chance, name, pause
        self._numbers = count()

    async def run(self) -> None:
        """Until it is over."""
        while not self.is_over:
            reader = await self.begin()
            for _ in range(self._chance.randint(1, 3)):
                await self.say(reader.session_id, self._chance.choices(STEPS, k=self._chance.randint(1, 2)))
                await self._wait(reader)
                if self.is_over:
                    return

    async def begin(self) -> Reader:
        """A new session, of the agent of the server that made it, and its reader."""
        key = self._token()
        session = await self._balancer.ask(lambda client: client.sessions.create(idempotency_key=key))
        return self._readers.add(session.id)

    async def say(self, session_id: str, steps: Sequence[str]) -> None:
        """A message with a key of its own is sent until it is answered, and is there once."""
        token = self._token()
        mode = self._chance.choice(("steer", "queue", "interrupt"))

        async def send(client: Client) -> str:
            session = await client.sessions.get(session_id)
            return (await session.send(plan_of(token, steps), when_busy=mode, idempotency_key=token)).input_id

        try:
            answer = await self._balancer.ask(send)
        except AWAY:
            raise
        except OutlastError as exc:
            self._record.write(op="send", session=session_id, token=token, refused=exc.code)
        else:
            self._record.write(op="send", session=session_id, token=token, answer=answer)

    async def _wait(self, reader: Reader) -> None:
        """For the end of the turn, or not so long: then the next message comes while it runs."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._chance.choice((0.2, 4.0, 8.0))):
                await reader.idle.wait()
        await asyncio.sleep(self._chance.uniform(0, 2 * self._pause))

    def _token(self) -> str:
        return f"m{self._name}x{next(self._numbers)}"
