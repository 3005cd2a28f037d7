"""Approvals: a call that needs one waits as a task, a person decides, and the decision is told (A13, A1, B7)."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from pydantic_ai import Agent, ApprovalRequired, DeferredToolRequests, RunContext, Tool
from pydantic_ai.messages import ModelMessage

from outlast import Outlast, Permissions, Session, Task, hints
from outlast.errors import Conflict, Forbidden, InvalidInput
from outlast.testing import ScriptedModel, call
from tests.support.turns.background import stored_task, task_that
from tests.support.turns.runtime import Runtime, events_of, scripted

RAN: list[int] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


def pay(amount: int) -> str:
    RAN.append(amount)
    return f"paid {amount}"


def pay_asking(ctx: RunContext[None], amount: int) -> str:
    if not ctx.tool_call_approved:
        raise ApprovalRequired(metadata={"why": "money"})
    return pay(amount)


WAYS: dict[str, Callable[[], Tool[Any]]] = {
    "hint": lambda: Tool(pay, metadata=hints(approve=True)),
    "function": lambda: Tool(pay, metadata=hints(approve=lambda args: args["amount"] > 10)),
    "requires_approval": lambda: Tool(pay, requires_approval=True),
    "ApprovalRequired": lambda: Tool(pay_asking, name="pay"),
}


def _agent(way: str = "hint", *more: Any, output: Any = str) -> Agent[Any, Any]:
    steps = [call("pay", amount=50, call_id="c1"), "It waits for you.", "I see.", *more]
    return Agent(ScriptedModel(steps), name="agent", tools=[WAYS[way]()], output_type=output)


async def _asked(outlast: Outlast[Any, Any]) -> tuple[Session, Task]:
    session = await outlast.sessions.create()
    outcome = await (await session.send("pay")).outcome()
    assert outcome.text == "It waits for you."
    [told] = outcome.calls
    assert told.result["awaiting"] == "approval"
    [task] = (await outlast.tasks.requests(session_id=session.id)).items
    assert told.result["task_id"] == task.id
    return session, task


async def _last_words(session: Session) -> str:
    outcome = await session.settled()
    assert outcome is not None
    return outcome.text


@pytest.mark.parametrize("way", WAYS)
async def test_an_approved_call_runs_once_and_wakes_the_session(runtime: Runtime, way: str) -> None:
    """A13, A1: at once a task without a worker; the decision runs it, and its end is told."""
    async with runtime(agent=_agent(way)) as outlast:
        session, task = await _asked(outlast)
        assert (task.state, (await stored_task(outlast, task.id)).worker_id, RAN) == ("awaiting_input", None, [])
        assert task.request is not None
        assert (task.request.kind, task.request.args) == ("approval", {"amount": 50})
        await outlast.tasks.approve(task.id, by="Ada")
        ended = await outlast.tasks.wait(task.id, seconds=20)
        assert (ended.state, ended.result, RAN) == ("succeeded", "paid 50", [50])
        assert await _last_words(session) == "I see."
        assert not (await outlast.tasks.requests()).items
        [opened] = await events_of(session, "request.opened")
        [closed] = await events_of(session, "request.closed")
        assert opened.data["request"]["id"] == closed.data["request_id"]
        assert (closed.data["how"], closed.data["by"], closed.data["args"]) == ("approved", "Ada", {"amount": 50})
        assert datetime.fromisoformat(closed.data["at"]) >= datetime.fromisoformat(opened.data["request"]["asked_at"])


async def test_a_function_of_the_arguments_says_whether_to_ask(runtime: Runtime) -> None:
    """A1: small amounts run at once."""
    tool = WAYS["function"]()
    async with runtime(ScriptedModel([call("pay", amount=5), "Done."]), tools=[tool]) as outlast:
        outcome = await (await outlast.sessions.create()).ask("pay")
        assert (outcome.calls[0].result, RAN) == ("paid 5", [5])


async def test_a_function_that_fails_asks(runtime: Runtime) -> None:
    """A13, failure: what cannot be told is decided by a person."""
    tool = Tool(pay, metadata=hints(approve=lambda args: args["no such argument"]))
    async with runtime(agent=Agent(_agent().model, name="agent", tools=[tool])) as outlast:
        await _asked(outlast)
        assert RAN == []


@pytest.mark.parametrize("way", WAYS)
async def test_an_approval_may_change_the_arguments(runtime: Runtime, way: str) -> None:
    """A13: they are validated, the tool runs with them, and nobody is asked twice."""
    async with runtime(agent=_agent(way)) as outlast:
        session, task = await _asked(outlast)
        with pytest.raises(InvalidInput, match="do not fit"):
            await outlast.tasks.approve(task.id, args={"amount": "much"})
        await outlast.tasks.approve(task.id, args={"amount": 20})
        assert (await outlast.tasks.wait(task.id, seconds=20)).result == "paid 20"
        assert RAN == [20]
        [closed] = await events_of(session, "request.closed")
        assert (closed.data["args_changed"], closed.data["args"]) == (True, {"amount": 20})


async def test_changed_arguments_pass_the_permissions_again(runtime: Runtime) -> None:
    """A13, A7: an approval is no way around what the session denies."""
    async with runtime(agent=_agent()) as outlast:
        session = await outlast.sessions.create(permissions=Permissions(deny=["pay(amount>100)"]))
        await (await session.send("pay")).outcome()
        [task] = (await outlast.tasks.requests()).items
        await outlast.tasks.approve(task.id, args={"amount": 500})
        ended = await outlast.tasks.wait(task.id, seconds=20)
        assert (ended.state, RAN) == ("failed", [])
        assert ended.error is not None
        assert "denies" in ended.error["message"]


async def test_a_refused_call_is_never_run_and_the_model_is_told_why(runtime: Runtime) -> None:
    """A13: with who and the reason."""
    async with runtime(agent=_agent()) as outlast:
        session, task = await _asked(outlast)
        refused = await outlast.tasks.refuse(task.id, by="Ada", reason="too dear")
        assert refused.error == {"kind": "rejected", "message": "Ada refused it, and it was not run. Reason: too dear"}
        assert await _last_words(session) == "I see."
        [woken] = [each for each in await events_of(session, "input.delivered") if each.data["kind"] == "wake"]
        assert "too dear" in woken.data["text"]
        [closed] = await events_of(session, "request.closed")
        assert (closed.data["how"], closed.data["by"], closed.data["args"]) == ("refused", "Ada", {"amount": 50})
        assert RAN == []


async def test_a_second_decision_is_told_who_made_the_first(runtime: Runtime) -> None:
    """A13, repeat: once approved, the call runs once."""
    async with runtime(agent=_agent()) as outlast:
        _, task = await _asked(outlast)
        await outlast.tasks.approve(task.id, by="Ada")
        with pytest.raises(Conflict, match="already approved by Ada"):
            await outlast.tasks.approve(task.id, by="Bob")
        with pytest.raises(Conflict, match="already approved by Ada"):
            await outlast.tasks.refuse(task.id, by="Bob")
        await outlast.tasks.wait(task.id, seconds=20)
        assert RAN == [50]


async def test_a_cancelled_call_can_no_longer_be_approved(runtime: Runtime) -> None:
    """A13, cancel: it ends at once, without having run."""
    async with runtime(agent=_agent()) as outlast:
        session, task = await _asked(outlast)
        assert (await outlast.tasks.cancel(task.id)).state == "canceled"
        with pytest.raises(Conflict):
            await outlast.tasks.approve(task.id)
        await session.settled()
        assert RAN == []


@pytest.mark.parametrize("way", WAYS)
async def test_an_approval_outlives_its_process(runtime: Runtime, way: str) -> None:
    """A13: asked in one process, decided in the next: one request in the transcript, and the tool ran once."""
    async with runtime(agent=_agent(way)) as outlast:
        session, task = await _asked(outlast)
    agent: Agent[Any, Any] = Agent(ScriptedModel(["I see."]), name="agent", tools=[WAYS[way]()])
    async with runtime(agent=agent) as outlast:
        session = await outlast.sessions.get(session.id)
        assert [each.id for each in (await outlast.tasks.requests()).items] == [task.id]
        await outlast.tasks.approve(task.id)
        assert (await outlast.tasks.wait(task.id, seconds=20)).state == "succeeded"
        await session.settled()
        assert RAN == [50]
        assert len(await events_of(session, "request.opened")) == 1
        assert len(await events_of(session, "call.started")) == 1


async def test_an_agent_with_deferred_requests_as_output_works_like_any_other(runtime: Runtime) -> None:
    """A13: its calls become tasks, the run does not end with that output, and its validator sees the text."""
    agent = _agent("requires_approval", output=[str, DeferredToolRequests])
    seen: list[Any] = []

    @agent.output_validator
    async def validate(output: Any) -> Any:  # pyright: ignore[reportUnusedFunction]
        seen.append(output)
        return output

    async with runtime(agent=agent) as outlast:
        _, task = await _asked(outlast)
        assert seen == ["It waits for you."]
        await outlast.tasks.approve(task.id)
        assert (await outlast.tasks.wait(task.id, seconds=20)).result == "paid 50"


async def test_no_model_approves(runtime: Runtime) -> None:
    """A13: an approval is not answered by a reply."""
    async with runtime(agent=_agent()) as outlast:
        _, task = await _asked(outlast)
        with pytest.raises((InvalidInput, Forbidden)):
            await outlast.tasks.reply(task.id, "yes")
        assert RAN == []


async def test_at_the_limit_of_open_tasks_a_call_is_refused_with_the_list(runtime: Runtime) -> None:
    """A13: what waits counts as open."""
    steps = [call("pay", amount=50), call("pay", amount=60), "Enough."]
    async with runtime(ScriptedModel(steps), tools=[WAYS["hint"]()], max_open_tasks_per_session=1) as outlast:
        session = await outlast.sessions.create()
        outcome = await (await session.send("pay twice")).outcome()
        [task] = await session.tasks()
        assert task.id in outcome.calls[1].result
        assert RAN == []


async def test_a_session_in_which_somebody_is_needed_is_unread(runtime: Runtime) -> None:
    """B7, K2: also while the turn that asked still runs; the session says how many wait."""
    async with runtime(agent=_agent()) as outlast:
        session, task = await _asked(outlast)
        session = await session.refresh()
        assert session.is_unread
        assert (session.counts.open_tasks, session.counts.awaiting_input) == (1, 1)
        assert (await task_that(session, lambda each: each.id == task.id)).request is not None


async def test_always_in_this_session(runtime: Runtime) -> None:
    """A13, A7: a rule spares such calls in this session alone, is listed, and can be withdrawn."""
    ran: list[int] = []

    def pay(amount: int) -> str:
        ran.append(amount)
        return f"paid {amount}"

    asked = Tool(pay, metadata=hints(approve=True))
    steps = [call("pay", amount=5), "One.", "Two.", call("pay", amount=7), "Three.", call("pay", amount=500), "Four."]
    model = scripted(*steps, call("pay", amount=7), "Five.", call("pay", amount=1), "Six.")
    async with runtime(model, tools=[asked]) as outlast:
        session, other = await outlast.sessions.create(), await outlast.sessions.create()
        await (await session.send("pay")).outcome()
        (task,) = (await outlast.tasks.requests()).items
        with pytest.raises(InvalidInput, match="not about this call"):
            await outlast.tasks.approve(task.id, always="pay(amount>100)")
        await outlast.tasks.approve(task.id, by="Ada", always="pay(amount<=100)")
        await session.settled()
        assert (await (await session.send("again")).outcome()).calls[0].result == "paid 7"
        assert (await (await session.send("much")).outcome()).calls[0].result["awaiting"] == "approval"
        assert (await (await other.send("pay")).outcome()).calls[0].result["awaiting"] == "approval"
        [rule] = (await session.refresh()).permissions.always
        assert (rule.rule, rule.by) == ("pay(amount<=100)", "Ada")
        await session.withdraw_always(rule.id)
        assert session.permissions.always == []
        assert (await (await session.send("again")).outcome()).calls[0].result["awaiting"] == "approval"
        assert ran == [5, 7]


async def test_of_two_people_at_the_same_instant_one_decides(runtime: Runtime) -> None:
    """A13, P5: the other is told who; the call runs once or not at all, as the first one said."""

    def told(messages: list[ModelMessage]) -> Any:
        return "I see." if len(messages) > 1 else call("pay", amount=3)

    async with runtime(ScriptedModel(told), tools=[Tool(pay, metadata=hints(approve=True))]) as outlast:
        for _ in range(5):
            RAN.clear()
            session = await outlast.sessions.create()
            await (await session.send("pay")).outcome()
            (task,) = (await outlast.tasks.requests(session_id=session.id)).items
            both = outlast.tasks.approve(task.id, by="Ada"), outlast.tasks.refuse(task.id, by="Bob")
            came_to = await asyncio.gather(*both, return_exceptions=True)
            [won] = [each for each in came_to if isinstance(each, Task)]
            [lost] = [each for each in came_to if isinstance(each, Conflict)]
            assert won.request is not None
            assert won.request.closed is not None
            assert f"by {won.request.closed.by}" in lost.message
            await session.settled()
            assert [3] * (won.request.closed.how == "approved") == RAN
