"""People who answer what tasks ask for, and others who complete the operations that were ordered from them.

Everything is said by two at the same instant: one of them counts, and the other one is told so.
"""

import asyncio
import json
import random
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from chaos.client import Record
from chaos.ledger import ORDERS
from chaos.link import Refused

_LOOK_SECONDS = 0.15
_FORGOTTEN_SECONDS = 3.0
"""An operation that nobody was asked for by then is completed by its owner: its request never went out."""


@dataclass(frozen=True, slots=True)
class Need:
    """A task that waits for somebody: of what kind, or an operation that is open."""

    task_id: str
    session_id: str
    kind: str
    request_id: str | None = None


class Desk(Protocol):
    """Where people see what is needed and say what they have to say, however often workers die meanwhile."""

    async def needs(self) -> list[Need]:
        """All of it, of every session."""
        ...

    async def say(self, need: Need, op: str, by: str, value: str) -> None:
        """`op` is reply, approve or refuse. Raises `Refused`."""
        ...

    async def complete(self, need: Need, token: str | None, value: str) -> bool:
        """Whether this one counted. Raises `Refused`. Without a token as the owner."""
        ...


@dataclass(slots=True)
class People:
    desk: Desk
    record: Record
    folder: Path
    chance: random.Random
    look_seconds: float = _LOOK_SECONDS
    _begun: set[str] = field(default_factory=set[str])
    _seen_at: dict[str, float] = field(default_factory=dict[str, float])
    _saying: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    _failed: list[BaseException] = field(default_factory=list[BaseException])

    async def run(self) -> None:
        """Until it is cancelled. Raises what one of them failed with: none should."""
        try:
            while True:
                needs, tokens = await self.desk.needs(), self._tokens()
                for need in needs:
                    self._look_at(need, tokens)
                for exc in self._failed:
                    raise exc
                await asyncio.sleep(self.look_seconds)
        finally:
            for each in self._saying:
                each.cancel()

    def _look_at(self, need: Need, tokens: dict[str, list[str]]) -> None:
        name = need.request_id or need.task_id
        if name in self._begun:
            return
        if need.kind == "external" and need.task_id not in tokens:
            seen_at = self._seen_at.setdefault(name, time.monotonic())
            if time.monotonic() - seen_at < _FORGOTTEN_SECONDS:
                return
        self._begun.add(name)
        saying = asyncio.create_task(self._answer(need, tokens.get(need.task_id, [])), name=f"answer {name}")
        self._saying.add(saying)
        saying.add_done_callback(self._said)

    def _said(self, saying: asyncio.Task[None]) -> None:
        self._saying.discard(saying)
        exc = None if saying.cancelled() else saying.exception()
        if exc is not None:
            self._failed.append(exc)

    async def _answer(self, need: Need, tokens: list[str]) -> None:
        await asyncio.sleep(self.chance.choice((0.0, self.chance.uniform(0, 0.5))))
        two = ("Ada", "Bob")
        if need.kind == "external":
            token = self.chance.choice(tokens) if tokens else None
            await asyncio.gather(*(self._complete(need, token, by) for by in two))
        elif need.kind == "approval":
            ops = self.chance.sample(("approve", self.chance.choice(("approve", "refuse"))), 2)
            await asyncio.gather(*(self._say(need, op, by) for op, by in zip(ops, two, strict=True)))
        else:
            await asyncio.gather(*(self._say(need, "reply", by) for by in two))

    async def _say(self, need: Need, op: str, by: str) -> None:
        value = f"{by} of {need.request_id}"
        try:
            await self.desk.say(need, op, by, value)
        except Refused as exc:
            self._write(need, op, by, value, refused=exc.code)
        else:
            self._write(need, op, by, value, answer=True)

    async def _complete(self, need: Need, token: str | None, by: str) -> None:
        value = f"{by} of {need.task_id}"
        try:
            applied = await self.desk.complete(need, token, value)
        except Refused as exc:
            self._write(need, "complete", by, value, refused=exc.code)
        else:
            self._write(need, "complete", by, value, answer=applied)

    def _write(self, need: Need, op: str, by: str, value: str, **said: Any) -> None:
        line = {"session": need.session_id, "token": need.request_id, "task": need.task_id}
        self.record.write(op=op, **line, by=by, value=value, **said)

    def _tokens(self) -> dict[str, list[str]]:
        """By operation, the tokens that were sent out with its requests."""
        path, found = self.folder / ORDERS, dict[str, list[str]]()
        if path.exists():
            for line in path.read_text().splitlines():
                order = json.loads(line)
                found.setdefault(order["task_id"], []).append(order["token"])
        return found


@dataclass(frozen=True, slots=True)
class LinkDesk:
    """The desk of a round: whatever worker there is."""

    ask: Any

    async def needs(self) -> list[Need]:
        return [Need(*each) for each in await self.ask("needs")]

    async def say(self, need: Need, op: str, by: str, value: str) -> None:
        await self.ask("say", task=need.task_id, what=op, by=by, value=value, request=need.request_id)

    async def complete(self, need: Need, token: str | None, value: str) -> bool:
        return await self.ask("complete", task=need.task_id, token=token, value=value)
