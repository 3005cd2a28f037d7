"""An agent's own types: validated outputs, and dependencies that are made for each turn."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic_ai import Agent, RunContext

from outlast import Outlast, TurnContext
from outlast.testing import ScriptedModel, call, tool_returns

Start = Callable[..., Outlast[Any, Any]]


class Forecast(BaseModel):
    city: str
    degrees: int


@dataclass
class Account:
    owner: str


async def test_an_outcome_has_the_agents_own_output_type(start: Start) -> None:
    """Also when it is asked for long after the turn, in another process (A1, D7)."""
    agent = Agent(ScriptedModel([call("final_result", city="Oslo", degrees=4)]), output_type=Forecast)
    async with start(agent) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("Oslo?")
        assert outcome.output == Forecast(city="Oslo", degrees=4)
    async with start(agent) as outlast:
        result = await (await outlast.sessions.get(session.id)).result()
        assert result is not None
        assert result.output == Forecast(city="Oslo", degrees=4)


async def test_an_output_that_does_not_fit_is_sent_back_to_the_model(start: Start) -> None:
    """As pydantic-ai does it; the outcome counts both requests (A2)."""
    wrong, right = call("final_result", city="Oslo"), call("final_result", city="Oslo", degrees=4)
    async with start(Agent(ScriptedModel([wrong, right]), output_type=Forecast)) as outlast:
        outcome = await (await outlast.sessions.create()).ask("Oslo?")
        assert outcome.output == Forecast(city="Oslo", degrees=4)
        assert outcome.usage.requests == 2


async def test_dependencies_are_opened_for_each_turn_and_closed_after_it(start: Start) -> None:
    """They are made for an owner, a session and a turn, on the worker that runs it, and never stored (A1)."""
    opened, closed = list[str](), list[str]()

    @asynccontextmanager
    async def account_of(context: TurnContext) -> AsyncGenerator[Account]:
        opened.append(context.owner_id)
        yield Account(context.owner_id)
        closed.append(context.owner_id)

    def whose(context: RunContext[Account]) -> str:
        return context.deps.owner

    model = ScriptedModel([call("whose"), "Yours.", call("whose"), "Yours."])
    async with start(Agent(model, deps_type=Account, tools=[whose]), deps=account_of) as outlast:
        for owner in ("olga", "oskar"):
            session = await outlast.owned_by(owner).create()
            await session.ask("Whose account?")
    assert opened == closed == ["olga", "oskar"]
    told = [list(tool_returns(request.messages).values()) for request in model.requests]
    assert told == [[], ["olga"], [], ["oskar"]]
