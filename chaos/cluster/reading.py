"""Readers of a cluster: they follow a session through any API process, some from one to the next."""

import asyncio
import json
import random
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from chaos.cluster.balancer import AWAY, Balancer
from chaos.reading import Reader

_RESTLESS = 0.4
_STAY_SECONDS = (1.0, 6.0)
_PAUSE_SECONDS = 0.1
_TIDY_SECONDS = 0.5


@dataclass(slots=True)
class ClusterReader(Reader):
    is_restless: bool = True
    """It goes to another process every few seconds; the others stay as long as theirs lives."""
    is_leaving: bool = False
    lags: list[float] = field(default_factory=list[float])
    """Seconds from an event's commit to its arrival, of those committed while the reader was connected."""

    @property
    def is_settled(self) -> bool:
        return self.idle.is_set() and not self.open_tasks


class Readers:
    """All readers of a run. One whose session seems to be over stops following, and is asked to go on at the end.

    What they were told goes to a file in pieces, each when a reader stops following.
    """

    def __init__(self, balancer: Balancer, chance: random.Random, path: Path) -> None:
        self._all: list[ClusterReader] = []
        self._balancer = balancer
        self._chance = chance
        self._file = path.open("w")
        self._of_session: dict[str, list[ClusterReader]] = defaultdict(list)
        self._following: dict[str, tuple[ClusterReader, asyncio.Task[None]]] = {}
        self._may_move = True
        self._tidying = asyncio.create_task(self._tidy(), name="tidy the readers")

    def add(self, session_id: str, *, after: int = 0) -> ClusterReader:
        is_restless = self._chance.random() < _RESTLESS
        reader = ClusterReader(f"reader {len(self._all)}", session_id, after, 0.0, is_restless=is_restless)
        self._all.append(reader)
        self._of_session[session_id].append(reader)
        self.follow(reader)
        return reader

    def follow(self, reader: ClusterReader) -> None:
        if reader.name not in self._following:
            following = asyncio.create_task(self._follow(reader), name=reader.name)
            self._following[reader.name] = reader, following

    def leave(self, session_id: str) -> None:
        """Nobody sends to this session any more: its readers may go once it has settled."""
        for each in self._of_session[session_id]:
            each.is_leaving = True

    def stand_still(self) -> None:
        """From now on nobody changes over: whoever is connected must be told everything there."""
        self._may_move = False

    def behind(self, ends: dict[str, int]) -> list[ClusterReader]:
        return [each for each in self._all if each.position < ends.get(each.session_id, 0)]

    def is_following(self, reader: ClusterReader) -> bool:
        return reader.name in self._following

    async def close(self) -> None:
        following = [self._tidying, *(each for _, each in self._following.values())]
        for each in following:
            each.cancel()
        await asyncio.wait(following)
        for reader in self._all:
            self._write(reader)
        self._file.close()

    def _write(self, reader: ClusterReader) -> None:
        line = {"reader": reader.name, "session": reader.session_id, "after": reader.after, "events": reader.events}
        self._file.write(json.dumps({**line, "lags": [round(lag, 4) for lag in reader.lags]}) + "\n")
        reader.events.clear()
        reader.lags.clear()

    async def _follow(self, reader: ClusterReader) -> None:
        at = self._balancer.choose()
        while True:
            stay = self._chance.uniform(*_STAY_SECONDS) if reader.is_restless and self._may_move else None
            staying = asyncio.timeout(stay)
            try:
                async with staying:
                    await self._read(reader, at)
            except AWAY as exc:
                if not staying.expired():
                    self._balancer.note(exc, at)
                    await asyncio.sleep(_PAUSE_SECONDS)
            at = self._balancer.choose(former=at)

    async def _read(self, reader: ClusterReader, at: int) -> None:
        session = await self._balancer.ask_once(lambda at: self._balancer.session(reader.session_id, at), at=at)
        connected_at = time.time()
        async with session.events(after=reader.position) as stream:
            async for event in stream:
                now, committed_at = time.time(), event.at.timestamp()
                if committed_at > connected_at:
                    reader.lags.append(now - committed_at)
                reader.take([event.number, event.type, event.turn_id, event.data])

    async def _tidy(self) -> None:
        """A reader that was told nothing new from one look to the next has been told all, for now."""
        seen: dict[str, int] = {}
        while True:
            for reader, following in list(self._following.values()):
                if not reader.is_leaving or not reader.is_settled or not self._may_move:
                    continue
                if seen.get(reader.name) == reader.position:
                    del self._following[reader.name], seen[reader.name]
                    following.cancel()
                    await asyncio.wait({following})
                    self._write(reader)
                    self._balancer.forget(reader.session_id)
                else:
                    seen[reader.name] = reader.position
            await asyncio.sleep(_TIDY_SECONDS)
