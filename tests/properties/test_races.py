"""A turn ends while something arrives: every order of the two, and nothing is lost in any of them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.util import await_only

from outlast.events.types import TERMINAL
from outlast.ids import SessionId, TurnId
from outlast.limits import Limits
from outlast.store.database import Database
from outlast.store.repositories import inputs, sessions, turns
from outlast.store.repositories.inputs import InputKind, InputState, Mode
from outlast.store.repositories.turns import TurnState
from outlast.store.unit import Unit
from outlast.transitions import turn
from outlast.transitions.turns import inbox
from tests.support.stores.runner import Runner, claimed
from tests.support.stores.store import OWNER, new_session, opened, stored_events, under

LIMITS = Limits(max_inbox=100, max_busy_per_minute=100_000)
STEPS = ("claim", "deliver", "end")
ARRIVALS = ("steer", "queue", "interrupt", "wake", "stop")


class Scene:
    """One session, its runner, and whoever sends to it."""

    def __init__(self, database: Database, session_id: SessionId, files: Path) -> None:
        self.database = database
        self.session_id = session_id
        self.sent: list[str] = []
        self.was_stopped = False
        self._files = files
        self.runner: Runner | None = None

    def arrival(self, what: str) -> Callable[[Unit], Any]:
        """The transaction of a sender."""
        text = f"{what} {len(self.sent)}"
        if what == "stop":
            self.was_stopped = True
            return lambda unit: turn.request_stop(under(LIMITS, unit), self.session_id, owner_id=OWNER)
        self.sent.append(text)
        if what == "wake":
            return lambda unit: inbox.notify(under(LIMITS, unit), self.session_id, InputKind.WAKE, text)
        self.was_stopped = False
        return lambda unit: inbox.accept(under(LIMITS, unit), self.session_id, text, owner_id=OWNER, mode=Mode(what))

    async def arrive(self, what: str) -> None:
        await self.database.transaction(self.arrival(what), name=what)

    async def step(self, what: str) -> None:
        """The next transaction of whoever runs the session's turn."""
        if what == "claim":
            await self._claim()
        elif self.runner is not None and what == "deliver":
            await self.runner.deliver()
        elif self.runner is not None:
            await self._end(self.runner)

    async def _claim(self) -> None:
        row = await self._row()
        if row.turn_id is not None:
            runner = await claimed(self.database, TurnId(row.turn_id), LIMITS, self._files)
            self.runner = runner or self.runner

    async def _end(self, runner: Runner) -> None:
        found = await self.database.read(lambda connection: turns.get(connection, runner.turn_id))
        assert found is not None
        if found.stop_requested_at is not None:
            await runner.finish(TurnState.STOPPED)
            self.runner = None
        elif await runner.end():
            self.runner = None

    async def run_until_idle(self) -> None:
        """What an engine does: it runs whatever there is to run, to its end."""
        for _ in range(50):
            if self.runner is None:
                await self._claim()
                if self.runner is None:
                    return
            await self.runner.deliver()
            await self._end(self.runner)
        raise AssertionError("the session never becomes idle")

    async def _row(self) -> Any:
        return await self.database.read(lambda connection: sessions.get(connection, self.session_id, OWNER))

    async def check(self) -> None:
        """Idle, each ended turn told once, and every message delivered once; what is held is delivered on resume."""
        row = await self._row()
        assert row.turn_id is None
        waiting = await self.database.read(lambda connection: inputs.waiting(connection, self.session_id))
        if row.is_held:
            assert self.was_stopped
            await self.database.transaction(
                lambda unit: turn.resume(under(LIMITS, unit), self.session_id, owner_id=OWNER), name="resume"
            )
            await self.run_until_idle()
            waiting = await self.database.read(lambda connection: inputs.waiting(connection, self.session_id))
        assert waiting == []
        log = await stored_events(self.database, self.session_id)
        told = [event.data["text"] for event in log if event.type == "input.delivered"]
        assert sorted(told) == sorted(self.sent)
        queued = [event.turn_id for event in log if event.type == "turn.queued"]
        ended = [event.turn_id for event in log if event.type in TERMINAL]
        assert sorted(filter(None, ended)) == sorted(filter(None, queued))
        assert len(set(ended)) == len(ended)
        in_order = [text for text in told if text.startswith("queue")]
        assert in_order == [text for text in self.sent if text.startswith("queue")]


