"""Monitors: a tool is run on a schedule, and its session wakes only when the result meets a condition."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic_ai import ModelRetry, Tool

from outlast import Outlast, Schedule, Session
from outlast.errors import InvalidInput
from outlast.testing import ManualClock, next_fire, texts_seen
from tests.behaviour.test_schedules import PATIENCE, until
from tests.support.turns.runtime import Runtime, event_types, scripted

START = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
MINUTE = "* * * * *"


class Sensor:
    """A tool that gives what it is set to; an error fails it."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.tool = Tool(self.look, name="look")

    async def look(self) -> Any:
        """Look."""
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


async def checked(outlast: Outlast[Any, Any], clock: ManualClock, monitor: Schedule, count: int) -> Schedule:
    """One more check, until its result is known."""
    await next_fire(outlast, clock)

    async def is_over() -> bool:
        tasks = [each for each in await (await session_of(outlast, monitor)).tasks() if each.kind == "call"]
        return len(tasks) == count and all(each.is_over for each in tasks)

    await until(is_over)
    return await outlast.schedules.get(monitor.id)


async def session_of(outlast: Outlast[Any, Any], monitor: Schedule) -> Session:
    return await outlast.sessions.get(monitor.session_id)


async def test_a_monitor_wakes_only_when_the_result_has_changed(embedded: Runtime) -> None:
    """F4: it is a task that shows its last and next fire, how often it looked, and what it saw last."""
    clock, sensor, model = ManualClock(START), Sensor({"level": 3}), scripted("I see.", "And again.")
    async with embedded(model, tools=[sensor.tool], clock=clock) as outlast:
        session = await outlast.sessions.create()
        made = await session.schedule(tool="look", cron=MINUTE, condition={"kind": "changed"}, title="river")
        assert made.kind == "monitor"
        await checked(outlast, clock, made, 1)
        seen = await checked(outlast, clock, made, 2)
        assert (seen.fired, seen.last_result) == (2, {"level": 3})
        assert "turn.queued" not in await event_types(session)
        sensor.value = {"level": 4}
        await checked(outlast, clock, made, 3)
        await session.settled(wait=PATIENCE)
        (said,) = [each for each in texts_seen(model.requests[-1].messages) if "Monitor" in each]
        assert "background_result" in said
        assert "its result has changed" in said
        assert '"level":4' in said.replace("&quot;", '"')
        (task,) = [each for each in await session.tasks() if each.kind == "monitor"]
        assert task.id == made.task_id
        assert (task.state, task.detail) == (
            "running",
            '3 checks, last 2026-01-05 08:03 UTC, next 2026-01-05 08:04 UTC. Last Result: {"level":4}',
        )


@pytest.mark.parametrize(
    ("condition", "quiet", "news"),
    [
        ({"kind": "changed", "path": "jobs[0].s"}, {"jobs": [{"s": "on", "at": 2}]}, {"jobs": [{"s": "off"}]}),
        ({"kind": "equals", "path": "$.state", "value": "done"}, {"state": "open"}, {"state": "done"}),
        ({"kind": "matches", "value": "(?i)error \\d+"}, "all is well", "an Error 42"),
        ({"kind": "above", "path": "level", "value": 4.5}, {"level": 4.5}, {"level": 5}),
        ({"kind": "below", "value": 0}, 0, -1),
    ],
)
async def test_a_monitor_wakes_when_its_condition_is_met(
    embedded: Runtime, condition: dict[str, Any], quiet: Any, news: Any
) -> None:
    """F4: once, when it becomes true, and not at each check after that."""
    first = {"jobs": [{"s": "on", "at": 1}]} if condition["kind"] == "changed" else quiet
    clock, sensor = ManualClock(START), Sensor(first)
    async with embedded(lambda _: "I see.", tools=[sensor.tool], clock=clock) as outlast:
        session = await outlast.sessions.create()
        made = await session.schedule(tool="look", cron=MINUTE, condition=condition)
        await checked(outlast, clock, made, 1)
        sensor.value = quiet
        await checked(outlast, clock, made, 2)
        assert "turn.queued" not in await event_types(session)
        sensor.value = news
        await checked(outlast, clock, made, 3)
        await session.settled(wait=PATIENCE)
        await checked(outlast, clock, made, 4)
        await session.settled(wait=PATIENCE)
        assert (await event_types(session)).count("turn.queued") == 1


