"""Schedules: what they do, when, and what becomes of each of their times."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic_ai import Agent, Tool

from outlast import Outlast, Permissions, Schedule, Session, Settings
from outlast.errors import Conflict, Forbidden, IdempotencyMismatch, InvalidInput, LimitReached, NotFound
from outlast.limits import Limits
from outlast.store import tables
from outlast.testing import ManualClock, last_user_text, next_fire
from outlast.transitions.turns import turn_start
from tests.support.turns.runtime import Runtime, event_types, events_of, scripted, wake

START = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
MINUTE = "* * * * *"
PATIENCE = 30.0
FEW = Limits(max_woken=2)


async def double(number: int) -> int:
    """Twice as much."""
    return 2 * number


async def until(holds: Callable[[], Awaitable[Any]]) -> Any:
    async with asyncio.timeout(PATIENCE):
        while not (found := await holds()):  # noqa: ASYNC110 - in the database
            await asyncio.sleep(0.01)
        return found


async def fires(outlast: Outlast[Any, Any], schedule: Schedule) -> list[Any]:
    """The oldest first."""
    return list((await outlast.schedules.fires(schedule.id, limit=200)).items)[::-1]


async def outcomes(outlast: Outlast[Any, Any], schedule: Schedule) -> list[str]:
    return [each.outcome for each in await fires(outlast, schedule)]


async def session_of(outlast: Outlast[Any, Any], schedule: Schedule) -> Session:
    """When nothing runs in it."""
    session = await outlast.sessions.get(schedule.session_id)
    await session.settled(wait=PATIENCE)
    return session


async def ran(outlast: Outlast[Any, Any], schedule: Schedule, count: int) -> None:
    async def holds() -> bool:
        return (await outcomes(outlast, schedule)).count("ran") == count

    await until(holds)


async def test_a_schedule_says_its_text_when_it_is_due_on_both_engines(runtime: Runtime) -> None:
    """F1, F3: once, with the turn in its history; a schedule of one time has ended then."""
    model = scripted("Good morning.")
    async with runtime(model) as outlast:
        session = await outlast.sessions.create()
        made = await session.schedule("Say good morning.", delay="1 second", title="greeting", by="ada")
        assert (made.state, made.kind, made.made_by.by) == ("active", "message", "ada")
        await ran(outlast, made, 1)
        (fire,) = await fires(outlast, made)
        outcome = await session.turn(fire.turn_id).outcome()
        assert outcome.text == "Good morning."
        seen = last_user_text(model.requests[-1].messages)
        assert "Say good morning." in seen
        assert f"Schedule {made.id} (greeting) was due at" in seen
        assert "the user made it" in seen
        again = await outlast.schedules.get(made.id)
        assert (again.state, again.reason, again.next_at, again.fired) == ("ended", "done", None, 1)
        (queued,) = await events_of(session, "turn.queued")
        assert queued.data["origin"] == "schedule"
        told = [each for each in await event_types(session) if each.startswith("schedule.")]
        assert told == ["schedule.created", "schedule.fired", "schedule.changed"]


async def test_a_cron_fires_at_each_of_its_times(embedded: Runtime) -> None:
    """F1, F3, F5: in its zone, each time once; the history says when each was due and in which turn it ran."""
    clock = ManualClock(START)
    async with embedded(["One.", "Two."], clock=clock) as outlast:
        session = await outlast.sessions.create()
        made = await session.schedule("Look.", cron="30 10,11 * * *", zone="Europe/Berlin")
        assert made.next_at is not None
        assert made.next_at.isoformat() == "2026-01-05T10:30:00+01:00"
        for number, hour in ((1, 10), (2, 11)):
            assert await next_fire(outlast, clock) == datetime(2026, 1, 5, hour - 1, 30, tzinfo=UTC)
            await ran(outlast, made, number)
            await session.settled()
        assert [each.due_at.isoformat() for each in await fires(outlast, made)] == [
            "2026-01-05T10:30:00+01:00",
            "2026-01-05T11:30:00+01:00",
        ]
        again = await outlast.schedules.get(made.id)
        assert again.next_at is not None
        assert again.next_at.isoformat() == "2026-01-06T10:30:00+01:00"


async def test_a_schedule_runs_a_tool_and_its_end_wakes_the_session(runtime: Runtime) -> None:
    """F3, B3: each fire is a task of its own, which names its schedule."""
    async with runtime(scripted("It is 42."), tools=[Tool(double)]) as outlast:
        session = await outlast.sessions.create()
        made = await session.schedule(tool="double", args={"number": 21}, delay=timedelta(seconds=1))
        await ran(outlast, made, 1)
        (task,) = await session.tasks()
        assert (task.links["schedule"], (await outlast.tasks.wait(task.id, seconds=PATIENCE)).result) == (made.id, 42)
        outcome = await session.settled(wait=PATIENCE)
        assert outcome is not None
        assert outcome.text == "It is 42."


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "exactly one of cron, at and delay"),
        ({"cron": MINUTE, "delay": "1 minute"}, "cron and delay are given"),
        ({"cron": "* * * *"}, "4 fields"),
        ({"cron": "* * * * * *"}, "6 fields"),
        ({"cron": "61 * * * *"}, "bad minute"),
        ({"cron": "0 0 30 2 *"}, "bad day-of-month"),
        ({"at": "tomorrow"}, "RFC 3339"),
        ({"at": "2020-01-01T00:00:00Z"}, "in the past"),
        ({"delay": "soon"}, "not understood"),
        ({"delay": "999 weeks"}, "longer than a year"),
        ({"cron": MINUTE, "zone": "Mars/Olympus"}, "not a zone"),
        ({"cron": MINUTE, "missed": "never"}, "missed='never'"),
        ({"cron": MINUTE, "tool": "double"}, "exactly one of text and tool"),
        ({"cron": MINUTE, "args": {"number": 1}}, "about a tool"),
    ],
)
async def test_bad_input_names_its_fault(embedded: Runtime, given: dict[str, Any], words: str) -> None:
    """F1: and nothing is kept."""
    async with embedded(tools=[Tool(double)]) as outlast:
        session = await outlast.sessions.create()
        with pytest.raises(InvalidInput, match=words.replace("(", r"\(")):
            await session.schedule("Look.", **given)
        for tool, args in (("doubel", {"number": 1}), ("double", {"number": "many"})):
            with pytest.raises(InvalidInput, match="double"):
                await session.schedule(tool=tool, args=args, cron=MINUTE)
        assert (await outlast.schedules.list()).items == []


async def test_there_are_so_many_and_no_more(embedded: Runtime) -> None:
    """F2: of a session and of an owner; what has ended does not count."""
    async with embedded(max_schedules_per_session=2, max_schedules_per_owner=3) as outlast:
        first, second = await outlast.sessions.create(), await outlast.sessions.create()
        made = [await first.schedule("Look.", cron=MINUTE) for _ in range(2)]
        with pytest.raises(LimitReached, match="The session has 2"):
            await first.schedule("Look.", cron=MINUTE)
        await second.schedule("Look.", cron=MINUTE)
        with pytest.raises(LimitReached, match="You have 3"):
            await second.schedule("Look.", cron=MINUTE)
        await outlast.schedules.delete(made[0].id)
        await second.schedule("Look.", cron=MINUTE)
        assert Settings.model_fields["max_schedules_per_session"].default == 20
        assert Settings.model_fields["max_schedules_per_owner"].default == 100


async def test_a_key_makes_one_schedule(embedded: Runtime) -> None:
    """F5: sent again it is the same one; another content of it is refused."""
    async with embedded() as outlast:
        session = await outlast.sessions.create()
        made = [await session.schedule("Look.", cron=MINUTE, idempotency_key="k") for _ in range(2)]
        assert made[0].id == made[1].id
        with pytest.raises(IdempotencyMismatch):
            await session.schedule("Look there.", cron=MINUTE, idempotency_key="k")


async def test_what_was_missed_is_done_once_and_says_how_late(embedded: Runtime) -> None:
    """F3: `run_once`: the latest time is made up for, the model is told how late it is; the others stand as missed."""
    clock = ManualClock(START)
    model = scripted("Late.")
    async with embedded(model, clock=clock) as outlast:
        session = await outlast.sessions.create()
        made = await session.schedule("Look.", cron="0 * * * *")
    clock.advance(timedelta(hours=3, minutes=10))
    async with embedded(model, clock=clock) as outlast:
        await ran(outlast, made, 1)
        await session_of(outlast, made)
        skipped, fire = await fires(outlast, made)
        assert (skipped.outcome, skipped.reason, skipped.count) == ("skipped", "missed", 2)
        assert (fire.due_at, fire.late_seconds) == (START + timedelta(hours=3), 600.0)
        seen = last_user_text(model.requests[-1].messages)
        assert "is late by 10 min" in seen
        assert "2 earlier times were missed" in seen
        assert (await outlast.schedules.get(made.id)).next_at == START + timedelta(hours=4)


async def test_what_was_missed_may_be_left_out(embedded: Runtime) -> None:
    """F3: `skip`; what is only a little late is not missed."""
    clock = ManualClock(START)
    async with embedded(clock=clock) as outlast:
        session = await outlast.sessions.create()
        made = await session.schedule("Look.", cron="0 * * * *", missed="skip")
        once = await session.schedule("Look once.", at=START + timedelta(minutes=90), missed="skip")
    clock.advance(timedelta(hours=2, minutes=1))
    async with embedded(clock=clock) as outlast:
        await until(lambda: fires(outlast, made))
        await until(lambda: fires(outlast, once))
        assert [(each.outcome, each.reason, each.count) for each in await fires(outlast, made)] == [
            ("skipped", "missed", 2)
        ]
        assert await outcomes(outlast, once) == ["skipped"]
        assert (await outlast.schedules.get(once.id)).state == "ended"
        await next_fire(outlast, clock, late_by=timedelta(seconds=20))
        await ran(outlast, made, 1)


async def test_all_that_was_missed_is_made_up_for_within_bounds(embedded: Runtime) -> None:
    """F3: `run_all`: the last hundred, and the history says what was left."""
    clock = ManualClock(START)
    async with embedded(tools=[Tool(double)], clock=clock, max_open_tasks_per_session=4) as outlast:
        session = await outlast.sessions.create()
        made = await session.schedule(
            tool="double", args={"number": 1}, cron=MINUTE, missed="run_all", overlap="allow", wake="silent"
        )
    clock.advance(timedelta(minutes=130))
    async with embedded(tools=[Tool(double)], clock=clock, max_open_tasks_per_session=4) as outlast:
        await ran(outlast, made, 100)
        first, *others = await fires(outlast, made)
        assert (first.outcome, first.reason, first.count) == ("skipped", "missed", 30)
        assert "30 times were missed" in first.detail
        assert [each.due_at for each in others] == [START + timedelta(minutes=each) for each in range(31, 131)]
        assert len({each.task_id for each in others}) == 100


async def test_a_time_is_left_out_while_an_earlier_one_goes_on(embedded: Runtime) -> None:
    """F3: overlap `skip`, the default; `fired` and `ran` are different."""
    clock, go_on = ManualClock(START), asyncio.Event()

    async def slow() -> str:
        await go_on.wait()
        return "done"

    async with embedded(tools=[Tool(slow)], clock=clock) as outlast:
        session = await outlast.sessions.create()
        made = await session.schedule(tool="slow", cron=MINUTE, wake="silent")
        await next_fire(outlast, clock)
        await ran(outlast, made, 1)
        await next_fire(outlast, clock)
        assert await outcomes(outlast, made) == ["ran", "skipped"]
        go_on.set()
        (task,) = await session.tasks()
        await outlast.tasks.wait(task.id, seconds=PATIENCE)
        await next_fire(outlast, clock)
        await ran(outlast, made, 2)
        (_, skipped, _) = await fires(outlast, made)
        assert (skipped.reason, "Fire 1" in skipped.detail) == ("overlap", True)


async def test_a_time_may_wait_for_the_end_of_an_earlier_one(embedded: Runtime) -> None:
    """F3: overlap `queue`: it fires when that is over, one after another."""
    clock, may_end = ManualClock(START), asyncio.Semaphore(0)

    async def slow() -> str:
        await may_end.acquire()
        return "done"

    async with embedded(tools=[Tool(slow)], clock=clock) as outlast:
        session = await outlast.sessions.create()
        made = await session.schedule(tool="slow", cron=MINUTE, overlap="queue", wake="silent")
        for _ in range(3):
            await next_fire(outlast, clock)
        await ran(outlast, made, 1)
        assert await outcomes(outlast, made) == ["ran", "queued", "queued"]
        for number in (2, 3):
            may_end.release()
            await ran(outlast, made, number)
        may_end.release()
        assert [each.due_at.minute for each in await fires(outlast, made)] == [1, 2, 3]


async def test_several_fires_may_go_on_at_once_if_it_is_allowed(embedded: Runtime) -> None:
    """F3: overlap `allow` for tools; of inputs one waits at most."""
    clock, go_on = ManualClock(START), asyncio.Event()

    async def slow() -> str:
        await go_on.wait()
        return "done"

    async with embedded(tools=[Tool(slow)], clock=clock) as outlast:
        session = await outlast.sessions.create()
        runs = await session.schedule(tool="slow", cron=MINUTE, overlap="allow", wake="silent")
        await next_fire(outlast, clock)
        await next_fire(outlast, clock)
        await ran(outlast, runs, 2)
        await session.stop()
        says = await session.schedule("Look.", cron=MINUTE, overlap="allow")
        await next_fire(outlast, clock)
        await next_fire(outlast, clock)
        waits, left_out = await fires(outlast, says)
        assert (waits.outcome, left_out.outcome, left_out.reason) == ("fired", "skipped", "input_waits")
        go_on.set()


async def test_a_fire_on_a_held_session_waits_as_one_input(embedded: Runtime) -> None:
    """F3, F5: fired, and ran only when a person lets the session go on; outside the inbox's ten messages."""
    clock = ManualClock(START)
    async with embedded(["One.", "Two."], clock=clock, max_inbox=1) as outlast:
        session = await outlast.sessions.create()
        await wake(outlast, session, "News.")
        await session.settled()
        await session.stop()
        made = await session.schedule("Look.", cron=MINUTE)
        await hold(outlast, session)
        for _ in range(3):
            await next_fire(outlast, clock)
        assert await outcomes(outlast, made) == ["fired", "skipped", "skipped"]
        assert await session.inbox() == []
        (waiting,) = await session.inbox(is_whole=True)
        assert waiting.kind == "schedule"
        await session.resume()
        await ran(outlast, made, 1)