@pytest.fixture
async def sqlite_database(sqlite_url: str) -> AsyncIterator[Database]:
    async with opened(sqlite_url) as database:
        yield database


@pytest.mark.parametrize("arrivals", [*product(ARRIVALS), *product(ARRIVALS, repeat=2)], ids="-".join)
async def test_nothing_is_lost_whenever_it_arrives(
    sqlite_database: Database, tmp_path: Path, arrivals: tuple[str, ...]
) -> None:
    """D1, D5, P3: each arrival at each place among claim, deliver and end, alone and in pairs."""
    places = range(len(STEPS) + 1)
    for at in product(places, repeat=len(arrivals)):
        if list(at) != sorted(at):
            continue
        scene = Scene(sqlite_database, await new_session(sqlite_database), tmp_path / "files")
        await scene.arrive("steer")
        for place in places:
            for what, where in zip(arrivals, at, strict=True):
                if where == place:
                    await scene.arrive(what)
            if place < len(STEPS):
                await scene.step(STEPS[place])
        await scene.run_until_idle()
        await scene.check()


class Held:
    """A transaction that stops after it has done its work under the lock, before it commits."""

    def __init__(self, database: Database, fn: Callable[[Unit], Any]) -> None:
        self._is_there = asyncio.Event()
        self._may_commit = asyncio.Event()

        def run(unit: Unit) -> Any:
            result = fn(unit)
            self._is_there.set()
            await_only(self._may_commit.wait())
            return result

        self._running = asyncio.create_task(database.transaction(run, name="held"))

    async def reached(self) -> None:
        await self._is_there.wait()

    async def let_go(self) -> None:
        self._may_commit.set()
        await self._running


async def wait_until_one_waits_for_a_lock(database: Database) -> None:
    waiting = sa.text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    while await database.read(lambda connection: connection.execute(waiting).scalar_one()) == 0:
        continue


@pytest.mark.parametrize("is_first", ["the end", "the arrival"])
async def test_two_transactions_at_once_lose_nothing(postgres_url: str, tmp_path: Path, is_first: str) -> None:
    """D1, P3, P5 on PostgreSQL: one transaction holds the session's lock while the other already runs."""
    async with opened(postgres_url) as database:
        for what in ARRIVALS:
            scene = Scene(database, await new_session(database), tmp_path / "files")
            await scene.arrive("steer")
            await scene.step("claim")
            await scene.step("deliver")
            if is_first == "the end":
                held = Held(database, ending(scene))
                await held.reached()
                later: Coroutine[Any, Any, Any] = scene.arrive(what)
            else:
                held = Held(database, scene.arrival(what))
                await held.reached()
                later = scene.step("end")
            waiting = asyncio.create_task(later)
            await wait_until_one_waits_for_a_lock(database)
            assert not waiting.done(), "the second decides only after the first has committed"
            await held.let_go()
            await waiting
            await scene.run_until_idle()
            await scene.check()


def ending(scene: Scene) -> Callable[[Unit], Any]:
    """The end of the session's turn as a function, to be held before its commit."""
    runner = scene.runner
    assert runner is not None
    scene.runner = None
    return lambda unit: turn.end(under(LIMITS, unit), runner.claim, TurnState.COMPLETED, {"usage": {}}, values={})


async def test_a_message_seen_twice_is_kept_once(sqlite_database: Database) -> None:
    """D2: the same idempotency key gives the same input, also for senders at the same time."""
    session_id = await new_session(sqlite_database)

    def send(unit: Unit) -> inbox.Accepted:
        return inbox.accept(under(LIMITS, unit), session_id, "hello", owner_id=OWNER, idempotency_key="k")

    accepted = await asyncio.gather(*(sqlite_database.transaction(send, name="accept") for _ in range(8)))
    assert len({each.input.id for each in accepted}) == 1
    assert sum(not each.is_repeat for each in accepted) == 1
    waiting = await sqlite_database.read(lambda connection: inputs.waiting(connection, session_id))
    assert [each.state for each in waiting] == [InputState.WAITING]
