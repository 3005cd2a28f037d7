"""What owners use is added up, and an owner that has used enough for a day starts no more turns that day."""

from datetime import timedelta

import pytest
from pydantic_ai import Agent

from outlast.errors import LimitReached
from outlast.limits import Limits
from outlast.testing import call
from tests.support.models.prices import PricedModel
from tests.support.moments.checkpoint import Checkpoint
from tests.support.moments.clocks import MIDNIGHT, NOON, SetClock
from tests.support.turns.runtime import Runtime, event_types, events_of, wake

DOLLAR = 1_000_000
AT_A_DOLLAR = Limits(daily_cost=DOLLAR)


async def test_what_turns_use_is_added_up_by_owner(embedded: Runtime) -> None:
    """H1: each response in the commit that keeps it, with what the provider says it cost."""
    model = PricedModel([call("look"), "Deep.", "Wide."], dollars=0.25)

    def look() -> str:
        return "two metres"

    async with embedded(agent=Agent(model, tools=[look]), clock=SetClock()) as outlast:
        outcome = await (await outlast.sessions.create()).ask("How deep?")
        await (await outlast.owned_by("oskar").create()).ask("How wide?")
        local, oskar = await outlast.usage_of("local"), await outlast.usage_of("oskar")
    assert (local.today.requests, local.today.cost_microdollars) == (2, DOLLAR // 2)
    assert outcome.usage.cost_microdollars == DOLLAR // 2
    assert local.today.input_tokens == outcome.usage.input_tokens > 0
    assert local.week == local.today
    assert (local.percent, local.resets_at) == (None, MIDNIGHT)
    assert oskar.today.cost_microdollars == DOLLAR // 4


async def test_a_cost_that_nobody_knows_is_told_as_unknown(runtime: Runtime) -> None:
    """H1, H2: it is not zero, and it does not stop anybody."""
    async with runtime(PricedModel(["Deep.", "Wide."], dollars=None), daily_cost_limit=1) as outlast:
        session = await outlast.sessions.create()
        await session.ask("How deep?")
        report = await outlast.usage_of("local")
        assert (report.today.cost_microdollars, report.today.unpriced_requests) == (None, 1)
        assert (await session.ask("How wide?")).text == "Wide."


async def test_at_the_limit_a_message_is_refused_until_midnight(embedded: Runtime) -> None:
    """H2: nothing of it is kept; other owners go on; after midnight it is taken."""
    clock = SetClock()
    async with embedded(
        PricedModel(["Deep.", "Wide.", "Long."], dollars=1.0), clock=clock, daily_cost_limit=DOLLAR
    ) as outlast:
        session = await outlast.sessions.create()
        assert (await session.ask("How deep?")).text == "Deep."
        before = await event_types(session)
        with pytest.raises(LimitReached) as caught:
            await session.send("How wide?")
        assert caught.value.details["reset_at"] == MIDNIGHT.isoformat()
        assert caught.value.details["retry_after"] == pytest.approx((MIDNIGHT - NOON).total_seconds(), abs=60)
        for again in (session.resume, session.regenerate):
            with pytest.raises(LimitReached):
                await again()
        assert await event_types(session) == before
        assert (await session.inbox(), (await outlast.usage_of("local")).percent) == ([], 100)
        assert (await (await outlast.owned_by("oskar").create()).ask("How wide?")).text == "Wide."
        clock.set(MIDNIGHT)
        assert (await session.ask("How long?")).text == "Long."


async def test_a_running_turn_goes_on_to_its_end(embedded: Runtime) -> None:
    """H2: the stop is for turns that have not begun."""
    here = Checkpoint()

    async def look() -> str:
        await here()
        return "two metres"

    model = PricedModel([call("look"), "Deep."], dollars=1.0)
    async with embedded(agent=Agent(model, tools=[look]), clock=SetClock(), daily_cost_limit=DOLLAR) as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("How deep?")
        await here.reached()
        with pytest.raises(LimitReached):
            await session.send("And how wide?")
        here.open()
        assert (await sent.outcome()).text == "Deep."
        report = await outlast.usage_of("local")
        assert (report.today.known_microdollars, report.percent) == (2_000_000, 100)


async def test_a_wake_at_the_limit_starts_at_midnight(embedded: Runtime) -> None:
    """H2: nothing is lost; who looks is told until when it waits."""
    clock = SetClock()
    async with embedded(PricedModel(["Deep.", "I see."], dollars=1.0), clock=clock, daily_cost_limit=DOLLAR) as outlast:
        session = await outlast.sessions.create()
        await session.ask("How deep?")
        clock.set(MIDNIGHT - timedelta(seconds=0.3))
        await wake(outlast, session, "The survey is done.", limits=AT_A_DOLLAR)
        [_, queued] = await events_of(session, "turn.queued")
        assert queued.data == {"origin": "wake", "until": MIDNIGHT.isoformat()}
        outcome = await session.settled()
        assert outcome is not None
        assert (outcome.turn_id, outcome.text) == (queued.turn_id, "I see.")
        [_, started] = await events_of(session, "turn.started")
        assert started.at >= MIDNIGHT
        assert len(await events_of(session, "turn.completed")) == 2


async def test_a_wake_waits_for_midnight_also_across_a_restart(embedded: Runtime) -> None:
    """H2, P1: the row says until when; the process that comes next waits on, or starts it if it is time."""
    clock = SetClock()
    async with embedded(PricedModel(["Deep."], dollars=1.0), clock=clock, daily_cost_limit=DOLLAR) as outlast:
        session = await outlast.sessions.create()
        await session.ask("How deep?")
        await wake(outlast, session, "The survey is done.", limits=AT_A_DOLLAR)
    async with embedded(PricedModel([], dollars=1.0), clock=clock, daily_cost_limit=DOLLAR) as outlast:
        session = await outlast.sessions.get(session.id)
        assert len(await events_of(session, "turn.started")) == 1
    clock.set(MIDNIGHT)
    async with embedded(PricedModel(["I see."], dollars=1.0), clock=clock, daily_cost_limit=DOLLAR) as outlast:
        outcome = await (await outlast.sessions.get(session.id)).settled()
        assert outcome is not None
        assert outcome.text == "I see."


async def test_a_message_that_waited_in_the_inbox_starts_at_midnight(embedded: Runtime) -> None:
    """H2: it was accepted below the limit, so it is kept; its turn waits for the next day."""
    here, clock = Checkpoint(), SetClock(MIDNIGHT - timedelta(seconds=5))

    async def look() -> str:
        await here()
        return "two metres"

    model = PricedModel([call("look"), "Deep.", "Wide."], dollars=0.5)
    agent = Agent(model, tools=[look])
    async with embedded(agent=agent, clock=clock, daily_cost_limit=DOLLAR) as outlast:
        session = await outlast.sessions.create()
        first = await session.send("How deep?")
        await here.reached()
        second = await session.send("How wide?", when_busy="queue")
        clock.set(MIDNIGHT - timedelta(seconds=0.5))
        here.open()
        assert (await first.outcome()).text == "Deep."
        [_, queued] = await events_of(session, "turn.queued")
        assert queued.data["until"] == MIDNIGHT.isoformat()
        assert (await second.outcome()).text == "Wide."
        [_, started] = await events_of(session, "turn.started")
        assert started.at >= MIDNIGHT


async def test_a_turn_that_waits_for_the_next_day_can_be_stopped(embedded: Runtime) -> None:
    """H2, D5: it has not begun, so it ends at once."""
    async with embedded(PricedModel(["Deep."], dollars=1.0), clock=SetClock(), daily_cost_limit=DOLLAR) as outlast:
        session = await outlast.sessions.create()
        await session.ask("How deep?")
        await wake(outlast, session, "The survey is done.", limits=AT_A_DOLLAR)
        outcome = await session.stop()
        assert outcome is not None
        assert outcome.state == "stopped"
