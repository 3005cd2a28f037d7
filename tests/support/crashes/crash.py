"""A child process that runs one turn and kills itself with SIGKILL at an exact place.

`crash(folder, scenario, place)` sends one message (the first time) and runs until the
session has settled. A place is `tool NAME`, `model N` (in the middle of the Nth response), or
`commit NAME before|after N`. The same scenario is opened by the test afterwards, without a place to die at.
"""

import asyncio
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outlast import Outlast, Session, Settings
from outlast.store.database import Moment
from tests.support.crashes import child
from tests.support.turns.runtime import FAST

MESSAGE = "Do the work."


@dataclass
class Place:
    """Where to die; nowhere in the test's own process."""

    name: str = ""
    counts: dict[str, int] = field(default_factory=dict[str, int])
    flushed: threading.Event = field(default_factory=threading.Event)

    def passes(self, name: str) -> None:
        """Die here if this is the place."""
        if name == self.name:
            os.kill(os.getpid(), signal.SIGKILL)

    def passes_commit(self, name: str, moment: Moment) -> None:
        if (name, moment) == ("flush", "after"):
            self.flushed.set()
        key = f"commit {name} {moment}"
        self.counts[key] = self.counts.get(key, 0) + 1
        self.passes(f"{key} {self.counts[key]}")

    def gate(self, name: str) -> Callable[[], Awaitable[None]]:
        async def pass_by() -> None:
            if name == self.name:
                # Let what was said so far reach the database: the crash comes in the middle of the answer.
                # Where nothing waits to be written there is no flush, so the wait has an end.
                self.flushed.clear()
                await asyncio.sleep(0.05)
                await asyncio.to_thread(self.flushed.wait, 1)
            self.passes(name)

        return pass_by


@dataclass
class World:
    """The folder in which a scenario leaves its effects: one line for each time a tool really ran."""

    folder: Path
    place: Place = field(default_factory=Place)
    session: Session | None = None

    async def has_told_the_end_of(self, call_id: str) -> None:
        """Returns when it is committed, in the child that is to die."""
        if self.session is not None:
            async with self.session.events() as events:
                async for event in events:
                    if event.type == "call.ended" and event.data["call_id"] == call_id:
                        return

    def live_on(self, database: str) -> None:
        """Not in a SQLite file in the folder, which is where it lives unless it is told otherwise."""
        (self.folder / "database").write_text(database)

    @property
    def database(self) -> str:
        told = self.folder / "database"
        return told.read_text() if told.exists() else str(self.folder / "outlast.db")

    @property
    def files(self) -> str:
        return str(self.folder / "files")

    def effect(self, line: str) -> None:
        with (self.folder / "effects").open("a") as file:
            file.write(f"{line}\n")
            file.flush()
            os.fsync(file.fileno())

    @property
    def effects(self) -> list[str]:
        path = self.folder / "effects"
        return path.read_text().splitlines() if path.exists() else []

    def open(self, scenario: str) -> Outlast[Any, Any]:
        from tests.support.crashes.scenarios import SCENARIOS

        options = SCENARIOS[scenario](self)
        agent = options.pop("agent")
        chosen: dict[str, Any] = {**FAST, "files": self.files, **options.pop("settings", {})}
        return Outlast(agent, database=self.database, settings=Settings(**chosen), **options)


async def session_of(outlast: Outlast[Any, Any]) -> Session:
    """The one session of the folder."""
    found: Sequence[Session] = await outlast.sessions.list()
    return found[0] if found else await outlast.sessions.create()


def crash(folder: Path, scenario: str, place: str) -> None:
    """Run a child until it dies at the place."""
    log = folder / "child.log"
    code = child.run("tests.support.crashes.crash", str(folder), scenario, place, log=log)
    assert code == -signal.SIGKILL, f"{place} was not reached: {log.read_text()}"


async def main(folder: str, scenario: str, place: str) -> None:
    world = World(Path(folder), Place(place))
    async with world.open(scenario) as outlast:
        outlast.database.watcher = world.place.passes_commit
        session = world.session = await session_of(outlast)
        if not await session.history() and not await session.inbox():
            await session.send(MESSAGE)
        await session.settled()
