"""What a call passes before it runs: gates let it run, answer in its place, or make it wait (A1, B4)."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pydantic_ai import Agent, ApprovalRequired, CallDeferred, DeferredToolRequests, Tool, ToolDefinition
from pydantic_ai.toolsets import ExternalToolset

from outlast import hints
from outlast.calls.gates import standing
from outlast.calls.gates.gate import RUN, Answer, CallRequest, Run, Verdict, Wait
from outlast.testing import ScriptedModel, call
from tests.support.turns.runtime import Runtime, events_of

RAN: list[int] = []
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"x": {"type": "integer"}}}


class Decides:
    """A gate that notes what it is asked and says what it was told to say."""

    def __init__(self, *verdicts: Verdict) -> None:
        self.asked: list[CallRequest] = []
        self._verdicts = list(verdicts)

    async def admit(self, call: CallRequest) -> Verdict:
        self.asked.append(call)
        return self._verdicts.pop(0) if self._verdicts else RUN


Install = Callable[..., None]


def made_as(gate: Decides) -> Callable[[standing.GateContext], Decides]:
    return lambda context: gate


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    RAN.clear()

    def install(*gates: Decides) -> None:
        made = [*(made_as(gate) for gate in gates), *standing.GATES]
        monkeypatch.setattr(standing, "GATES", made)

    return install


async def act(x: int) -> str:
    RAN.append(x)
    return f"done {x}"


def asks_itself(x: int) -> str:
    raise ApprovalRequired(metadata={"why": "large"})


def hands_out(x: int) -> str:
    raise CallDeferred


async def test_a_gate_sees_all_that_there_is_to_decide_by(runtime: Runtime, install: Install) -> None:
    """A1: whose call it is, the tool with its schema and hints, and the arguments as asked and as validated."""
    gate = Decides()
    install(gate)
    tool = Tool(act, metadata=hints(read_only=True))
    model = ScriptedModel([call("act", x="7", call_id="c1"), "Done."])
    async with runtime(model, tools=[tool]) as outlast:
        session = await outlast.owned_by("ada").create()
        outcome = await session.ask("act")
        [asked] = gate.asked
        assert (asked.session_id, asked.owner_id, asked.agent) == (session.id, "ada", "agent")
        assert asked.turn_id is not None
        assert (asked.call_id, asked.tool, asked.args) == ("c1", "act", {"x": 7})
        assert "7" in str(asked.raw_args)
        assert asked.hints.read_only
        assert asked.definition.parameters_json_schema["required"] == ["x"]
        assert (asked.is_approved, asked.needs_approval, asked.is_external) == (False, False, False)
        assert outcome.calls[0].result == "done 7"


async def test_a_gate_may_change_the_arguments(runtime: Runtime, install: Install) -> None:
    """A1: the tool runs with them, and the next gate sees them; what the model asked for stays as it was."""
    first, second = Decides(Run({"x": 2})), Decides()
    install(first, second)
    async with runtime(ScriptedModel([call("act", x=1), "Done."]), tools=[act]) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("act")
        assert (RAN, outcome.calls[0].result) == ([2], "done 2")
        assert (first.asked[0].args, second.asked[0].args) == ({"x": 1}, {"x": 2})
        [began] = await events_of(session, "call.started")
        assert "1" in str(began.data["args"])


async def test_a_gate_may_answer_in_place_of_the_tool(runtime: Runtime, install: Install) -> None:
    """A1: the model gets the value as the call's one result, gates after it are not asked, and nothing has run."""
    later = Decides()
    install(Decides(Answer({"simulated": True})), later)
    async with runtime(ScriptedModel([call("act", x=1), "Done."]), tools=[act]) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("act")
        [told] = outcome.calls
        assert (told.outcome, told.result, outcome.text) == ("success", {"simulated": True}, "Done.")
        assert (RAN, later.asked) == ([], [])


async def test_refusals_of_a_gate_do_not_use_up_the_models_retries(runtime: Runtime, install: Install) -> None:
    """A7: a refused call is an error result, however often it is asked for."""
    install(Decides(*(Answer(failure=f"Not allowed ({at}).") for at in range(4))))
    steps = [*(call("act", x=at) for at in range(4)), call("act", x=9), "Done."]
    async with runtime(ScriptedModel(steps), tools=[Tool(act, max_retries=0)]) as outlast:
        outcome = await (await outlast.sessions.create()).ask("act")
        assert (outcome.text, RAN) == ("Done.", [9])
        told = [(each.outcome, each.result) for each in outcome.calls]
        assert told == [*(("failed", f"Not allowed ({at}).") for at in range(4)), ("success", "done 9")]


