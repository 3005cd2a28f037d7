"""Signals between processes on PostgreSQL: heard, healed after a cut, and never too long to send."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import pytest
from asyncpg.connection import Connection
from pydantic_core import from_json

from outlast.engines import notify
from outlast.engines.notify import PostgresSignals, payloads
from outlast.engines.outbox import EngineOutbox
from outlast.events.signals import log_topic
from outlast.ids import TurnId
from outlast.store import urls
from outlast.store.outbox import Work
from outlast.store.postgres.connection import connect
from outlast.store.unit import Unit
from tests.support.moments.checkpoint import Checkpoint
from tests.support.stores.store import new_session, note, opened

Pair = tuple[PostgresSignals, PostgresSignals]


@pytest.fixture
async def pair(postgres_url: str) -> AsyncIterator[Pair]:
    """Two processes' worth of signals."""
    async with AsyncExitStack() as stack:
        one, other = (PostgresSignals(urls.parse(postgres_url)) for _ in range(2))
        for each in (one, other):
            await each.start()
            stack.push_async_callback(each.close)
        yield one, other


async def heard(signals: PostgresSignals, topic: str) -> asyncio.Event:
    event = asyncio.Event()
    signals.watch(topic, event.set)
    return event


async def cut(url: str) -> int:
    """End every listening connection from outside; gives how many there were."""
    admin = await connect(urls.parse(url), name="admin", when_closed=lambda: None)
    try:
        found = await admin.fetch(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'outlast signals' AND datname = current_database()"
        )
        return len(found)
    finally:
        await admin.close()


async def test_a_signal_reaches_this_process_at_once_and_others_soon(pair: Pair) -> None:
    """DESIGN 8: ids only, after the commit, in batches."""
    one, other = pair
    here, there, elsewhere = await heard(one, "turn:1"), await heard(other, "turn:1"), await heard(other, "turn:2")
    one.publish(["turn:1"])
    assert here.is_set()
    async with asyncio.timeout(60):
        await there.wait()
    assert not elsewhere.is_set()


async def test_after_a_cut_everybody_looks_and_signals_are_heard_again(pair: Pair, postgres_url: str) -> None:
    """P4: what was missed meanwhile is looked for, and neither the driver nor the queue would listen again."""
    one, other = pair
    missed = await heard(other, "log:1")
    assert await cut(postgres_url) == 2
    async with asyncio.timeout(60):
        await missed.wait()
        there = await heard(other, "log:2")
        while not there.is_set():
            one.publish(["log:2"])
            await asyncio.sleep(0.01)


async def test_what_was_said_during_a_cut_is_said_after_it(pair: Pair, postgres_url: str) -> None:
    one, other = pair
    there = await heard(other, "log:1")
    await cut(postgres_url)
    one.publish(["log:1"])
    async with asyncio.timeout(60):
        await there.wait()


async def test_what_is_said_again_while_it_is_sent_is_sent_again(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """P6: who looked at the first of the two did not see what the second is about."""
    one, other = pair
    sent, times = Checkpoint(), 0
    execute: Any = vars(Connection)["execute"]

    async def slow(self: Any, query: str, *args: Any, **options: Any) -> Any:
        answer = await execute(self, query, *args, **options)
        await sent()
        return answer

    def hear() -> None:
        nonlocal times
        times += 1

    unwatch = other.watch("task:1", hear)
    monkeypatch.setattr(Connection, "execute", slow)
    one.publish(["task:1"])
    await sent.reached()
    one.publish(["task:1"])
    sent.open()
    async with asyncio.timeout(60):
        while times < 2:  # noqa: ASYNC110 - on the event loop
            await asyncio.sleep(0.01)
    unwatch()


@pytest.mark.parametrize("has_work", [True, False])
async def test_a_commit_that_brings_work_takes_its_signals_along(ready_postgres_url: str, has_work: bool) -> None:
    """DESIGN 8: it notifies anyway. Others hear of it once, and so does the process that made it."""
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(opened(ready_postgres_url))
        one, other = (PostgresSignals(urls.parse(ready_postgres_url)) for _ in range(2))
        for each in (one, other):
            await each.start()
            stack.push_async_callback(each.close)
        session_id = await new_session(database)
        outbox = EngineOutbox(one)
        database.attach(outbox)
        here, there = list[str](), list[str]()
        for signals, heard_of in ((one, here), (other, there)):
            for topic in (log_topic(session_id), "turn:1", "last"):
                signals.watch(topic, partial(heard_of.append, topic))
        pending = one._pending  # pyright: ignore[reportPrivateUsage]

        def work(unit: Unit) -> None:
            unit.append(session_id, [note("one")])
            unit.signal("turn:1")
            if has_work:
                unit.submit(Work(TurnId("trn_1"), "olga", "agent"))

        def refused(unit: Unit) -> None:
            work(unit)
            unit.flush()
            raise RuntimeError

        with pytest.raises(RuntimeError):
            await database.transaction(refused, name="refused")
        assert here == []
        await database.transaction(work, name="work")
        assert bool(pending) is not has_work
        last = await heard(other, "last")
        one.publish(["last"])
        async with asyncio.timeout(60):
            await last.wait()
        assert sorted(there) == ["last", log_topic(session_id), "turn:1"]
        assert sorted(here) == ["last", log_topic(session_id), "turn:1"]


def test_many_topics_are_sent_in_payloads_that_postgres_takes() -> None:
    """The limit is 7,999 bytes; every topic is in exactly one of them."""
    topics = [f"log:ses_{at:026d}" for at in range(2_000)]
    sent = payloads(topics)
    assert len(sent) > 1
    assert max(map(len, sent)) < 8_000
    assert sorted(topic for each in sent for topic in from_json(each)) == sorted(topics)


@pytest.mark.parametrize("topics", [["feed:" + "å" * 8_000], [f"log:{at}" for at in range(20_000)]])
def test_what_is_too_long_or_too_much_to_say_makes_everybody_look(topics: list[str]) -> None:
    assert payloads(topics) == [b"[]"]


async def test_everybody_looks_when_told_to_look_at_everything(pair: Pair) -> None:
    one, other = pair
    there = await heard(other, "log:1")
    one.publish(["feed:" + "x" * 8_000])
    async with asyncio.timeout(60):
        await there.wait()


async def test_the_last_words_of_a_connection_are_heard_after_it_was_closed(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P4: the driver hands them on in a later step of the loop, and the connection may be gone by then."""
    listening: list[tuple[Any, Any]] = []
    plain = Connection.add_listener  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

    async def listen(self: Any, channel: str, hear: Any) -> None:
        listening.append((self, hear))
        await plain(self, channel, hear)

    monkeypatch.setattr(Connection, "add_listener", listen)
    signals = PostgresSignals(urls.parse(postgres_url))
    await signals.start()
    try:
        there = await heard(signals, "turn:1")
        connection, hear = listening[0]
        connection.terminate()
        hear(connection, 1, notify.CHANNEL, '["turn:1"]')
        assert there.is_set()
    finally:
        await signals.close()
