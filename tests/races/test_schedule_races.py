"""Schedules that are due at an awkward moment: during a kill, on many workers, while they are edited or paused."""

import asyncio
import signal
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import pytest
from pydantic_ai import Agent

from outlast import Outlast, Schedule, Settings
from outlast.engines import sweep
from outlast.ids import ScheduleId
from outlast.store.repositories import schedules
from outlast.testing import ScriptedModel
from outlast.transitions.schedules import firing
from tests.behaviour.test_schedules import fires, ran, until
from tests.support.crashes import child
from tests.support.turns.runtime import FAST, Runtime, events_of

pytestmark = pytest.mark.timeout(300)


def opened(runtime: Runtime) -> Outlast[Any, Any]:
    agent = Agent(ScriptedModel(lambda _: "Done."), name="agent")
    chosen: dict[str, Any] = {**FAST, "files": str(runtime.files)}
    return Outlast(agent, database=runtime.database, settings=Settings(**chosen))


@pytest.mark.parametrize("place", ["commit schedule.fire before 1", "commit schedule.fire after 1"])
async def test_a_schedule_that_is_due_during_a_kill_fires_once(
    runtime: Runtime, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F3, P1: killed before the commit of its fire the next process fires it, killed after it the input is there."""
    monkeypatch.setattr(sweep, "GRACE_SECONDS", 0.0)
    arguments = (str(runtime.database), str(runtime.files), place)
    log = runtime.folder / "child.log"
    code = await asyncio.to_thread(child.run, "tests.support.crashes.scheduling_child", *arguments, log=log)
    assert code == -signal.SIGKILL, log.read_text()
    async with opened(runtime) as outlast:
        (made,) = (await outlast.schedules.list()).items
        await ran(outlast, made, 1)
        assert [each.outcome for each in await fires(outlast, made)] == ["ran"]
        session = await outlast.sessions.get(made.session_id)
        await session.settled()
        assert len(await events_of(session, "input.delivered")) == 1
        assert (await outlast.schedules.get(made.id)).state == "ended"


async def yearly(outlast: Outlast[Any, Any]) -> Schedule:
    session = await outlast.sessions.create()
    return await session.schedule("Look.", cron="0 0 1 1 *", overlap="allow")


async def stored(outlast: Outlast[Any, Any], made: Schedule) -> Any:
    return await outlast.database.read(partial(schedules.get, schedule_id=ScheduleId(made.id)))


async def set_due(outlast: Outlast[Any, Any], made: Schedule) -> None:
    """Now, without a signal: who looks first is the race."""

    def change(unit: Any) -> None:
        unit.lock(made.session_id)
        schedules.set_values(unit, ScheduleId(made.id), due_at=unit.now)

    await outlast.database.transaction(change, name="due")


async def test_three_workers_fire_what_is_due_once(ready_postgres_url: str, tmp_path: Any) -> None:
    """F3: all three see that it is due and try at once, again and again; each time is decided once."""
    runtime = Runtime(ready_postgres_url, files=str(tmp_path / "files"))
    async with AsyncExitStack() as stack:
        workers = [await stack.enter_async_context(opened(runtime)) for _ in range(3)]
        made = await yearly(workers[0])
        for number in range(1, 6):
            await set_due(workers[0], made)
            seen = await stored(workers[0], made)
            fire = partial(firing.fire_due, seen=seen)
            await asyncio.gather(*(each.database.transaction(fire, name="schedule.fire") for each in workers))
            await until(partial(_has_fired, workers[0], made, number))
            await ran(workers[0], made, number)
            await (await workers[0].sessions.get(made.session_id)).settled()
        assert [each.outcome for each in await fires(workers[0], made)] == ["ran"] * 5


async def _has_fired(outlast: Outlast[Any, Any], made: Schedule, count: int) -> bool:
    return len(await fires(outlast, made)) == count


async def changed(outlast: Outlast[Any, Any], schedule_id: str, change: str) -> None:
    if change == "pause":
        await outlast.schedules.pause(schedule_id)
    elif change == "edit":
        await outlast.schedules.edit(schedule_id, cron="0 0 2 2 *")
    else:
        await outlast.schedules.delete(schedule_id)


@pytest.mark.parametrize("change", ["pause", "edit", "delete"])
async def test_what_is_changed_at_the_instant_fires_once_or_not_at_all(runtime: Runtime, change: str) -> None:
    """F3, F5: whichever commits first counts: paused before, it does not fire; fired before, the pause comes after."""
    async with opened(runtime) as outlast:
        for _ in range(6):
            made = await yearly(outlast)
            await set_due(outlast, made)
            fire = partial(firing.fire_due, seen=await stored(outlast, made))
            await asyncio.gather(
                outlast.database.transaction(fire, name="schedule.fire"), changed(outlast, made.id, change)
            )
            session = await outlast.sessions.get(made.session_id)
            await session.settled()
            fired = await events_of(session, "schedule.fired")
            assert len(fired) <= 1
            assert len(await events_of(session, "input.accepted")) == len(fired)
            if change == "delete":
                assert (await outlast.schedules.list(session_id=session.id)).items == []
                continue
            after = await outlast.schedules.get(made.id)
            assert len(await fires(outlast, made)) == len(fired)
            assert after.state == ("paused" if change == "pause" else "active")
            if change == "edit":
                assert after.cron == "0 0 2 2 *"
                assert after.next_at is not None
                assert (after.next_at.month, after.next_at.day) == (2, 2)