async def hold(outlast: Outlast[Any, Any], session: Session) -> None:
    await outlast.database.transaction(
        lambda unit: turn_start.hold(unit, unit.lock(session.id), "stopped"), name="hold"
    )


async def test_scheduled_turns_neither_count_as_woken_nor_end_the_row(embedded: Runtime) -> None:
    """F3, P3: only a person does; a flagged session waits."""
    clock = ManualClock(START)
    async with embedded(lambda _: "Yes.", clock=clock) as outlast:
        session = await outlast.sessions.create()
        made = await session.schedule("Look.", cron=MINUTE)
        await wake(outlast, session, "First.", limits=FEW)
        await session.settled()
        await next_fire(outlast, clock)
        await ran(outlast, made, 1)
        await session.settled()
        await wake(outlast, session, "Second.", limits=FEW)
        await session.settled()
        await wake(outlast, session, "Third.", limits=FEW)
        assert (await session.refresh()).is_held
        assert len(await events_of(session, "session.flagged")) == 1
        await next_fire(outlast, clock)
        assert await outcomes(outlast, made) == ["ran", "fired"]


async def test_at_the_daily_limit_a_fire_waits_for_the_next_day(embedded: Runtime) -> None:
    """F3, H2: fired and not ran; its turn is queued until then."""
    clock = ManualClock(START)
    async with embedded(["Yes."], clock=clock, daily_cost_limit=0) as outlast:
        session = await outlast.sessions.create()
        made = await session.schedule("Look.", cron=MINUTE)
        await next_fire(outlast, clock)
        await next_fire(outlast, clock)
        assert await outcomes(outlast, made) == ["fired", "skipped"]
        assert (await session.refresh()).state == "queued"


