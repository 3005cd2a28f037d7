"""Readers that follow a session through every death, each time from the last number they have seen."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from chaos.evidence import TERMINAL
from chaos.link import Link, WorkerGone


@dataclass(slots=True)
class Reader:
    """One reader of one session, and all it was told."""

    name: str
    session_id: str
    after: int
    pause: float
    position: int = field(init=False)
    events: list[list[Any]] = field(default_factory=list[list[Any]])
    running: asyncio.Event = field(default_factory=asyncio.Event)
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    parked: asyncio.Event = field(default_factory=asyncio.Event)
    open_tasks: set[str] = field(default_factory=set[str])
    unknown_tasks: list[str] = field(default_factory=list[str])
    """Those that were interrupted: whether they took effect, a person may say."""

    def __post_init__(self) -> None:
        self.position = self.after

    def take(self, event: list[Any]) -> None:
        number, type_ = event[0], event[1]
        self.events.append(event)
        if number is not None:
            self.position = number
        if type_ in ("turn.started", "turn.resumed"):
            self.running.set()
            self.idle.clear()
        elif type_ in TERMINAL:
            self.running.clear()
            self.idle.set()
        elif type_ == "task.created":
            self.open_tasks.add(event[3]["task"]["id"])
            self.parked.set()
        elif type_ == "task.ended":
            task = event[3]["task"]
            self.open_tasks.discard(task["id"])
            if task["error"] is not None and task["error"]["kind"] == "interrupted":
                self.unknown_tasks.append(task["id"])
            if not self.open_tasks:
                self.parked.clear()

    async def follow(self, link: Link) -> None:
        while True:
            worker = await link.current()
            try:
                await worker.ask(
                    "follow", reader=self.name, session=self.session_id, after=self.position, pause=self.pause
                )
            except WorkerGone:
                await asyncio.sleep(0)


@dataclass(slots=True)
class Readers:
    """All readers of a round, and the coroutines they follow in."""

    link: Link
    by_name: dict[str, Reader] = field(default_factory=dict[str, Reader])
    _following: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])

    def add(self, session_id: str, *, after: int = 0, pause: float = 0.0) -> Reader:
        name = f"reader {len(self.by_name)}"
        reader = self.by_name[name] = Reader(name, session_id, after, pause)
        self._following.append(asyncio.create_task(reader.follow(self.link), name=name))
        return reader

    def take(self, name: str, event: list[Any]) -> None:
        self.by_name[name].take(event)

    def behind(self, ends: dict[str, int]) -> list[Reader]:
        """Those that have not been told the last event of their session."""
        return [each for each in self.by_name.values() if each.position < ends.get(each.session_id, 0)]

    async def close(self) -> None:
        for each in self._following:
            each.cancel()
        if self._following:
            await asyncio.wait(self._following)
