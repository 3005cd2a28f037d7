"""Conversations of any length: a window with a summary before it, made once, and what stands for it after (D14)."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

from pydantic_ai import Agent, Tool
from pydantic_ai.exceptions import ModelContextWindowExceededError
from pydantic_ai.messages import ModelMessage

from outlast import Session, hints
from outlast.clock import ManualClock
from outlast.testing import ScriptedModel, call, error
from tests.support.models.prices import PricedModel
from tests.support.turns.runtime import Runtime, events_of, scripted

SUMMARY = "They talked about rivers."


def said(messages: Sequence[ModelMessage]) -> str:
    parts = (part for each in messages for part in each.parts)
    return "\n".join(str(getattr(part, "content", "")) for part in parts)


def guide() -> Agent[None, str]:
    """Answers with how many messages it was sent."""
    model = ScriptedModel(lambda messages: f"I was sent {len(messages)}.")
    return Agent(model, name="agent", system_prompt="You are a guide.")


def model_of(agent: Agent[None, str]) -> ScriptedModel:
    assert isinstance(agent.model, ScriptedModel)
    return agent.model


def summarising() -> ScriptedModel:
    return ScriptedModel(lambda _: SUMMARY)


async def ask_often(session: Session, count: int) -> None:
    for number in range(count):
        await session.ask(f"Question {number}.")


async def test_a_long_session_is_sent_as_a_summary_and_what_follows(runtime: Runtime) -> None:
    """D14: made once and used again, in later turns and after a restart; what is stored stays whole."""
    agent, summariser = guide(), summarising()
    async with runtime(agent=agent, summary_model=summariser, history_window=8) as outlast:
        session = await outlast.sessions.create()
        await ask_often(session, 12)
        assert 1 <= len(summariser.requests) <= 4
        sent = model_of(agent).requests[-1].messages
        assert len(sent) <= 10
        assert all(each in said(sent) for each in (SUMMARY, "You are a guide.", "Question 11."))
        assert "Question 0." not in said(sent)
        stored = said(await session.history())
        assert all(f"Question {number}." in stored for number in range(12))
        assert SUMMARY not in stored
        asked = len(summariser.requests)
    async with runtime(agent=agent, summary_model=summariser, history_window=8) as outlast:
        again = await outlast.sessions.get(session.id)
        await again.ask("Once more.")
        assert len(summariser.requests) <= asked + 1
        assert SUMMARY in said(model_of(agent).requests[-1].messages)
        told = [each.data for each in await events_of(again, "history.compacted")]
        assert {each["reason"] for each in told} == {"summarised"}
        assert told[0]["summary"] == SUMMARY


async def test_prefixes_stay_the_same_between_summaries(runtime: Runtime) -> None:
    """D14: what a provider has cached of a request is the beginning of the next one."""
    agent = guide()
    async with runtime(agent=agent, summary_model=summarising(), history_window=20) as outlast:
        session = await outlast.sessions.create()
        await ask_often(session, 16)
        sent = [said(each.messages) for each in model_of(agent).requests]
        moved = [not after.startswith(before) for before, after in pairwise(sent)]
        assert sum(moved) <= 2


async def test_prefixes_stay_the_same_while_results_are_left_out(runtime: Runtime) -> None:
    """D14: over turns and restarts, what was left out once stays so, and nothing more is for a while."""

    def look(place: str) -> str:
        return f"{place}: " + "water " * 200

    def steps(messages: list[ModelMessage]) -> Any:
        return "Seen." if messages[-1].parts[-1].part_kind == "tool-return" else call("look", place="Po")

    agent = Agent(ScriptedModel(steps), name="agent", tools=[look])
    async with runtime(agent=agent, context_window=6_000) as outlast:
        session = await outlast.sessions.create()
        await ask_often(session, 15)
    async with runtime(agent=agent, context_window=6_000) as outlast:
        again = await outlast.sessions.get(session.id)
        await ask_often(again, 15)
        sent = [said(each.messages) for each in model_of(agent).requests]
        moved = sum(not after.startswith(before) for before, after in pairwise(sent))
        told = await events_of(again, "history.compacted")
        assert "were left out" in sent[-1]
        assert 1 <= moved == len(told) <= 6


async def test_a_small_window_of_tokens_goes_on_for_ever(runtime: Runtime) -> None:
    """D14: when cutting results is not enough, the oldest turns are summarised; calls and results stay paired."""

    async def look(place: str) -> str:
        return f"{place}: " + "water " * 400

    def steps(messages: list[ModelMessage]) -> Any:
        last = messages[-1].parts[-1]
        return (
            f"Seen {place_of(messages)}. " + "word " * 100
            if last.part_kind == "tool-return"
            else call("look", place="Po")
        )

    def place_of(messages: Sequence[ModelMessage]) -> int:
        return len(messages)

    agent = Agent(ScriptedModel(steps), name="agent", tools=[look])
    summariser = summarising()
    async with runtime(agent=agent, summary_model=summariser, context_window=2_000) as outlast:
        session = await outlast.sessions.create()
        for number in range(25):
            outcome = await session.ask(f"Question {number}. " + "please " * 30)
            assert outcome.state == "completed", outcome.error
        requests = model_of(agent).requests
        assert max(len(said(each.messages)) for each in requests) < 2_000 * 4 * 1.5
        assert summariser.requests
        for each in requests:
            calls = {
                part.tool_call_id
                for message in each.messages
                for part in message.parts
                if part.part_kind == "tool-call"
            }
            back = {
                part.tool_call_id
                for message in each.messages
                for part in message.parts
                if part.part_kind == "tool-return"
            }
            assert calls == back
        first = next(part for part in (await session.history())[1].parts if part.part_kind == "tool-call")
        assert first.tool_name == "look"


async def test_what_a_summary_costs_is_counted(runtime: Runtime) -> None:
    """D14, H1: with the turn that needed it, and for its owner."""
    agent = Agent(PricedModel(["Yes."] * 20, dollars=0.001), name="agent")
    summariser = PricedModel([SUMMARY] * 20, dollars=0.5)
    async with runtime(agent=agent, summary_model=summariser, history_window=4) as outlast:
        session = await outlast.sessions.create()
        costs = [(await session.ask(f"{number}")).usage.requests for number in range(6)]
        assert 2 in costs
        assert costs.count(2) == len(summariser.requests)
        assert (await outlast.usage_of("local")).today.requests == sum(costs)


async def test_a_summary_that_fails_leaves_the_oldest_out_and_the_turn_goes_on(runtime: Runtime) -> None:
    """D14: it says so to the model and in the log, no summary is stored, and the next turn tries again."""
    agent = guide()
    summariser = ScriptedModel(lambda messages: error(RuntimeError("no summary today")))
    async with runtime(agent=agent, summary_model=summariser, history_window=4) as outlast:
        session = await outlast.sessions.create()
        await ask_often(session, 6)
        sent = said(model_of(agent).requests[-1].messages)
        assert "are left out here" in sent
        assert "Question 5." in sent
        assert "You are a guide." in sent
        told = [each.data for each in await events_of(session, "history.compacted")]
        assert {each["reason"] for each in told} == {"left_out"}
        assert len(told) == len(summariser.requests)
        assert "Question 0." in said(await session.history())


async def test_a_summary_that_does_not_come_leaves_the_oldest_out(runtime: Runtime) -> None:
    """D14: a turn waits for it as long as for its own model, and goes on."""

    class Silent(ScriptedModel):
        async def request(self, *args: Any, **kwargs: Any) -> Any:
            await asyncio.Event().wait()

    agent = guide()
    patience = timedelta(milliseconds=50)
    async with runtime(
        agent=agent, summary_model=Silent(["Never."]), history_window=4, model_idle_timeout=patience
    ) as outlast:
        session = await outlast.sessions.create()
        async with asyncio.timeout(30):
            await ask_often(session, 6)
        assert "are left out here" in said(model_of(agent).requests[-1].messages)


async def test_a_summary_is_made_of_all_of_the_one_before(runtime: Runtime) -> None:
    """D14: what stands at its end is not lost with the next one, which is told what it is."""
    summariser = ScriptedModel(lambda _: "water " * 1_500 + "and the ferry leaves at 6.")
    async with runtime(agent=guide(), summary_model=summariser, history_window=4) as outlast:
        session = await outlast.sessions.create()
        await ask_often(session, 8)
        asked = [said(each.messages) for each in summariser.requests]
        assert len(asked) > 1
        assert all("EARLIER SUMMARY" in each and "the ferry leaves at 6." in each for each in asked[1:])


async def test_a_provider_that_refuses_twice_gets_a_summary(runtime: Runtime) -> None:
    """D14: results are cut first; then the oldest turns."""
    refused = ModelContextWindowExceededError("scripted", "too long")
    model = scripted("One.", "Two.", error(refused), error(refused), "Three.")
    async with runtime(model, summary_model=summarising()) as outlast:
        session = await outlast.sessions.create()
        await ask_often(session, 2)
        assert (await session.ask("And now?")).text == "Three."
        assert SUMMARY in said(model.requests[-1].messages)
        assert "Question 0." not in said(model.requests[-1].messages)


async def test_a_fork_takes_summaries_along_and_regenerating_drops_those_that_reach_too_far(runtime: Runtime) -> None:
    """D14, D10: a summary stands only for what was said there."""
    agent, summariser = guide(), summarising()
    async with runtime(agent=agent, summary_model=summariser, history_window=4) as outlast:
        session = await outlast.sessions.create()
        await ask_often(session, 6)
        asked = len(summariser.requests)
        fork = await outlast.sessions.fork(session.id)
        await fork.ask("In the fork.")
        assert len(summariser.requests) <= asked + 1
        assert SUMMARY in said(model_of(agent).requests[-1].messages)
        early = await outlast.sessions.fork(session.id, at=2)
        await early.ask("Early.")
        assert SUMMARY not in said(model_of(agent).requests[-1].messages)
        await (await session.regenerate()).outcome()
        assert "Question 5." in said(model_of(agent).requests[-1].messages)


async def test_what_was_called_before_the_window_counts_as_called(runtime: Runtime) -> None:
    """A6, D14: a tool that requires another one knows it from what is stored."""
    ran: list[str] = []
    read = Tool(lambda: "read", name="read_guide")
    act = Tool(lambda: ran.append("act"), name="act", metadata=hints(requires=["read_guide"]))
    model = scripted(call("read_guide"), "Read.", "A.", "B.", "C.", call("act"), "Done.")
    async with runtime(model, tools=[read, act], summary_model=summarising(), history_window=4) as outlast:
        session = await outlast.sessions.create()
        await ask_often(session, 5)
        assert ran == ["act"]


async def test_without_a_limit_all_is_sent(runtime: Runtime) -> None:
    """D14: `history_window=None`."""
    agent = guide()
    async with runtime(agent=agent, summary_model=summarising(), history_window=None) as outlast:
        session = await outlast.sessions.create()
        await ask_often(session, 5)
        assert len(model_of(agent).requests[-1].messages) == 9


async def test_an_imported_history_of_any_length_is_cut_where_somebody_speaks(runtime: Runtime) -> None:
    """D14: its messages belong to no turn; only the end of it is read."""
    agent, summariser = guide(), summarising()
    async with runtime(agent=agent, summary_model=summariser, history_window=6) as outlast:
        source = await outlast.sessions.create()
        await ask_often(source, 3)
        long = [each for _ in range(10) for each in await source.history()]
        session = await outlast.sessions.create(history=long)
        await session.ask("And now?")
        sent = model_of(agent).requests[-1].messages
        assert len(sent) <= 8
        assert "You are a guide." in said(sent)
        assert "Question 2." in said(sent)


async def test_a_turn_has_a_ceiling_by_money(runtime: Runtime) -> None:
    """D16: looked at before each model request; a retry goes on."""
    model = PricedModel([call("look"), call("look"), "Done."], dollars=0.4)
    agent = Agent(model, name="agent", tools=[Tool(lambda: "seen", name="look")])
    async with runtime(agent=agent, turn_cost_limit=700_000) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("Look.")
        assert outcome.error is not None
        assert (outcome.state, outcome.error["kind"]) == ("failed", "turn_limit")
        assert "microdollars" not in outcome.error["message"]
        assert (await (await session.retry()).outcome()).text == "Done."


async def test_a_turn_has_a_ceiling_by_time(embedded: Runtime) -> None:
    """D16: of the whole turn, over all its attempts; a retry goes on."""
    clock = ManualClock()

    def look() -> str:
        clock.advance(timedelta(hours=7))
        return "seen"

    model = scripted(call("look"), "Done.")
    async with embedded(model, tools=[look], clock=clock) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("Look.")
        assert outcome.error is not None
        assert (outcome.error["kind"], outcome.error["is_retryable"]) == ("turn_limit", True)
        assert (await (await session.retry()).outcome()).text == "Done."