async def test_nothing_fires_while_the_server_is_paused(embedded: Runtime) -> None:
    """F3: when it goes on, the policy for missed times decides."""
    clock = ManualClock(START)
    async with embedded(clock=clock) as outlast:
        session = await outlast.sessions.create()
        once = await session.schedule("Look.", cron="0 * * * *")
        never = await session.schedule(tool=None, text="Look there.", cron="0 * * * *", missed="skip", overlap="allow")
        await outlast.pause()
        clock.advance(timedelta(hours=2, minutes=5))
        await outlast.database.transaction(lambda unit: unit.signal("schedules"), name="look")
        for _ in range(5):
            await asyncio.sleep(0.02)
            assert await fires(outlast, once) == []
        await outlast.unpause()
        await ran(outlast, once, 1)
        assert await outcomes(outlast, never) == ["skipped"]


async def test_a_schedule_is_paused_resumed_triggered_and_deleted(runtime: Runtime) -> None:
    """F5: paused nothing fires; a trigger changes none of its times; deleted it and its history are gone."""
    async with runtime(lambda _: "Yes.") as outlast:
        session = await outlast.sessions.create()
        made = await session.schedule("Look.", cron="0 3 * * *")
        paused = await outlast.schedules.pause(made.id)
        assert (paused.state, paused.reason, paused.next_at) == ("paused", "asked", None)
        await outlast.schedules.trigger(made.id)
        await ran(outlast, made, 1)
        (fire,) = await fires(outlast, made)
        assert (fire.how, (await outlast.schedules.get(made.id)).state) == ("triggered", "paused")
        resumed = await outlast.schedules.resume(made.id)
        assert (resumed.state, resumed.next_at) == ("active", made.next_at)
        await outlast.schedules.delete(made.id)
        for ask in (outlast.schedules.get, outlast.schedules.fires, outlast.schedules.pause, outlast.schedules.delete):
            with pytest.raises(NotFound):
                await ask(made.id)
        told = [each for each in await event_types(session) if each.startswith("schedule.")]
        assert told == [
            *("schedule.created", "schedule.paused", "schedule.fired", "schedule.changed", "schedule.deleted"),
        ]


