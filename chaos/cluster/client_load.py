"""Clients: each holds one short conversation over HTTP, and writes down what it was promised."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal, TypeVar

from chaos.client import Record
from chaos.cluster.balancer import AWAY, Balancer
from chaos.cluster.reading import ClusterReader, Readers
from chaos.words import plan_of
from outlast.client.session import Session
from outlast.errors import OutlastError

T = TypeVar("T")
Mode = Literal["steer", "queue", "interrupt"]

_FLOWS = (
    *("alone",) * 18,
    *("steer", "queue", "interrupt", "stop", "stop+resume", "many", "cancel", "cancel"),
    *("schedule", "schedule+pause", "schedule+edit", "schedule+unschedule"),
)
_PLANS = (
    *("",) * 8,
    *("note",) * 5,
    *("look", "again") * 2,
    *("survey", "scan") * 2,
    "slow",
    "talk",
    "flaky",
    "fail",
    "thread",
    "note+again",
    "scan+slow",
    "vigil",
    "survey,check",
    "vigil,quit",
    "note,look",
    "spawn+chores",
    "spawn,check",
    "child",
    "son",
    "kin",
    "ask",
    "wonder",
    "pay",
    "ship",
    "courier",
)
"""What is asked for: mostly little, as most turns are short; what outlasts its budget is parked and wakes.