async def test_a_monitor_that_fails_says_so_once(embedded: Runtime) -> None:
    """F4: nobody trusts a monitor that no longer looks."""
    clock, sensor, model = ManualClock(START), Sensor(1), scripted("Oh.", "Never.")
    async with embedded(model, tools=[sensor.tool], clock=clock) as outlast:
        session = await outlast.sessions.create()
        made = await session.schedule(tool="look", cron=MINUTE, condition={})
        await checked(outlast, clock, made, 1)
        sensor.value = ModelRetry("the sensor is wet")
        await checked(outlast, clock, made, 2)
        await session.settled(wait=PATIENCE)
        seen = await checked(outlast, clock, made, 3)
        await session.settled(wait=PATIENCE)
        assert "the sensor is wet" in str(seen.last_result) + str(seen.last_error)
        assert (await event_types(session)).count("turn.queued") == 1


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ({"kind": "often"}, "kind='often'"),
        ({"kind": "equals"}, "needs a value"),
        ({"kind": "changed", "value": 1}, "takes no value"),
        ({"kind": "above", "value": "much"}, "needs a number"),
        ({"kind": "matches", "value": "(a+)+(?=b)"}, "look-around"),
        ({"kind": "matches", "value": "("}, "not a regular expression"),
        ({"kind": "equals", "value": 1, "path": "a..b"}, "not a path"),
        ({"when": "changed"}, "when is not known"),
    ],
)
async def test_a_bad_condition_names_its_fault(embedded: Runtime, condition: dict[str, Any], words: str) -> None:
    """F4: before anything is kept; and a monitor needs a cron."""
    async with embedded(tools=[Sensor(1).tool]) as outlast:
        session = await outlast.sessions.create()
        with pytest.raises(InvalidInput, match=words):
            await session.schedule(tool="look", cron=MINUTE, condition=condition)
        with pytest.raises(InvalidInput, match="again and again"):
            await session.schedule(tool="look", delay="1 minute", condition={})
        assert await session.tasks() == []


async def test_who_cancels_the_task_ends_the_monitor_and_the_other_way_round(runtime: Runtime) -> None:
    """F4, B6: nothing of it is left open."""
    async with runtime(tools=[Sensor(1).tool]) as outlast:
        session = await outlast.sessions.create()
        first = await session.schedule(tool="look", cron=MINUTE, condition={})
        second = await session.schedule(tool="look", cron=MINUTE, condition={})
        assert first.task_id is not None
        assert second.task_id is not None
        assert (await outlast.tasks.cancel(first.task_id)).state == "canceled"
        found = await outlast.schedules.get(first.id)
        assert (found.state, found.reason, found.next_at) == ("ended", "canceled", None)
        await outlast.schedules.delete(second.id)
        assert (await outlast.tasks.get(second.task_id)).state == "canceled"


async def test_one_input_of_a_monitor_waits_at_most(embedded: Runtime) -> None:
    """F4: what is newer takes the place of what nobody has seen yet."""
    clock, sensor, model = ManualClock(START), Sensor(1), scripted("Started.", "I see.")
    async with embedded(model, tools=[sensor.tool], clock=clock) as outlast:
        session = await outlast.sessions.create()
        made = await session.schedule(tool="look", cron=MINUTE, condition={})
        await session.stop()
        for number in (1, 2, 3):
            sensor.value = number
            await checked(outlast, clock, made, number)
        (waiting,) = await session.inbox(is_whole=True)
        assert "Result: 3" in waiting.text