async def test_a_schedule_is_edited(embedded: Runtime) -> None:
    """F5: what it says, when, and its policies; a new time counts from now. What has ended is not edited."""
    clock = ManualClock(START)
    async with embedded(tools=[Tool(double)], clock=clock) as outlast:
        session = await outlast.sessions.create()
        made = await session.schedule("Look.", cron="0 9 * * *")
        edited = await outlast.schedules.edit(made.id, text="Look there.", zone="Asia/Tokyo", title="t", missed="skip")
        assert (edited.text, edited.zone, edited.title, edited.missed) == ("Look there.", "Asia/Tokyo", "t", "skip")
        assert edited.next_at == datetime(2026, 1, 6, 0, 0, tzinfo=UTC)
        soon = await outlast.schedules.edit(made.id, delay="5 minutes")
        assert (soon.cron, soon.next_at) == (None, START + timedelta(minutes=5))
        await next_fire(outlast, clock)
        await ran(outlast, made, 1)
        with pytest.raises(Conflict, match="has ended"):
            await outlast.schedules.edit(made.id, cron=MINUTE)
        with pytest.raises(Conflict, match="has ended"):
            await outlast.schedules.trigger(made.id)
        tool = await session.schedule(tool="double", args={"number": 1}, cron=MINUTE)
        with pytest.raises(InvalidInput, match="number"):
            await outlast.schedules.edit(tool.id, args={"number": "x"})
        with pytest.raises(InvalidInput, match="says nothing"):
            await outlast.schedules.edit(tool.id, text="Look.")
        assert (await outlast.schedules.edit(tool.id, args={"number": 2})).args == {"number": 2}