The last ones set work going on purpose, or need somebody."""
_CATCH_UP_SECONDS = 3.0


class Pace:
    """When the next message is due, of all clients together. What an outage held up is caught up with, to a degree."""

    def __init__(self, rate: float) -> None:
        self._span = 1 / rate
        self._next = 0.0

    def take(self) -> None:
        """A message is sent now, whether it is due or not: the next one is due so much later."""
        self._next = max(self._next, asyncio.get_running_loop().time() - _CATCH_UP_SECONDS) + self._span

    async def due(self) -> None:
        await asyncio.sleep(self._next - asyncio.get_running_loop().time())


@dataclass(slots=True)
class LoadClient:
    balancer: Balancer
    readers: Readers
    record: Record
    pace: Pace
    chance: random.Random
    name: str
    reader: ClusterReader = field(init=False)
    _numbers: "count[int]" = field(default_factory=count)

    async def run(self) -> None:
        """A conversation from its first message, which whoever starts it has accounted for, to its last."""
        await self.begin()
        await self._flow()
        while self.chance.random() < 0.4:
            self.pace.take()
            await self._flow()
        self.readers.leave(self.reader.session_id)

    async def begin(self) -> None:
        """A new session with a reader, at times with two."""
        session = await self.balancer.create(self._token("s"))
        self.reader = self.readers.add(session.id)
        if self.chance.random() < 0.1:
            self.readers.add(session.id)

    async def send(self, mode: Mode, steps: Sequence[str]) -> None:
        """A message with a key of its own is sent until it is answered, and is there once."""
        token = self._token("m")
        text = plan_of(token, steps)

        async def send(session: Session) -> str:
            return (await session.send(text, when_busy=mode, idempotency_key=token)).input_id

        await self._note("send", self.balancer.ask(self._with_session(send)), token=token)

    async def _send_another(self, mode: Mode) -> None:
        self.pace.take()
        await self.send(mode, self._steps())

    async def _flow(self) -> None:
        flow = self.chance.choice(_FLOWS)
        self.reader.idle.clear()  # until a turn has ended after this
        await self.send("steer", ["vigil"] if flow == "cancel" else self._steps())
        if flow not in ("alone", "many"):
            await _within(2.0, self.reader.running)
            await self._pass(0.2)
        match flow.split("+"):
            case ["steer" | "queue" | "interrupt" as mode]:
                await self._send_another(mode)
            case ["cancel"]:
                await self._cancel()
            case ["schedule", *then]:
                await self._schedule(then)
            case ["many"]:
                for mode in ("queue", "steer", "queue"):
                    await self._send_another(mode)
            case ["stop", *then]:
                await self._do_once("stop", _stop)
                await self._pass(0.3)
                if then:
                    await self._do_once("resume", _resume)
            case _:
                await self._pass(0.3)
        await _within(self.chance.choice((0.3, 6.0, 6.0)), self.reader.idle)

    async def _schedule(self, then: Sequence[str]) -> None:
        """Something to be said or done in a second, perhaps changed in the instant in which it is due."""
        token, tool = self._token("t"), self.chance.choice((None, None, "note", "again", "minute"))
        session_id, made = self.reader.session_id, list[str]()

        async def make(at: int) -> str:
            all_ = self.balancer.client(session_id, at).schedules
            if tool == "minute":
                what: dict[str, Any] = {"tool": "again", "args": {"name": token}, "cron": "* * * * *"}
                what |= {"missed": "run_all", "overlap": "allow", "wake": "silent"}
            elif tool is None:
                what = {"text": plan_of(token, self._steps()[:1]), "delay": "1 second"}
            else:
                what = {"tool": tool, "args": {"name": token}, "delay": "1 second"}
            made.append((await all_.create(session_id, **what, idempotency_key=token)).id)
            return made[-1]

        await self._note("schedule", self.balancer.ask(make), token=token)
        for op in then if made and tool != "minute" else ():
            await asyncio.sleep(1.0 + self.chance.uniform(-0.1, 0.1))
            await self._change(op, made[-1], token)
            if op == "pause" and self.chance.random() < 0.5:
                await self._change("unpause", made[-1], token)

    async def _change(self, op: str, schedule_id: str, token: str) -> None:
        """Asked for once: without an answer it may have been done."""
        session_id = self.reader.session_id

        async def change(at: int) -> str | None:
            all_ = self.balancer.client(session_id, at).schedules
            match op:
                case "pause":
                    return (await all_.pause(schedule_id)).state
                case "unpause":
                    return (await all_.resume(schedule_id)).state
                case "edit":
                    return (await all_.edit(schedule_id, delay="1 second")).state
                case _:
                    self.record.write(op=op, session=session_id, token=token)
                    await all_.delete(schedule_id)
                    return None

        with suppress(*AWAY):
            await self._note(op, self.balancer.ask_once(change), token=token)

    async def _cancel(self) -> None:
        """Cancel something that runs in the background, if anything does by now."""
        await _within(3.0, self.reader.parked)
        if self.reader.open_tasks:
            task_id = self.chance.choice(sorted(self.reader.open_tasks))
            session_id = self.reader.session_id

            async def cancel(at: int) -> str:
                return (await self.balancer.client(session_id, at).tasks.cancel(task_id, wait=2.0)).state

            await self._note("cancel", self.balancer.ask(cancel), token=task_id)

    async def _do_once(self, op: str, do: Callable[[Session], Awaitable[T]]) -> None:
        """What is not safe to repeat: without an answer nothing was promised."""
        with suppress(*AWAY):
            await self._note(op, self.balancer.ask_once(self._with_session(do)), token=None)

    def _with_session(self, do: Callable[[Session], Awaitable[T]]) -> Callable[[int], Awaitable[T]]:
        async def with_session(at: int) -> T:
            return await do(await self.balancer.session(self.reader.session_id, at))

        return with_session

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
        return [each for each in self.chance.choice(_PLANS).split(",") if each]

    async def _pass(self, most: float) -> None:
        if self.chance.random() < 0.7:
            await asyncio.sleep(self.chance.uniform(0, most))


class ClientLoad:
    """Starts a conversation whenever a message is due, however the others go, up to so many at once."""

    def __init__(self, make: Callable[[str], LoadClient], pace: Pace, *, most: int) -> None:
        self._make = make
        self._pace = pace
        self._most = most
        self._names = count()
        self._talking: set[asyncio.Task[None]] = set()
        self._failed: list[BaseException] = []
        self._coming: asyncio.Task[None] | None = None
        self.held_up = 0
        """How often a message was due and everybody who could send it still talked."""

    def start(self) -> None:
        self._coming = asyncio.create_task(self._come(), name="client load")

    def check(self) -> None:
        """Raises what a client failed with: none should."""
        for exc in self._failed:
            raise exc

    async def finish(self, seconds: float) -> None:
        """Nobody comes any more; those who talk have so long to end."""
        await self._end_coming()
        if self._talking:
            await asyncio.wait(set(self._talking), timeout=seconds)

    async def close(self) -> None:
        await self._end_coming()
        talking = set(self._talking)
        for each in talking:
            each.cancel()
        if talking:
            await asyncio.wait(talking)

    async def _end_coming(self) -> None:
        if self._coming is not None:
            self._coming.cancel()
            await asyncio.wait({self._coming})

    async def _come(self) -> None:
        while True:
            await self._pace.due()
            if len(self._talking) >= self._most:
                self.held_up += 1
                await asyncio.wait(set(self._talking), return_when=asyncio.FIRST_COMPLETED)
                continue
            self._pace.take()
            name = str(next(self._names))
            talking = asyncio.create_task(self._make(name).run(), name=f"client {name}")
            self._talking.add(talking)
            talking.add_done_callback(self._over)

    def _over(self, talking: asyncio.Task[None]) -> None:
        self._talking.discard(talking)
        exc = None if talking.cancelled() else talking.exception()
        if exc is not None:
            self._failed.append(exc)


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
