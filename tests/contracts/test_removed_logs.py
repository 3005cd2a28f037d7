"""Logs that are kept for a time only, on both engines: whole turns go, and nobody misses what they came to (I4)."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic_ai import Tool

from outlast import Outlast, Session, output
from outlast.duties.retention import Kept
from outlast.protocols.ai_sdk.messages import ui_messages
from outlast.store import tables
from outlast.testing import call
from tests.behaviour.test_schedules import hold
from tests.contracts.test_retention import age, removing
from tests.support.turns.runtime import Runtime, event_types, events_of, scripted, wake

KEPT = Kept(output=None, feed=None, deliveries=None, fires=None, events=timedelta(days=30))
LONG = timedelta(days=31)


def survey() -> Tool[Any]:
    async def survey(river: str) -> str:
        output(f"{river} is long")
        return f"{river}: 12 km"

    return Tool(survey)


async def everything(session: Session) -> dict[str, Any]:
    """What people and the model see of a session."""
    turns = (await session.turns()).items
    view = (await session.view()).model_dump(exclude={"as_of", "feed", "session"})
    return {
        "view": view,
        "outcomes": [await each.outcome() for each in turns],
        "result": await session.result(),
        "export": await session.export(),
        "messages": await ui_messages(session, turns),
        "history": await session.history(),
    }


async def old(outlast: Outlast[Any, Any], by: timedelta = LONG) -> None:
    """All turns have ended so long ago."""
    await age(outlast, tables.turns.c.ended_at, by)


async def removed(runtime: Runtime, outlast: Outlast[Any, Any]) -> int:
    """How many pages of logs retention folds."""
    return (await removing(runtime, outlast, KEPT).run())["logs of ended turns"]


async def test_whole_turns_go_and_what_they_came_to_stays(runtime: Runtime) -> None:
    """I4: view, results, export, messages of the AI SDK and the model's history are what they were."""
    model = scripted(call("survey", {"river": "Aare"}), "Twelve.", call("survey", {"river": "Emme"}), "Also twelve.")
    async with runtime(model, tools=[survey()]) as outlast:
        session = await outlast.sessions.create()
        await session.ask("How long is the Aare?")
        await session.ask("And the Emme?")
        await old(outlast)
        before = await everything(session)
        last = (await events_of(session))[-1].number or 0
        assert await removed(runtime, outlast) == 2
        assert await everything(session) == before
        told = await events_of(session)
        assert [(each.type, each.data["first"]) for each in told] == [("stream.expired", last + 1)]
        snapshot = told[0].data["snapshot"]
        assert (snapshot["setting"], snapshot["removed_at"] > "2026") == ("keep_events", True)
        assert await removed(runtime, outlast) == 0


async def is_held(outlast: Outlast[Any, Any], session: Session) -> None:
    await hold(outlast, session)


async def has_an_open_task(outlast: Outlast[Any, Any], session: Session) -> None:
    await session.spawn("wait_for_it", {}, wake="silent")
    await age(outlast, tables.tasks.c.created_at, 2 * LONG)


async def has_a_waiting_input(outlast: Outlast[Any, Any], session: Session) -> None:
    await hold(outlast, session)
    await wake(outlast, session, "News.")
    await age(outlast, tables.inputs.c.created_at, 2 * LONG)


@pytest.mark.parametrize("open_", [is_held, has_an_open_task, has_a_waiting_input])
async def test_what_is_held_runs_or_waits_keeps_its_log(
    runtime: Runtime, open_: Callable[[Outlast[Any, Any], Session], Awaitable[None]]
) -> None:
    """I4: another session's goes all the same."""
    never = asyncio.Event()

    async def wait_for_it() -> None:
        """Wait."""
        await never.wait()

    async with runtime(lambda _: "Yes.", tools=[Tool(wait_for_it)]) as outlast:
        session, other = await outlast.sessions.create(), await outlast.sessions.create()
        for each in (session, other):
            await each.ask("Hello")
        await open_(outlast, session)
        await old(outlast)
        assert await removed(runtime, outlast) == 1
        assert "stream.expired" not in await event_types(session)
        assert (await event_types(other))[0] == "stream.expired"
        never.set()


async def test_forks_own_copies(runtime: Runtime) -> None:
    """I4, D8: what goes from the log of one is still in the other's, and one outlives the other."""
    async with runtime(lambda _: "Yes.", tools=[survey()]) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Hello")
        await old(outlast)
        assert await removed(runtime, outlast) == 1
        fork = await outlast.sessions.fork(session.id)
        said = await fork.history()
        assert said == await session.history()
        await fork.ask("And now?")
        await old(outlast)
        before = await everything(fork)
        await outlast.sessions.delete(session.id)
        assert await everything(fork) == before
        assert await removed(runtime, outlast) == 1
        assert await everything(fork) == before


async def test_whoever_is_reading_reads_on_and_later_the_rows_are_gone(runtime: Runtime) -> None:
    """I4, P4: a reader that stood in the log as it went misses nothing; one that comes later is told."""
    async with runtime(lambda _: "Yes.") as outlast:
        session = await outlast.sessions.create()
        await session.ask("Hello")
        whole = [each.number for each in await events_of(session)]
        await old(outlast)
        async with session.events(follow=False) as stream:
            read = [(await anext(stream)).number]
            assert await removed(runtime, outlast) == 1
            read += [each.number async for each in stream]
        assert read == whole
        await age(outlast, tables.removed_logs.c.at, timedelta(minutes=11))
        assert (await removing(runtime, outlast, KEPT).run())["rows of these logs"] > 0
        count = sa.select(sa.func.count()).select_from(tables.events)
        assert await outlast.database.read(lambda connection: connection.execute(count).scalar_one()) == 0
        async with session.events(after=1, follow=False) as stream:
            assert [each.type async for each in stream] == ["stream.expired"]
        assert (await session.ask("Again")).text == "Yes."