async def test_another_owners_schedules_are_not_there(embedded: Runtime) -> None:
    """P7, G2: the same answer as for an id that never was."""
    async with embedded() as outlast:
        session = await outlast.sessions.create()
        made = await session.schedule("Look.", cron=MINUTE)
        others = outlast.schedules_of("bob")
        for ask in (others.get, others.fires, others.pause, others.resume, others.trigger, others.edit, others.delete):
            with pytest.raises(NotFound) as strange:
                await ask(made.id)
            with pytest.raises(NotFound) as unknown:
                await ask("sch_none")
            assert strange.value.message == unknown.value.message
        assert (await others.list()).items == []


async def test_archiving_pauses_and_says_why(embedded: Runtime) -> None:
    """F3: and it is not resumed before the session is taken out again."""
    async with embedded() as outlast:
        session = await outlast.sessions.create()
        made = await session.schedule("Look.", cron=MINUTE)
        await session.update(is_archived=True)
        assert (await outlast.schedules.get(made.id)).reason == "session_archived"
        for refused in (outlast.schedules.resume(made.id), session.schedule("Look.", cron=MINUTE)):
            with pytest.raises(Conflict, match="archived"):
                await refused
        await session.update(is_archived=False)
        assert (await outlast.schedules.resume(made.id)).state == "active"


