"""A tool that runs another agent with `usage=ctx.usage`: what that one uses counts as if the turn had used it (H1)."""

import asyncio
from decimal import Decimal
from typing import Any

import pytest
from pydantic_ai import Agent, ModelRetry, RunContext, Tool, UsageLimits
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.usage import RequestUsage

from outlast import Client, hints
from outlast.errors import LimitReached
from outlast.testing import ScriptedModel, call, reply
from tests.support.network.server import serving
from tests.support.turns.background import BUDGET, ThreadGate, parked_session, task_that
from tests.support.turns.runtime import Runtime, events_of

DOLLAR = 1_000_000
TOKENS: dict[str, Any] = {"input_tokens": 100, "output_tokens": 10, "cache_read_tokens": 20, "cache_write_tokens": 5}


def answering(text: str = "Deep.", *, dollars: str | None = None) -> Any:
    """A response with known numbers."""
    cost = None if dollars is None else Decimal(dollars)
    return reply(text, usage=RequestUsage(**TOKENS, cost=cost))


def expert(*, requests: int = 2, dollars: str | None = None) -> Agent[None, str]:
    """An agent that makes so many requests in each run."""

    def look() -> str:
        return "water"

    steps = [reply(call("look"), usage=RequestUsage(**TOKENS, cost=None if dollars is None else Decimal(dollars)))]
    script = [*steps * (requests - 1), answering(dollars=dollars)]
    return Agent(ScriptedModel(script * 20), tools=[look])


def asking(expert: Agent[None, str], **options: Any) -> Any:
    async def ask(ctx: RunContext[Any]) -> str:
        return (await expert.run("How deep?", usage=ctx.usage, **options)).output

    return ask


def model(*steps: Any, dollars: str | None = None) -> ScriptedModel:
    told = [each if isinstance(each, str) else reply(each, usage=_own(dollars)) for each in steps]
    return ScriptedModel([answering(each, dollars=dollars) if isinstance(each, str) else each for each in told])


def _own(dollars: str | None) -> RequestUsage:
    return RequestUsage(**TOKENS, cost=None if dollars is None else Decimal(dollars))


async def test_what_an_agent_in_a_tool_uses_is_used_by_the_turn_and_its_owner(runtime: Runtime) -> None:
    """H1: in the outcome, in the events, and in what the owner is told; a price that nobody knows stays unknown."""
    async with runtime(model(call("ask"), "It is deep."), tools=[asking(expert())]) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("How deep?")
        report = (await outlast.usage_of("local")).today
        (ended,) = await events_of(session, "call.ended")
        (completed,) = await events_of(session, "turn.completed")
    assert (outcome.text, outcome.usage.requests, outcome.usage.input_tokens) == ("It is deep.", 4, 400)
    assert (outcome.usage.output_tokens, outcome.usage.cache_read_tokens, outcome.usage.cache_write_tokens) == (
        40,
        80,
        20,
    )
    assert outcome.usage.cost_microdollars is None
    assert (report.requests, report.unpriced_requests, report.input_tokens) == (4, 4, 400)
    assert ended.data["usage"] == {**{name: 2 * each for name, each in TOKENS.items()}, "requests": 2} | {
        "cost_microdollars": None
    }
    assert completed.data["usage"]["requests"] == 4


async def test_a_price_that_is_known_is_money_of_the_turn(runtime: Runtime) -> None:
    """H1, H2: it counts for the day's limit: the next message is refused."""
    priced = model(call("ask"), "It is deep.", "Again.", dollars="0.01")
    tools = [asking(expert(dollars="0.5"))]
    async with runtime(priced, tools=tools, daily_cost_limit=DOLLAR) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("How deep?")
        report = (await outlast.usage_of("local")).today
        assert (report.requests, report.unpriced_requests, report.cost_microdollars) == (4, 0, 1_020_000)
        assert outcome.usage.cost_microdollars == 1_020_000
        with pytest.raises(LimitReached):
            await session.send("And now?")