async def test_the_models_own_tools_pass_no_gate(runtime: Runtime, install: Install) -> None:
    """B2: looking at background work is always possible."""
    gate = Decides(Answer(failure="No."))
    install(gate)
    async with runtime(ScriptedModel([call("check_background", list=True), "Done."])) as outlast:
        outcome = await (await outlast.sessions.create()).ask("look")
        assert (outcome.calls[0].result, gate.asked) == ({"tasks": []}, [])


async def test_a_gate_may_make_a_call_wait(runtime: Runtime, install: Install) -> None:
    """A13: the model gets a handle at once, a task waits without a worker, and it is the same after a restart."""
    install(Decides(Wait("approval", "May it act?", {"url": "https://example.com/ask"}, timedelta(days=7))))
    model = ScriptedModel([call("act", x=1, call_id="c1"), "It waits."])
    async with runtime(model, tools=[act]) as outlast:
        session = await outlast.sessions.create()
        outcome = await (await session.send("act")).outcome()
        assert outcome.text == "It waits."
        [task] = await session.tasks()
        assert (task.state, task.tool, task.call_id, task.agent) == ("awaiting_input", "act", "c1", "agent")
        assert task.request is not None
        assert (task.request.kind, task.request.prompt) == ("approval", "May it act?")
        assert task.request.url == "https://example.com/ask"
        assert task.deadline_at is not None
        [told] = outcome.calls
        assert told.outcome == "parked"
        handle = told.result
        assert {each: handle[each] for each in ("type", "task_id", "tool", "awaiting")} == {
            "type": "background",
            "task_id": task.id,
            "tool": "act",
            "awaiting": "approval",
        }
    async with runtime(ScriptedModel(["Still."]), tools=[act]) as outlast:
        session = await outlast.sessions.get(session.id)
        [task] = await session.tasks()
        assert task.state == "awaiting_input"
    assert RAN == []


async def test_no_more_calls_wait_than_tasks_may_be_open(runtime: Runtime, install: Install) -> None:
    """A13: the model is told, and nothing has run."""
    install(Decides(*[Wait("approval", "May it act?")] * 2))
    model = ScriptedModel([call("act", x=1), call("act", x=2), "I see."])
    async with runtime(model, tools=[act], max_open_tasks_per_session=1) as outlast:
        outcome = await (await (await outlast.sessions.create()).send("act")).outcome()
        assert [each.outcome for each in outcome.calls] == ["parked", "failed"]
        assert "Not run" in outcome.calls[1].result
    assert RAN == []


KINDS: dict[str, tuple[dict[str, Any], dict[str, bool]]] = {
    "approval": ({"tools": [Tool(act, requires_approval=True)]}, {"needs_approval": True}),
    "outside": (
        {"toolsets": [ExternalToolset([ToolDefinition(name="act", parameters_json_schema=SCHEMA)])]},
        {"is_external": True},
    ),
    "approval in the tool": (
        {"tools": [Tool(asks_itself, name="act")]},
        {"needs_approval": True, "has_begun": True},
    ),
    "handed out": ({"tools": [Tool(hands_out, name="act")]}, {"is_external": True, "has_begun": True}),
}
FLAGS = ("needs_approval", "is_external", "has_begun")


async def refuse_empty(output: Any) -> Any:
    assert output
    return output


@pytest.mark.parametrize("shape", ["plain", "validator", "deferred output"])
@pytest.mark.parametrize("name", KINDS)
async def test_calls_that_ask_for_something_reach_the_gates_of_every_agent(
    runtime: Runtime, install: Install, name: str, shape: str
) -> None:
    """A1: also where pydantic-ai itself would end the run, or refuse the agent."""
    given, flags = KINDS[name]
    asked_first = [RUN] if flags.get("has_begun") else []
    gate = Decides(*asked_first, Answer("answered in its place"))
    install(gate)
    output: Any = [str, DeferredToolRequests] if shape == "deferred output" else str
    agent: Agent[Any, Any] = Agent(
        ScriptedModel([call("act", x=1), "Well then."]), name="agent", output_type=output, **given
    )
    if shape == "validator":
        validate: Callable[[Any], Awaitable[Any]] = refuse_empty
        agent.output_validator(validate)
    async with runtime(agent=agent) as outlast:
        outcome = await (await outlast.sessions.create()).ask("act")
        assert (outcome.text, [each.result for each in outcome.calls]) == ("Well then.", ["answered in its place"])
    seen = gate.asked[-1]
    assert {each: getattr(seen, each) for each in FLAGS} == {each: flags.get(each, False) for each in FLAGS}
    assert RAN == []
    if name == "approval in the tool":
        assert seen.metadata == {"why": "large"}
    if not flags.get("has_begun"):
        kind = "external" if name == "outside" else "unapproved"
        assert seen.definition == replace(seen.definition, kind=kind), "a gate sees the tool as it was given"