async def test_a_schedule_whose_tool_or_agent_is_gone_pauses_itself(embedded: Runtime) -> None:
    """F3: and says why."""
    clock = ManualClock(START)
    async with embedded(tools=[Tool(double)], clock=clock) as outlast:
        session = await outlast.sessions.create()
        made = await session.schedule(tool="double", args={"number": 1}, cron=MINUTE)
        says = await session.schedule("Look.", cron="0 0 * * *")
    async with embedded(clock=clock) as outlast:
        clock.advance(timedelta(minutes=1))
        await until(lambda: _state_of(outlast, made, "paused"))
        assert (await outlast.schedules.get(made.id)).reason == "tool_gone"
        assert await fires(outlast, made) == []
    async with embedded(agent=Agent(scripted("x"), name="other"), clock=clock) as outlast:
        clock.advance(timedelta(days=1))
        await until(lambda: _state_of(outlast, says, "paused"))
        assert (await outlast.schedules.get(says.id)).reason == "agent_gone"


async def _state_of(outlast: Outlast[Any, Any], schedule: Schedule, state: str) -> bool:
    return (await outlast.schedules.get(schedule.id)).state == state


async def test_a_deleted_session_takes_its_schedules_along(runtime: Runtime) -> None:
    """F3, P7: nothing of them is left, and nothing fires."""
    async with runtime() as outlast:
        session = await outlast.sessions.create()
        made = await session.schedule("Look.", cron=MINUTE)
        await outlast.schedules.trigger(made.id)
        await outlast.sessions.delete(session.id)
        with pytest.raises(NotFound):
            await outlast.schedules.get(made.id)
        for table in (tables.schedules, tables.fires):
            count = sa.select(sa.func.count()).select_from(table)
            assert await outlast.database.read(lambda connection, c=count: connection.execute(c).scalar_one()) == 0


async def test_permissions_are_those_of_the_session_at_the_fire(embedded: Runtime) -> None:
    """F3, E1: denied when it is made it is refused; denied later, the fire fails and the schedule goes on."""
    clock = ManualClock(START)
    async with embedded(tools=[Tool(double)], clock=clock) as outlast:
        session = await outlast.sessions.create()
        made = await session.schedule(tool="double", args={"number": 1}, cron=MINUTE, wake="silent")
        await session.update(permissions=Permissions(deny=["double"]))
        with pytest.raises(Forbidden):
            await session.schedule(tool="double", args={"number": 1}, cron=MINUTE)
        await next_fire(outlast, clock)
        (fire,) = await fires(outlast, made)
        assert (fire.outcome, fire.reason) == ("failed", "forbidden")
        await session.update(permissions=None)
        await next_fire(outlast, clock)
        await ran(outlast, made, 1)


async def test_a_schedule_shows_its_next_times_before_it_is_made(embedded: Runtime) -> None:
    """F5: in its zone and in UTC."""
    async with embedded(clock=ManualClock(datetime(2027, 3, 27, tzinfo=UTC))) as outlast:
        found = await outlast.schedules.preview(cron="30 2 * * *", zone="Europe/Berlin", count=3)
        assert [each.isoformat() for each in found.times] == [
            "2027-03-27T02:30:00+01:00",
            "2027-03-28T03:00:00+02:00",
            "2027-03-29T02:30:00+02:00",
        ]
        assert found.utc[1] == datetime(2027, 3, 28, 1, 0, tzinfo=UTC)