async def test_known_and_unknown_prices_of_one_call_are_told_apart(runtime: Runtime) -> None:
    """H1: the cost of the turn is not known, and that of the day was at least what is."""
    agent = Agent(ScriptedModel([answering(dollars="0.5"), answering()]))

    async def ask(ctx: RunContext[Any]) -> str:
        for _ in range(2):
            await agent.run("How deep?", usage=ctx.usage)
        return "deep"

    async with runtime(model(call("ask"), "It is deep.", dollars="0.01"), tools=[ask]) as outlast:
        outcome = await (await outlast.sessions.create()).ask("How deep?")
        report = (await outlast.usage_of("local")).today
    assert outcome.usage.cost_microdollars is None
    assert (report.unpriced_requests, report.known_microdollars, report.cost_microdollars) == (1, 520_000, None)


async def test_requests_of_agents_in_tools_count_for_the_limit_of_a_turn(runtime: Runtime) -> None:
    """D16: checked before the turn's own next request."""
    script = model(*[call("ask")] * 9, "never said")
    async with runtime(script, tools=[asking(expert(requests=3))], max_requests_per_turn=8) as outlast:
        outcome = await (await outlast.sessions.create()).ask("How deep?")
    assert (outcome.state, outcome.error and outcome.error["kind"]) == ("failed", "turn_limit")
    assert "made 8 model requests" in (outcome.error or {})["message"]
    assert (len(script.requests), outcome.usage.requests) == (2, 8)


async def test_calls_side_by_side_share_the_usage_and_are_counted_each(runtime: Runtime) -> None:
    """H1: an agent in one of them sees what the turn has used, those beside it included, as limits of its own do."""
    seen: list[int] = []
    both = asyncio.Barrier(2)
    agents = {"one": expert(requests=1), "three": expert(requests=3)}

    async def ask(ctx: RunContext[Any], name: str) -> str:
        await agents[name].run("How deep?", usage=ctx.usage)
        await both.wait()
        seen.append(ctx.usage.requests)
        return name

    script = ScriptedModel([[call("ask", name="one"), call("ask", name="three")], answering("It is deep.")])
    async with runtime(script, tools=[ask]) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("How deep?")
        ended = {each.data["part"]["content"]: each.data["usage"] for each in await events_of(session, "call.ended")}
    assert seen == [5, 5]
    assert {name: usage["requests"] for name, usage in ended.items()} == {"one": 1, "three": 3}
    assert outcome.usage.requests == 6


async def test_limits_of_an_agent_in_a_tool_see_what_the_turn_has_used(runtime: Runtime) -> None:
    """A1: as in a run of pydantic-ai: the third request of the turn is the second one's last."""
    limits: list[str] = []
    inner = expert(requests=2)

    async def ask(ctx: RunContext[Any]) -> str:
        try:
            return (await inner.run("How deep?", usage=ctx.usage, usage_limits=UsageLimits(request_limit=2))).output
        except UsageLimitExceeded as exc:
            limits.append(str(exc))
            return "unknown"

    async with runtime(model(call("ask"), "Nobody knows."), tools=[ask]) as outlast:
        outcome = await (await outlast.sessions.create()).ask("How deep?")
    assert len(limits) == 1
    assert limits[0].startswith("The next request would exceed the request_limit of 2")
    assert outcome.usage.requests == 3


@pytest.mark.parametrize("way", ["raises", "retries", "exits"])
async def test_a_call_that_fails_has_used_what_it_used(runtime: Runtime, way: str) -> None:
    """H1: also each time that a tool asks the model to try again."""
    inner = expert(requests=1)

    async def ask(ctx: RunContext[Any]) -> str:
        await inner.run("How deep?", usage=ctx.usage)
        if way == "retries" and ctx.retry == 0:
            raise ModelRetry("Once more.")
        if way == "raises":
            raise RuntimeError("no water")
        if way == "exits":
            raise SystemExit
        return "deep"

    steps = [call("ask"), *([call("ask")] if way == "retries" else []), "Done."]
    async with runtime(model(*steps), tools=[ask]) as outlast:
        outcome = await (await outlast.sessions.create()).ask("How deep?")
        report = (await outlast.usage_of("local")).today
    used = 5 if way == "retries" else 3
    assert (outcome.state, outcome.usage.requests, report.requests) == ("completed", used, used)


