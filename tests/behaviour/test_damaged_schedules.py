"""A schedule that cannot be read or fired holds up no other."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from outlast import Outlast
from outlast.ids import ScheduleId
from outlast.store.tables import schedules
from outlast.testing import ManualClock
from tests.behaviour.test_schedules import MINUTE, ran, until
from tests.support.turns.runtime import Runtime

START = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)


async def damage(outlast: Outlast[Any, Any], schedule_id: str, **values: Any) -> None:
    change = sa.update(schedules).where(schedules.c.id == ScheduleId(schedule_id)).values(**values)
    await outlast.database.transaction(lambda unit: unit.connection.execute(change), name="damage")


@pytest.mark.parametrize("values", [{"zone": "Mars/Olympus"}, {"cron": "x"}])
async def test_one_that_cannot_fire_is_paused_and_the_others_fire(embedded: Runtime, values: dict[str, Any]) -> None:
    """F3, P8: the broken one is due first, and again at each look; it says why it is paused."""
    clock = ManualClock(START)
    async with embedded(lambda _: "Yes.", clock=clock) as outlast:
        broken = await (await outlast.sessions.create()).schedule("Look.", cron=MINUTE)
        whole = await (await outlast.sessions.create()).schedule("Look.", cron=MINUTE)
        await damage(outlast, broken.id, **values, due_at=schedules.c.due_at - 1)
        for count in (1, 2):
            clock.advance(timedelta(minutes=1))
            await outlast.database.transaction(lambda unit: unit.signal("schedules"), name="look")
            await ran(outlast, whole, count)
            await (await outlast.sessions.get(whole.session_id)).settled()

        async def is_paused() -> bool:
            found = await outlast.schedules.get(broken.id)
            return (found.state, found.reason) == ("paused", "broken")

        await until(is_paused)
        assert {each.id for each in (await outlast.schedules.list()).items} == {broken.id, whole.id}
        assert (await outlast.schedules.fires(broken.id)).items == []
        await outlast.schedules.edit(broken.id, cron=MINUTE, zone="UTC")
        assert (await outlast.schedules.resume(broken.id)).state == "active"


async def test_one_that_cannot_be_read_holds_up_no_other(embedded: Runtime) -> None:
    """F3, P8: such as one that a later version made; it stays as it is, for that version."""
    clock = ManualClock(START)
    async with embedded(lambda _: "Yes.", clock=clock) as outlast:
        odd = await (await outlast.sessions.create()).schedule("Look.", cron=MINUTE)
        whole = await (await outlast.sessions.create()).schedule("Look.", cron=MINUTE)
        await damage(outlast, odd.id, missed="perhaps", due_at=schedules.c.due_at - 1)
        clock.advance(timedelta(minutes=1))
        await outlast.database.transaction(lambda unit: unit.signal("schedules"), name="look")
        await ran(outlast, whole, 1)
        await damage(outlast, odd.id, missed="run_once")
        await outlast.database.transaction(lambda unit: unit.signal("schedules"), name="look")
        await ran(outlast, odd, 1)
