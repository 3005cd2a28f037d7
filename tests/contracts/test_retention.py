"""Retention on both engines: what was kept for its time goes, a little at a time; nothing else does (I4)."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic_ai import Tool

from outlast import Outlast, output
from outlast.clock import to_microseconds
from outlast.duties.deletions import Deletions
from outlast.duties.retention import Kept, Retention
from outlast.store import tables
from outlast.store.files.file_store import FileStore
from outlast.store.unit import Unit
from tests.behaviour.test_schedules import hold, outcomes, ran
from tests.support.turns.runtime import Runtime, scripted

NOTHING = Kept(output=None, feed=None, deliveries=None, fires=None)


def removing(runtime: Runtime, outlast: Outlast[Any, Any], kept: Kept | None = None) -> Retention:
    """The duty, run when a test says so."""
    deletions = Deletions(outlast.database, FileStore(str(runtime.files)))
    return Retention(outlast.database, kept or Kept(), deletions)


def noisy() -> Tool[Any]:
    async def survey() -> str:
        output("one two three")
        return "done"

    return Tool(survey)


async def a_task(outlast: Outlast[Any, Any]) -> str:
    session = await outlast.sessions.create()
    task = await session.spawn("survey", {}, wake="silent")
    assert (await outlast.tasks.wait(task.id)).is_over
    return task.id


async def age(outlast: Outlast[Any, Any], column: sa.Column[int], by: timedelta) -> None:
    def work(unit: Unit) -> None:
        unit.connection.execute(sa.update(column.table).values({column: column - to_microseconds_of(by)}))

    await outlast.database.transaction(work, name="age")


def to_microseconds_of(by: timedelta) -> int:
    return to_microseconds(datetime.fromisoformat("1970-01-01T00:00:00+00:00") + by)


async def test_output_of_a_task_that_ended_long_ago_is_removed_and_said_to_be(runtime: Runtime) -> None:
    """I4, A9: how long it was is known still, and when it was removed; what is younger stays."""
    async with runtime(tools=[noisy()]) as outlast:
        task = await a_task(outlast)
        retention = removing(runtime, outlast)
        assert (await retention.run())["output of ended tasks"] == 0
        assert (await outlast.tasks.output(task)).text == "one two three"
        await age(outlast, tables.tasks.c.ended_at, timedelta(days=31))
        assert (await retention.run())["output of ended tasks"] == 1
        left = await outlast.tasks.output(task)
        assert (left.text, left.total) == ("", 13)
        assert left.removed_at is not None
        assert (await outlast.tasks.get(task)).state == "succeeded"
        assert (await retention.run())["output of ended tasks"] == 0


async def test_nothing_is_removed_that_is_kept_for_ever(runtime: Runtime) -> None:
    """I4"""
    async with runtime(tools=[noisy()]) as outlast:
        task = await a_task(outlast)
        await age(outlast, tables.tasks.c.ended_at, timedelta(days=3_000))
        await age(outlast, tables.feed.c.at, timedelta(days=3_000))
        removed = await removing(runtime, outlast, NOTHING).run()
        assert removed == {"idempotency keys": 0, "notes of removed sessions": 0}
        assert (await outlast.tasks.output(task)).text == "one two three"


async def test_old_lines_of_the_feed_go_and_a_reader_from_before_is_told(runtime: Runtime) -> None:
    """I4, E4: the logs of sessions stay; whoever begins anew misses nothing that is kept."""
    async with runtime(scripted("One.", "Two.")) as outlast:
        session = await outlast.sessions.create()
        await session.ask("First")
        async with outlast.events_of("local", follow=False) as stream:
            first = [fed async for fed in stream]
        await age(outlast, tables.feed.c.at, timedelta(days=31))
        await session.ask("Second")
        removed = await removing(runtime, outlast).run()
        assert removed["lines of feeds"] == len(first)
        async with outlast.events_of("local", after=first[0].cursor, follow=False) as stream:
            told = [fed.event async for fed in stream]
        assert told[0].type == "stream.expired"
        assert (told[0].data["snapshot"]["setting"], "removed_at" in told[0].data["snapshot"]) == ("keep_feed", True)
        assert "turn.completed" in [each.type for each in told]
        async with outlast.events_of("local", after=first[-1].cursor, follow=False) as stream:
            told = [fed.event.type async for fed in stream]
        assert "stream.expired" not in told
        async with session.events(follow=False) as log:
            assert [each.type async for each in log].count("turn.completed") == 2


async def test_much_is_removed_in_small_steps(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    """I4: no transaction is long, and what is left is for the next run."""
    monkeypatch.setattr("outlast.duties.retention._BATCH", 2)
    monkeypatch.setattr("outlast.duties.retention._MOST", 2)
    monkeypatch.setattr("outlast.duties.retention._PAUSE", 0)
    async with runtime(scripted("One.")) as outlast:
        await (await outlast.sessions.create()).ask("First")
        await age(outlast, tables.feed.c.at, timedelta(days=31))
        retention = removing(runtime, outlast)
        assert (await retention.run())["lines of feeds"] == 4
        assert (await retention.run())["lines of feeds"] > 0


async def test_past_fires_go_and_those_that_wait_or_run_stay(runtime: Runtime) -> None:
    """I4, F5: what fired and ran long ago is removed too; what its input, turn or task is still at, is not."""
    go_on = asyncio.Event()

    async def slow() -> None:
        await go_on.wait()

    async with runtime(lambda _: "Yes.", tools=[Tool(slow), noisy()]) as outlast:
        session = await outlast.sessions.create()
        says = await session.schedule("Look.", cron="0 0 1 1 *")
        does = await session.schedule(tool="slow", cron="0 0 1 1 *", wake="silent")
        did = await session.schedule(tool="survey", cron="0 0 1 1 *", wake="silent")
        for each in (says, does, did):
            await outlast.schedules.trigger(each.id)
            await ran(outlast, each, 1)
        await session.settled()
        for task in await session.tasks():
            if task.tool == "survey":
                await outlast.tasks.wait(task.id)
        await session.stop()
        await hold(outlast, session)
        await outlast.schedules.trigger(says.id)
        await age(outlast, tables.fires.c.at, timedelta(days=31))
        assert (await removing(runtime, outlast).run())["fires of schedules"] == 2
        assert [await outcomes(outlast, each) for each in (says, does, did)] == [["fired"], ["ran"], []]
        assert (await outlast.schedules.get(says.id)).fired == 2
        go_on.set()