async def test_an_agent_in_a_thread_counts(runtime: Runtime) -> None:
    """H1: a sync tool runs another agent on a loop of its own."""
    inner = expert()

    def ask(ctx: RunContext[Any]) -> str:
        return asyncio.run(inner.run("How deep?", usage=ctx.usage)).output

    async with runtime(model(call("ask"), "It is deep."), tools=[ask]) as outlast:
        outcome = await (await outlast.sessions.create()).ask("How deep?")
    assert (outcome.text, outcome.usage.requests) == ("It is deep.", 4)


async def test_a_run_that_is_stopped_has_used_what_its_calls_used(runtime: Runtime) -> None:
    """H1, D8: cancelled in the middle of a call."""
    asked, inner = asyncio.Event(), expert()

    async def ask(ctx: RunContext[Any]) -> str:
        await inner.run("How deep?", usage=ctx.usage)
        asked.set()
        await asyncio.Event().wait()
        return "never"

    async with runtime(model(call("ask")), tools=[ask]) as outlast:
        session = await outlast.sessions.create()
        turn = await session.send("How deep?")
        await asked.wait()
        await session.stop()
        outcome = await turn.outcome()
        report = (await outlast.usage_of("local")).today
    assert (outcome.state, outcome.usage.requests, report.requests) == ("stopped", 3, 3)


@pytest.mark.parametrize("way", ["works", "fails", "cancelled"])
async def test_a_parked_call_counts_when_it_ends(runtime: Runtime, way: str) -> None:
    """H1, B1: for its owner, and shown with its task; the turn was over before."""
    gate, again, inner = asyncio.Event(), asyncio.Event(), expert(dollars="0.25")

    async def ask(ctx: RunContext[Any]) -> str:
        await inner.run("How deep?", usage=ctx.usage)
        await gate.wait()
        await inner.run("How wide?", usage=ctx.usage)
        again.set()
        if way == "fails":
            raise RuntimeError("no water")
        if way == "cancelled":
            await asyncio.Event().wait()
        return "deep"

    script = model(call("ask"), "I will tell you.", "It is deep.", dollars="0.01")
    async with runtime(script, tools=[ask], budget=BUDGET) as outlast:
        session, task = await parked_session(outlast)
        assert task.usage is None
        assert (await outlast.usage_of("local")).today.requests == 2
        gate.set()
        await again.wait()
        if way == "cancelled":
            await outlast.tasks.cancel(task.id)
        ended = await task_that(session, lambda task: task.is_over)
        report = (await outlast.usage_of("local")).today
        (told,) = await events_of(session, "task.ended")
        exported = await session.export()
        await session.settled()
    assert ended.usage is not None
    assert ended.usage.model_dump() == {**{name: 4 * each for name, each in TOKENS.items()}, "requests": 4} | {
        "cost_microdollars": DOLLAR
    }
    assert report.requests >= 6
    assert (report.unpriced_requests, report.known_microdollars >= DOLLAR + 20_000) == (0, True)
    assert told.data["task"]["usage"] == exported["tasks"][0]["usage"] == ended.usage.model_dump()


