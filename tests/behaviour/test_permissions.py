"""Permissions of a session at its calls: what is denied is not offered and not run, along all its ancestors (A7)."""

import asyncio
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, RunContext, Tool
from pydantic_ai.toolsets import FunctionToolset

from outlast import Permissions, hints
from outlast.calls.gates.live_constraints import LiveConstraints
from outlast.testing import ScriptedModel, call, gate
from tests.support.turns.runtime import Runtime, scripted
from tests.support.turns.tree import link

RAN: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


async def shell(command: str) -> str:
    RAN.append(command)
    return "ok"


def read(path: str = "/") -> str:
    RAN.append(path)
    return "text"


class Payment(BaseModel):
    amount: int
    currency: str = "EUR"


async def pay(payment: Payment) -> str:
    RAN.append(f"paid {payment.amount}")
    return "paid"


def offered(model: ScriptedModel, at: int = 0) -> set[str]:
    return {each.name for each in model.requests[at].parameters.function_tools}


async def test_a_denied_tool_is_not_offered_and_its_call_is_an_error(runtime: Runtime) -> None:
    """A7: however often it is asked for and with whatever arguments, none of the model's retries is used up."""
    wrong = [call("shell", '{"command": 5}'), call("shell", "{"), call("shell", nothing=1)]
    model = scripted(call("shell", command="ls"), *wrong, call("read", path="a"), "Done.")
    async with runtime(model, tools=[Tool(shell, max_retries=0), read]) as outlast:
        session = await outlast.sessions.create(permissions=Permissions(deny=["shell"]))
        outcome = await session.ask("look")
        assert outcome.text == "Done."
        assert (RAN, [each.outcome for each in outcome.calls]) == (["a"], [*["failed"] * 4, "success"])
        assert {each.result for each in outcome.calls[:4]} == {
            "The tool 'shell' was not run: this session denies shell."
        }
        assert offered(model) & {"shell", "read", "check_background"} == {"read", "check_background"}


async def test_a_rule_looks_at_the_arguments_that_the_tool_gets(runtime: Runtime) -> None:
    """A7: text that validation makes a number of, defaults, and the fields of a model; the tool is still offered."""
    model = scripted(
        [
            call("shell", command="git status"),
            call("shell", command="rm -rf /"),
            call("pay", amount="70"),
            call("pay", amount="700"),
            call("read"),
        ],
        "Done.",
    )
    permissions = Permissions(allow=["shell(command~='^git ')", "pay(amount<=100)", "read"], deny=["read(path=='/')"])
    async with runtime(model, tools=[shell, pay, read]) as outlast:
        session = await outlast.sessions.create(permissions=permissions)
        outcome = await session.ask("work")
        assert sorted(RAN) == ["git status", "paid 70"]
        assert {"shell", "pay", "read"} <= offered(model)
        assert sorted(str(each.outcome) for each in outcome.calls) == [*["failed"] * 3, *["success"] * 2]


async def test_each_ancestor_must_allow_it(runtime: Runtime) -> None:
    """A7: what an ancestor denies no descendant may, whatever its own lists say; a change counts at the next call."""
    model = scripted(call("shell", command="a"), "No.", call("shell", command="b"), "Yes.", call("read"), "No.")
    async with runtime(model, tools=[shell, read]) as outlast:
        top = await outlast.sessions.create(permissions=Permissions(deny=["shell"]))
        middle = await outlast.sessions.create()
        bottom = await outlast.sessions.create(permissions=Permissions(allow=["shell", "read"]))
        await link(outlast, middle, top)
        await link(outlast, bottom, middle)
        assert (await bottom.ask("one")).calls[0].outcome == "failed"
        assert (RAN, offered(model) & {"shell", "read"}) == ([], {"read"})
        await top.update(permissions=None)
        assert (await bottom.ask("two")).calls[0].outcome == "success"
        await middle.update(permissions=Permissions(allow=["shell"]))
        assert (await bottom.ask("three")).calls[0].outcome == "failed"
        assert RAN == ["b"]


async def test_what_is_denied_while_the_model_answers_is_not_run(runtime: Runtime) -> None:
    """A7: the tool was offered, and the session had no constraints at all when the turn began."""
    denied = asyncio.Event()
    began = asyncio.Event()

    async def until_denied() -> None:
        began.set()
        await denied.wait()

    model = scripted([gate(until_denied), call("shell", command="ls")], "Done.")
    async with runtime(model, tools=[shell]) as outlast:
        session = await outlast.sessions.create()
        turn = await session.send("work")
        await began.wait()
        await session.update(permissions=Permissions(deny=["shell"]))
        denied.set()
        outcome = await turn.outcome()
        assert (outcome.calls[0].outcome, RAN) == ("failed", [])
        assert "shell" in offered(model)


async def test_calls_of_a_session_without_constraints_read_nothing(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A7: a gate costs a fast call nothing when it has nothing to say."""
    asked: list[bool] = []
    now = LiveConstraints.now

    async def note(self: LiveConstraints) -> Any:
        chain = await now(self)
        asked.append(chain.permissions == ())
        return chain

    reads: list[Any] = []
    monkeypatch.setattr(LiveConstraints, "now", note)
    monkeypatch.setattr("outlast.calls.gates.live_constraints.chain_of", partial(reads.append, 1))
    async with runtime(scripted([call("read"), call("read")], "Done."), tools=[read]) as outlast:
        session = await outlast.sessions.create()
        assert (await session.ask("read")).text == "Done."
        assert asked
        assert all(asked)
        assert reads == []


async def test_the_runtimes_own_tools_are_there_unless_they_are_denied(runtime: Runtime) -> None:
    """A7: a list that allows is about the agent's tools."""
    model = scripted(call("check_background"), "One.", call("check_background"), "Two.")
    async with runtime(model, tools=[read]) as outlast:
        session = await outlast.sessions.create(permissions=Permissions(allow=["read"]))
        assert (await session.ask("one")).calls[0].outcome == "success"
        await session.update(permissions=Permissions(deny=["check_*"]))
        assert (await session.ask("two")).calls[0].outcome == "failed"
        assert offered(model, 2) & {"read", "read_output", "check_background"} == {"read", "read_output"}


async def test_tools_of_every_kind_are_judged(runtime: Runtime) -> None:
    """A7: with a context, of a toolset, sync and async, with hints, behind an approval."""
    toolset = FunctionToolset[Any]()

    @toolset.tool
    async def of_toolset(ctx: RunContext[Any]) -> None:
        RAN.append("of_toolset")

    def with_approval() -> None:
        RAN.append("with_approval")

    def repeatable() -> None:
        RAN.append("repeatable")

    names = ["of_toolset", "with_approval", "repeatable"]
    model = scripted([call(each) for each in names], "Done.")
    tools = [Tool(with_approval, requires_approval=True), Tool(repeatable, metadata=hints(idempotent=True))]
    agent = Agent(model, deps_type=Any, tools=tools, toolsets=[toolset], name="agent")
    async with runtime(agent=agent) as outlast:
        session = await outlast.sessions.create(permissions=Permissions(deny=["*"]))
        outcome = await session.ask("all")
        assert ([each.outcome for each in outcome.calls], RAN) == (["failed"] * 3, [])
        assert all("denies" in str(each.result) for each in outcome.calls)
        assert offered(model) == set()
