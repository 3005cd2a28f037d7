"""Several agents in one runtime: sessions choose by name, each agent with its models, deps and output (A1, D15)."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelMessage, SystemPromptPart
from pydantic_ai.toolsets import FunctionToolset, PrefixedToolset

from outlast import Outlast, Session, TurnContext, hints
from outlast.client.session import Session as RemoteSession
from outlast.errors import InvalidInput, NotFound, OutlastError, SessionBusy
from outlast.store.repositories import agent_records
from outlast.testing import ScriptedModel, call, gate
from outlast.tool_hints import hints_of
from tests.support.network.server import client_of, serving
from tests.support.turns.runtime import Runtime, event_types, events_of


class Report(BaseModel):
    city: str


class Price(BaseModel):
    euros: int


def saying(words: str, **options: Any) -> Agent[Any, str]:
    return Agent(ScriptedModel(lambda _: words), **options)


def desk() -> Agent[Any, str]:
    return saying("The desk heard you.")


def research() -> Agent[Any, Report]:
    return Agent(ScriptedModel(lambda _: call("final_result", city="Oslo")), output_type=Report)


def sales() -> Agent[Any, Price]:
    return Agent(ScriptedModel(lambda _: call("final_result", euros=5)), output_type=Price)


@pytest.fixture
def cluster(ready_postgres_url: str, tmp_path: Path) -> Runtime:
    """For what needs several processes on one database."""
    return Runtime(ready_postgres_url, files=str(tmp_path / "files"))


async def test_a_session_has_the_agent_that_it_names(runtime: Runtime) -> None:
    """A1: the first one if it names none; each output has the type of its own agent."""
    async with runtime(agent={"desk": desk(), "research": research(), "sales": sales()}) as outlast:
        assert list(outlast.agents) == ["desk", "research", "sales"]
        first = await outlast.sessions.create()
        assert (first.agent, (await first.ask("Hello")).output) == ("desk", "The desk heard you.")
        report = await outlast.sessions.create(agent="research")
        price = await outlast.sessions.create(agent="sales")
        assert (await report.ask("Where?")).output == Report(city="Oslo")
        assert (await price.ask("How much?")).output == Price(euros=5)
        assert [each.id for each in await outlast.sessions.list(agent="sales")] == [price.id]


async def test_one_agent_alone_is_called_as_it_calls_itself(runtime: Runtime) -> None:
    """A1: or as `name` says, or `agent`."""
    assert list(runtime(agent=saying("Hm.", name="clerk")).agents) == ["clerk"]
    assert list(runtime(agent=saying("Hm.")).agents) == ["agent"]
    assert list(Outlast(saying("Hm.", name="clerk"), name="desk").agents) == ["desk"]


@pytest.mark.parametrize(
    ("agents", "options", "told"),
    [
        pytest.param({}, {}, "no agent in the mapping", id="none"),
        pytest.param({"desk": "openai:gpt"}, {}, "runs a pydantic_ai.Agent", id="no agent"),
        pytest.param("openai:gpt", {}, "runs a pydantic_ai.Agent", id="a model"),
        pytest.param({"": desk()}, {}, "name of an agent is empty", id="empty"),
        pytest.param({" \t": desk()}, {}, "name of an agent is empty", id="blank"),
        pytest.param({"a\x00b": desk()}, {}, "NUL", id="NUL"),
        pytest.param({"\ud800": desk()}, {}, "surrogate", id="half a character"),
        pytest.param({"x" * 201: desk()}, {}, "at most 200", id="long"),
        pytest.param({"desk": desk()}, {"name": "clerk"}, "called by its key", id="two names"),
        pytest.param({"desk": desk()}, {"models": {"clerk": {}}}, "models= names 'clerk'", id="models of nobody"),
        pytest.param({"desk": desk()}, {"deps": {"clerk": None}}, "deps= names 'clerk'", id="deps of nobody"),
        pytest.param({"desk": desk()}, {"models": {"desk": {}, "fast": "test"}}, "in one mapping", id="mixed models"),
    ],
)
def test_agents_that_cannot_be_told_apart_are_refused(agents: Any, options: dict[str, Any], told: str) -> None:
    """A1: when the runtime is made, and not when the first message comes."""
    with pytest.raises(InvalidInput, match=told):
        Outlast(agents, **options)


@pytest.mark.parametrize(
    "name", ["desk:2", "ünïcode 机", "a/b?c=d&e#f", "'; DROP TABLE agents; --", "outlast.tasks:desk", "%2e%2e"]
)
async def test_a_name_may_be_anything_else(runtime: Runtime, name: str) -> None:
    """A1: in the database, in the line of jobs, in a filter and over HTTP."""
    async with serving(runtime(agent={"desk": desk(), name: saying("Odd.")})) as server, client_of(server) as ada:
        session = await ada.sessions.create(agent=name)
        assert (await session.ask("Hello", wait=30)).text == "Odd."
        assert [each.id for each in await ada.sessions.list(agent=name)] == [session.id]
        assert {each.name for each in await ada.agents()} == {"desk", name}


@pytest.mark.parametrize("name", ["", "Desk", "desk ", "a\x00b", "\ud800", "x" * 5000])
async def test_a_name_that_nobody_ever_had_is_refused(runtime: Runtime, name: str) -> None:
    """A1: with those that there are."""
    async with runtime(agent={"desk": desk(), "research": research()}) as outlast:
        session = await outlast.sessions.create()
        for attempt in (outlast.sessions.create(agent=name), session.update(agent=name)):
            with pytest.raises(InvalidInput) as refused:
                await attempt
            if name.isprintable():
                assert "use one of ['desk', 'research']" in refused.value.message
        assert (await session.refresh()).agent == "desk"


async def test_each_agent_has_its_models(runtime: Runtime) -> None:
    """D15: models by agent, or the same for all."""
    fast = ScriptedModel(lambda _: "Fast.")
    agents = {"desk": desk(), "clerk": saying("The clerk heard you.")}
    async with runtime(agent=agents, models={"desk": {"fast": fast}}) as outlast:
        assert outlast.agents == {"desk": ["fast"], "clerk": []}
        session = await outlast.sessions.create(model="fast")
        assert (await session.ask("Hello")).text == "Fast."
        clerk = await outlast.sessions.create(agent="clerk")
        for refused in (
            outlast.sessions.create(agent="clerk", model="fast"),
            clerk.update(model="fast"),
            clerk.send("Hello", model="fast"),
            clerk.regenerate(model="fast"),
        ):
            with pytest.raises(InvalidInput, match="'fast' is not offered"):
                await refused
    async with runtime(agent=agents, models={"fast": fast}) as outlast:
        assert outlast.agents == {"desk": ["fast"], "clerk": ["fast"]}


async def test_one_factory_of_deps_is_told_whose_turn_it_is(runtime: Runtime) -> None:
    """A1: or each agent has a factory of its own, and one may have none."""
    seen: list[str] = []

    @asynccontextmanager
    async def make(context: TurnContext) -> AsyncGenerator[str]:
        yield context.agent

    def telling() -> Agent[str, str]:
        agent = Agent(ScriptedModel(lambda messages: "Done." if len(messages) > 1 else call("look")), deps_type=str)

        @agent.tool
        def look(context: RunContext[str]) -> str:  # pyright: ignore[reportUnusedFunction]
            seen.append(context.deps)
            return "seen"

        return agent

    async with runtime(agent={"one": telling(), "two": telling()}, deps=make) as outlast:
        for name in ("one", "two"):
            await (await outlast.sessions.create(agent=name)).ask("Look.")
    assert seen == ["one", "two"]
    async with runtime(agent={"one": telling(), "desk": desk()}, deps={"one": make}) as outlast:
        await (await outlast.sessions.create(agent="one")).ask("Look.")
        assert (await (await outlast.sessions.create(agent="desk")).ask("Hello")).text == "The desk heard you."
    with pytest.raises(InvalidInput, match="agent 'two' needs dependencies"):
        async with runtime(agent={"one": telling(), "two": telling()}, deps={"one": make}):
            raise AssertionError("it started")


async def test_the_agent_of_an_idle_session_can_be_changed(runtime: Runtime) -> None:
    """D10: with its history; each turn keeps the output type of its own agent, and the model of the old one is gone."""
    fast = ScriptedModel(lambda _: "Fast.")
    agents = {"desk": desk(), "research": research()}
    async with runtime(agent=agents, models={"desk": {"fast": fast}}) as outlast:
        session = await outlast.sessions.create(model="fast")
        await session.ask("Hello")
        await session.update(agent="research")
        assert (session.agent, session.model) == ("research", None)
        assert (await events_of(session, "session.changed"))[-1].data == {"agent": "research", "model": None}
        assert (await session.ask("Where?")).output == Report(city="Oslo")
        told = [(await each.outcome()).output for each in (await session.turns()).items]
        assert told == ["Fast.", Report(city="Oslo")]
        assert len([each for each in await session.history() if each.kind == "response"]) == 2
        await session.update(agent="research")
        assert (await event_types(session)).count("session.changed") == 1, "nothing was changed"


async def test_the_agent_of_a_session_at_work_cannot_be_changed(runtime: Runtime) -> None:
    """P5: a turn is of one agent from its beginning to its end; 409 over HTTP."""
    release = asyncio.Event()
    busy = Agent(ScriptedModel([[gate(release), "Done."]]))
    async with serving(runtime(agent={"busy": busy, "desk": desk()})) as server, client_of(server) as ada:
        session = await ada.sessions.create(agent="busy")
        sent = await session.send("Work.")
        with pytest.raises(SessionBusy):
            await session.update(agent="desk")
        assert (await session.refresh()).agent == "busy"
        await session.update(agent="busy", title="The same is no change")
        release.set()
        await sent.outcome()
        assert (await session.update(agent="desk")).agent == "desk"
        assert (await session.ask("Hello", wait=30)).text == "The desk heard you."


async def test_an_agent_that_goes_on_with_a_session_has_its_own_system_prompt(runtime: Runtime) -> None:
    """A1: and not that of the agent before it."""
    prompts: list[list[str]] = []

    def look(messages: list[ModelMessage]) -> str:
        parts = [part for each in messages for part in each.parts]
        prompts.append([part.content for part in parts if isinstance(part, SystemPromptPart)])
        return "Seen."

    agents = {name: Agent(ScriptedModel(look), system_prompt=f"You are {name}.") for name in ("one", "two")}
    agents["none"] = Agent(ScriptedModel(look))
    async with runtime(agent=agents) as outlast:
        session = await outlast.sessions.create(agent="one")
        for name in ("one", "two", "two", "none", "one"):
            await session.update(agent=name)
            await session.ask("Who are you?")
    assert prompts == [["You are one."], ["You are two."], ["You are two."], [], ["You are one."]]


async def test_copies_of_a_session_keep_its_agent(runtime: Runtime) -> None:
    """D10: a fork, and what is exported and imported; an agent that nobody knows becomes the first."""
    async with runtime(agent={"desk": desk(), "research": research()}) as outlast:
        session = await outlast.sessions.create(agent="research")
        await session.ask("Where?")
        assert (await outlast.sessions.fork(session.id)).agent == "research"
        document = await session.export()
        assert (await outlast.sessions.import_(document)).agent == "research"
        document["session"]["agent"] = "stranger"
        assert (await outlast.sessions.import_(document)).agent == "desk"


async def test_work_for_an_agent_that_was_removed_waits(runtime: Runtime) -> None:
    """P1, P4: nothing crashes, everything else goes on, and with the agent back so does this."""
    async with runtime(agent={"desk": desk(), "research": research()}) as outlast:
        session = await outlast.sessions.create(agent="research")
        await outlast.pause(by="test")
        sent = await session.send("Where?")
    async with runtime(agent={"desk": desk()}) as outlast:
        await outlast.unpause()
        found = await outlast.sessions.get(session.id)
        assert (found.state, found.no_worker_for) == ("queued", "research")
        outcome = await found.result(wait=0)
        assert outcome is not None
        assert (outcome.state, outcome.no_worker_for) == ("queued", "research")
        with pytest.raises(SessionBusy):
            await found.update(agent="desk")
        assert (await (await outlast.sessions.create()).ask("Hello")).text == "The desk heard you."
        known = {each.name: each.has_worker for each in await outlast.known_agents()}
        assert known == {"desk": True, "research": False}
    async with runtime(agent={"desk": desk(), "research": research()}) as outlast:
        turn = (await outlast.sessions.get(session.id)).turn(sent.turn_id or "")
        assert (await turn.outcome()).output == Report(city="Oslo")


async def test_over_http_outputs_are_json_of_their_own_agents(runtime: Runtime) -> None:
    """A1: two agents with different output types, chosen in the body of a session."""
    async with serving(runtime(agent={"research": research(), "sales": sales()})) as server, client_of(server) as ada:
        report = await ada.sessions.create(agent="research")
        price = await ada.sessions.create(agent="sales")
        assert (await report.ask("Where?", wait=30)).output == {"city": "Oslo"}
        assert (await price.ask("How much?", wait=30)).output == {"euros": 5}
        with pytest.raises(OutlastError, match="use one of \\['research', 'sales'\\]"):
            await ada.sessions.create(agent="stranger")
        answer = await (await server.client()).patch(f"/v1/sessions/{price.id}", json={"agent": "stranger"})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")


async def test_a_chat_of_the_ai_sdk_begins_with_the_agent_it_names(runtime: Runtime) -> None:
    """K3: for a new chat; one that there is keeps its own."""
    agents = {"desk": desk(), "clerk": saying("The clerk heard you.")}
    async with serving(runtime(agent=agents)) as server, client_of(server) as ada:
        http = await server.client()
        for number, agent in enumerate(("clerk", "desk")):
            said = {"id": f"m{number}", "role": "user", "parts": [{"type": "text", "text": "Hello"}]}
            answer = await http.post("/api/chat", json={"id": "chat-1", "messages": [said], "agent": agent})
            assert answer.status_code == 200
        (session,) = await ada.sessions.list(external_id="chat-1")
        assert session.agent == "clerk"
        assert (await session.result(wait=30) or raising()).text == "The clerk heard you."
        said = {"id": "m9", "role": "user", "parts": [{"type": "text", "text": "Hello"}]}
        answer = await http.post("/api/chat", json={"id": "chat-2", "messages": [said], "agent": "stranger"})
        assert answer.status_code == 422


def raising() -> Any:
    raise AssertionError("there is nothing")


def with_tool(answer: str) -> Agent[Any, str]:
    agent = saying(answer)

    @agent.tool_plain(metadata=hints(budget=5, idempotent=True, group="rivers"))
    def measure(river: str, depth: int = 1) -> str:  # pyright: ignore[reportUnusedFunction]
        """Measure a river."""
        return river + str(depth)

    return agent


async def test_a_process_without_an_agent_goes_by_what_workers_recorded(cluster: Runtime) -> None:
    """DESIGN 8: it accepts its name and its models, tells its tools, and shows what waits for it."""
    accepting = cluster(agent={"desk": desk()}, run_work=False)
    async with serving(accepting) as server, client_of(server) as ada:
        with pytest.raises(OutlastError, match="use one of \\['desk'\\]"):
            await ada.sessions.create(agent="survey")
        async with cluster(agent={"survey": with_tool("Measured.")}, models={"fast": "test"}):
            session = await ada.sessions.create(agent="survey", model="fast")
            await session.update(model=None)
            assert (await session.ask("Go.", wait=30)).text == "Measured."
            with pytest.raises(OutlastError, match="'slow' is not offered"):
                await session.send("Go.", model="slow")
            tool = await accepting.tool_of("survey", "measure")
        assert (tool.name, tool.description) == ("measure", "Measure a river.")
        assert tool.parameters_json_schema["required"] == ["river"]
        assert hints_of(tool.metadata).may_run_again
        assert hints_of(tool.metadata).budget == hints_of(hints(budget=5)).budget
        # The worker is gone: what it said stays, and what is sent waits.
        found = {each.name: each for each in await ada.agents()}
        assert (found["survey"].models, found["survey"].has_worker, found["desk"].version) == (["fast"], False, None)
        assert found["survey"].version is not None
        assert [(each.agent, each.name, each.hints["group"]) for each in await ada.tools()] == [
            ("survey", "measure", "rivers")
        ]
        await session.send("Again.")
        assert (await session.refresh()).no_worker_for == "survey"
        for agent, name in (("survey", "dig"), ("stranger", "measure"), ("desk", "measure")):
            with pytest.raises(NotFound):
                await accepting.tool_of(agent, name)


async def test_each_worker_runs_the_turns_of_its_own_agents(cluster: Runtime) -> None:
    """DESIGN 8: one has only the desk, another only research; the server has both, and runs nothing."""
    both = {"desk": desk(), "research": research()}
    async with (
        serving(cluster(agent=both, run_work=False)) as server,
        client_of(server) as ada,
        cluster(agent={"desk": desk()}),
    ):
        sessions = [await ada.sessions.create(agent=name) for name in ("desk", "research") * 3]
        sent = [await each.send("Hello") for each in sessions]
        assert [(await each.outcome(wait=30)).output for each in sent[::2]] == ["The desk heard you."] * 3
        assert await waits(sessions[1::2]) == ["research"] * 3
        async with cluster(agent={"research": research()}):
            assert [(await each.outcome(wait=30)).output for each in sent[1::2]] == [{"city": "Oslo"}] * 3
            assert await waits(sessions) == [None] * 6


async def waits(sessions: list[RemoteSession]) -> list[str | None]:
    return [(await each.refresh()).no_worker_for for each in sessions]


async def test_tools_of_other_toolsets_are_recorded_when_they_are_listed(runtime: Runtime) -> None:
    """DESIGN 8: such as those of an MCP server; the runtime's own tools are nobody's."""

    def sound(place: str) -> str:
        """Measure a depth."""
        return place

    others = PrefixedToolset(FunctionToolset([sound]), "boat")
    async with runtime(agent={"survey": saying("Hm.", toolsets=[others]), "desk": desk()}) as outlast:
        await (await outlast.sessions.create(agent="survey")).ask("Go.")
        async with asyncio.timeout(60):
            while not await outlast.database.read(lambda connection: agent_records.tools_of(connection, "survey")):  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.01)
    async with runtime(agent={"desk": desk()}) as outlast:
        assert [each.name for each in await outlast.tools_of("survey")] == ["boat_sound"]
        assert (await outlast.tool_of("survey", "boat_sound")).description == "Measure a depth."


async def test_what_is_recorded_follows_what_is_declared(runtime: Runtime) -> None:
    """DESIGN 8: a tool that is gone is no longer recorded, and the version says that something changed."""

    async def recorded(outlast: Outlast[Any, Any]) -> str | None:
        return next(each.version for each in await outlast.known_agents() if each.name == "survey")

    async with runtime(agent={"survey": with_tool("Hm."), "desk": desk()}) as outlast:
        first = await recorded(outlast)
    async with runtime(agent={"survey": with_tool("Other words."), "desk": desk()}) as outlast:
        assert await recorded(outlast) == first
    async with runtime(agent={"survey": desk(), "desk": desk()}) as outlast:
        assert await recorded(outlast) not in (first, None)
    async with runtime(agent={"desk": desk()}) as outlast:
        assert await outlast.tools_of("survey") == []
        session: Session = await outlast.sessions.create(agent="survey")
        assert session.agent == "survey", "somebody had it once, and may have it again"