async def test_an_end_that_comes_late_still_counts(runtime: Runtime) -> None:
    """H1, B6: its deadline ended the task; the thread that nobody can stop goes on and uses more."""
    gate, inner = ThreadGate(), expert(requests=1)

    def ask(ctx: RunContext[Any]) -> str:
        asyncio.run(inner.run("How deep?", usage=ctx.usage))
        gate()
        asyncio.run(inner.run("How wide?", usage=ctx.usage))
        return "deep"

    tool = Tool(ask, metadata=hints(budget=0.02, deadline=0.1))
    async with runtime(model(call("ask"), "I will tell you.", "It took too long."), tools=[tool]) as outlast:
        session, task = await parked_session(outlast)
        ended = await task_that(session, lambda task: task.is_over)
        assert (ended.error or {})["kind"] == "timeout"
        assert ended.usage is not None
        assert ended.usage.requests == 1
        gate.open()
        while (await outlast.tasks.get(task.id)).late_outcome is None:  # noqa: ASYNC110 - nothing is told of it
            await asyncio.sleep(0.01)
        late = await outlast.tasks.get(task.id)
    assert late.usage is not None
    assert late.usage.requests == 2


async def test_a_call_without_other_agents_stores_nothing_of_it(runtime: Runtime) -> None:
    """H1: nor does an agent that was given no usage."""
    inner = expert()

    async def ask() -> str:
        return (await inner.run("How deep?")).output

    async with runtime(model(call("ask"), "It is deep."), tools=[ask]) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("How deep?")
        (ended,) = await events_of(session, "call.ended")
    assert "usage" not in ended.data
    assert outcome.usage.requests == 2


async def test_a_turn_that_goes_on_elsewhere_has_used_what_its_calls_used(runtime: Runtime) -> None:
    """H1, P2: also a call that was cancelled for that, and is run again."""
    inner, begun = expert(requests=1), asyncio.Event()
    runs: list[int] = []

    async def ask(ctx: RunContext[Any]) -> str:
        runs.append(ctx.usage.requests)
        await inner.run("How deep?", usage=ctx.usage)
        if len(runs) == 2:
            begun.set()
            await asyncio.Event().wait()
        return "deep"

    def agent() -> Agent[Any, Any]:
        script = ScriptedModel([call("ask"), call("ask"), "It is deep."], by="history")
        return Agent(script, name="agent", tools=[Tool(ask, metadata=hints(read_only=True))])

    async with runtime(agent=agent()) as outlast:
        session = await outlast.sessions.create()
        await session.send("How deep?")
        await begun.wait()
    async with runtime(agent=agent()) as outlast:
        session = await outlast.sessions.get(session.id)
        outcome = await session.settled()
        report = (await outlast.usage_of("local")).today
    assert outcome is not None
    assert (outcome.state, len(runs)) == ("completed", 3)
    assert runs == [1, 3, 3], "the turn's own, and those of calls that have ended"
    assert outcome.usage.requests == 5
    assert report.requests == 6, "the call that was run again used something the first time too"


async def test_tenants_get_tokens_of_agents_in_tools_without_money(runtime: Runtime) -> None:
    """H3: by the result, the task, the events and the export; an admin gets all."""
    gate = asyncio.Event()
    inner = expert(dollars="0.25")

    async def quick(ctx: RunContext[Any]) -> str:
        return (await inner.run("How deep?", usage=ctx.usage)).output

    async def slow(ctx: RunContext[Any]) -> str:
        await gate.wait()
        return (await inner.run("How deep?", usage=ctx.usage)).output

    tools = [Tool(quick), Tool(slow, metadata=hints(budget=0.01))]
    script = ScriptedModel([call("quick"), call("slow"), answering("Soon.", dollars="0.01"), answering("Done.")])
    async with serving(runtime(script, tools=tools)) as server:
        _, key = await server.outlast.keys.make("ada", "test")
        async with Client(server.url, key) as client:
            session = await client.sessions.create()
            outcome = await (await session.send("How deep?")).outcome()
            gate.set()
            await session.settled()
            (task,) = await session.tasks()
            document = str(await session.export())
            async with session.events(follow=False) as stream:
                events = str([each.data async for each in stream])
    assert (outcome.usage.requests, outcome.usage.cost_microdollars) == (5, None)
    assert task.usage is not None
    assert (task.usage.requests, task.usage.cost_microdollars) == (2, None)
    assert "500000" not in document + events
