"""Sub-sessions: a piece of work in a session of its own, whose answer comes back once and is never guessed."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage

from outlast import Outlast, Session
from outlast.errors import NotFound
from outlast.store.repositories import family
from outlast.testing import ScriptedModel, call, error, last_user_text, tool_returns
from outlast.wire.task_state import TaskState
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.runtime import Runtime, events_of

Script = Callable[[list[ModelMessage]], Any]


def answers(messages: list[ModelMessage]) -> list[Any]:
    """The results of the tools in this conversation, as the model sees them."""
    return [*tool_returns(messages).values()]


def told(messages: list[ModelMessage]) -> bool:
    return "Background task" in last_user_text(messages)


async def child_of(outlast: Outlast[Any, Any], session: Session) -> Session:
    found = await outlast.database.read(lambda connection: family.children(connection, [session.id]))
    return await outlast.sessions.get(found[0])


def parent_and_child(ask: dict[str, Any], child: Script) -> ScriptedModel:
    """The parent asks once and says what it got; a child is known by its first word."""

    def script(messages: list[ModelMessage]) -> Any:
        said = last_user_text(messages)
        if said.startswith("parent"):
            found = answers(messages)
            return f"got {found[-1]}" if found else call("run_sub_session", **ask)
        if told(messages) and not any("child" in str(each) for each in messages[0].parts):
            return f"woken: {said}"
        return child(messages)

    return ScriptedModel(script)


async def test_the_answer_of_a_quick_sub_session_comes_inline(runtime: Runtime) -> None:
    """C1, C2: one call, one task, and no wake for what was told."""
    model = parent_and_child({"prompt": "child: count"}, lambda _: "There are three.")
    async with runtime(model) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("parent: go")
        assert "'result': 'There are three.'" in (outcome.text or "")
        (task,) = await session.tasks()
        assert (task.kind, task.state) == ("session", TaskState.SUCCEEDED)
        assert task.result == "There are three."
        child = await child_of(outlast, session)
        assert task.links["child_session"] == child.id
        assert [each.data["origin"] for each in await events_of(child, "turn.queued")] == ["parent"]
        assert [each.data["kind"] for each in await events_of(session, "input.delivered")] == ["message"]


async def test_one_that_takes_longer_is_a_handle_and_wakes(runtime: Runtime) -> None:
    """C1, B7: the turn goes on; the end is told once."""
    here = Checkpoint()

    async def dig() -> str:
        await here()
        return "gold"

    def child(messages: list[ModelMessage]) -> Any:
        return f"found {answers(messages)[-1]}" if answers(messages) else call("dig")

    model = parent_and_child({"prompt": "child: dig", "wait_seconds": 0}, child)
    async with runtime(model, tools=[dig], budget=None) as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("parent: go")
        first = await sent.outcome()
        assert "'type': 'background'" in (first.text or "")
        here.open()
        outcome = await session.settled()
        assert outcome is not None
        assert "woken" in (outcome.text or "")
        assert "found gold" in (outcome.text or "")
        (task,) = await session.tasks()
        assert task.state is TaskState.SUCCEEDED


async def test_it_is_over_when_its_background_work_is(runtime: Runtime) -> None:
    """C2: the answer of the turn that its task woke, never that of the turn before."""
    here = Checkpoint()

    async def dig() -> str:
        await here()
        return "gold"

    def child(messages: list[ModelMessage]) -> Any:
        if told(messages):
            return "it was gold"
        return "I am digging" if answers(messages) else call("dig")

    model = parent_and_child({"prompt": "child: dig", "wait_seconds": 300}, child)
    async with runtime(model, tools=[dig], budget=0.01) as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("parent: go")
        child_session = await asyncio.wait_for(_first_child(outlast, session), 60)
        await _ended(child_session)
        here.open()
        outcome = await sent.outcome()
        assert "it was gold" in (outcome.text or "")


async def _first_child(outlast: Outlast[Any, Any], session: Session) -> Session:
    async with session.events() as stream:
        async for event in stream:
            if event.type == "task.created":
                break
    return await child_of(outlast, session)


async def _ended(session: Session) -> None:
    async with session.events() as stream:
        async for event in stream:
            if event.type in ("turn.completed", "turn.stopped", "turn.failed"):
                return


async def test_a_result_that_was_asked_for_must_be_reported_and_fit(runtime: Runtime) -> None:
    """C2: what does not fit is refused with words, and can be reported again."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

    def child(messages: list[ModelMessage]) -> Any:
        match len(answers(messages)):
            case 0:
                return call("report_result", result={"n": "three"})
            case 1:
                assert "n: " in str(answers(messages)[0])
                return call("report_result", result={"n": 3})
            case _:
                return "Reported."

    async with runtime(parent_and_child({"prompt": "child: count", "result_schema": schema}, child)) as outlast:
        session = await outlast.sessions.create()
        await session.ask("parent: go")
        (task,) = await session.tasks()
        assert (task.state, task.result) == (TaskState.SUCCEEDED, {"n": 3})


async def test_without_the_result_that_was_asked_for_it_has_failed(runtime: Runtime) -> None:
    """C2: words are no result."""
    asked = {"prompt": "child: count", "result_schema": {"type": "integer"}}
    async with runtime(parent_and_child(asked, lambda _: "Three, I think.")) as outlast:
        session = await outlast.sessions.create()
        await session.ask("parent: go")
        (task,) = await session.tasks()
        assert task.state is TaskState.FAILED
        assert task.error is not None
        assert task.error["kind"] == "no_result"


async def test_a_failing_sub_session_is_told_as_failed(runtime: Runtime) -> None:
    """C2: with the kind of its failure."""
    async with runtime(parent_and_child({"prompt": "child: fail"}, lambda _: error(400)), model_retries=0) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("parent: go")
        assert outcome.state == "completed"
        (task,) = await session.tasks()
        assert (task.state, task.error is not None) == (TaskState.FAILED, True)


async def test_stopping_it_cancels_the_task_and_says_so(runtime: Runtime) -> None:
    """C3, D5"""
    here = Checkpoint()

    async def dig() -> str:
        await here()
        return "gold"

    model = parent_and_child({"prompt": "child: dig", "wait_seconds": 0}, lambda _: call("dig"))
    async with runtime(model, tools=[dig], budget=None) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("parent: go")).outcome()
        child = await child_of(outlast, session)
        await here.reached()
        await child.stop()
        (task,) = await session.tasks()
        task = await outlast.tasks.wait(task.id, seconds=20)
        assert task.state is TaskState.CANCELED
        assert "stopped" in (task.detail or "")
        assert child.id in str(task.links)


async def test_cancel_reaches_the_bottom_of_a_tree_in_one_commit(runtime: Runtime) -> None:
    """C3: three levels, all stopped, all told; nothing is started by it."""
    here, ended = Checkpoint(), asyncio.Event()

    async def dig() -> str:
        try:
            await here()
        finally:
            ended.set()
        return "gold"

    def script(messages: list[ModelMessage]) -> Any:
        said = last_user_text(messages)
        if answers(messages) or told(messages):
            return "ok"
        level = int(said.removeprefix("level "))
        return call("dig") if level == 3 else call("run_sub_session", prompt=f"level {level + 1}", wait_seconds=0)

    async with runtime(ScriptedModel(script), tools=[dig], budget=0.01) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("level 1")).outcome()
        await here.reached()
        (task,) = await session.tasks()
        below = await outlast.database.read(lambda connection: family.below(connection, session.id))
        assert len(below) == 2
        canceled = await outlast.tasks.cancel(task.id)
        assert canceled.state is TaskState.CANCELED
        await asyncio.wait_for(ended.wait(), 60)
        for each in below:
            child = await outlast.sessions.get(each)
            for found in await child.tasks():
                assert (await outlast.tasks.wait(found.id, seconds=20)).state is TaskState.CANCELED


async def test_a_person_may_write_to_a_child_and_ends_nothing_by_it(runtime: Runtime) -> None:
    """C2"""
    here = Checkpoint()

    async def dig() -> str:
        await here()
        return "gold"

    def child(messages: list[ModelMessage]) -> Any:
        if told(messages):
            return "it was gold"
        if "person" in last_user_text(messages):
            return "hello, person"
        return "digging" if answers(messages) else call("dig")

    model = parent_and_child({"prompt": "child: dig", "wait_seconds": 0}, child)
    async with runtime(model, tools=[dig], budget=0.01) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("parent: go")).outcome()
        (task,) = await session.tasks()
        worker = await child_of(outlast, session)
        await here.reached()
        await _ended(worker)
        said = await (await worker.send("person: hello")).outcome()
        assert said.text == "hello, person"
        assert not (await outlast.tasks.get(task.id)).is_over
        here.open()
        assert (await outlast.tasks.wait(task.id, seconds=20)).result == "it was gold"


async def test_going_on_with_one_queues_behind_its_work(runtime: Runtime) -> None:
    """C1: each piece of work has a task and an answer of its own."""

    def script(messages: list[ModelMessage]) -> Any:
        said = last_user_text(messages)
        if not said.startswith("parent"):
            return f"did {said}"
        found = answers(messages)
        match len(found):
            case 0:
                return call("run_sub_session", prompt="one")
            case 1:
                return call("run_sub_session", prompt="two", session_id=found[0]["session_id"])
            case _:
                return f"{found[0]['result']}, {found[1]['result']}"

    async with runtime(ScriptedModel(script)) as outlast:
        session = await outlast.sessions.create()
        assert (await session.ask("parent: go")).text == "did one, did two"
        found = await session.tasks()
        assert len({task.links["child_session"] for task in found}) == 1


@pytest.mark.parametrize("whose", ["nobody's", "its own", "another's"])
async def test_only_descendants_can_be_gone_on_with(runtime: Runtime, whose: str) -> None:
    """C1, P7: the same words for all of them."""

    def script(messages: list[ModelMessage]) -> Any:
        found = answers(messages)
        return str(found[-1]) if found else call("run_sub_session", prompt="x", session_id=chosen["id"])

    chosen: dict[str, str] = {}
    async with runtime(ScriptedModel(script)) as outlast:
        session, other = await outlast.sessions.create(), await outlast.owned_by("olga").create()
        chosen["id"] = {"nobody's": "ses_none", "its own": session.id, "another's": other.id}[whose]
        assert "There is no such sub-session" in ((await session.ask("go")).text or "")
        assert await session.tasks() == []


async def test_depth_and_number_are_bounded(runtime: Runtime) -> None:
    """C4: refused with words that say what to do."""

    def script(messages: list[ModelMessage]) -> Any:
        found = answers(messages)
        return str(found[-1]) if found else call("run_sub_session", prompt="deeper", wait_seconds=300)

    async with runtime(ScriptedModel(script), max_depth=3) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("go")
        assert "at most 3 deep" in (outcome.text or "")
        below = await outlast.database.read(lambda connection: family.below(connection, session.id))
        assert len(below) == 2


async def test_parents_that_wait_do_not_starve_their_children(runtime: Runtime) -> None:
    """D13: a turn that only waits takes none of its owner's places."""

    def script(messages: list[ModelMessage]) -> Any:
        found = answers(messages)
        if last_user_text(messages) == "parent":
            return str(found[-1]) if found else call("run_sub_session", prompt="child", wait_seconds=300)
        return "done"

    async with runtime(ScriptedModel(script), max_turns_per_owner=1) as outlast:
        session = await outlast.sessions.create()
        outcome = await asyncio.wait_for(session.ask("parent"), 60)
        assert "'result': 'done'" in (outcome.text or "")


async def test_deleting_the_parent_deletes_its_children(runtime: Runtime) -> None:
    """D10: rows and files of all of them."""
    async with runtime(parent_and_child({"prompt": "child: x"}, lambda _: "y")) as outlast:
        session = await outlast.sessions.create()
        await session.ask("parent: go")
        child = await child_of(outlast, session)
        await outlast.sessions.delete(session.id)
        with pytest.raises(NotFound):
            await outlast.sessions.get(child.id)


async def test_deleting_a_child_cancels_what_was_asked_of_it(runtime: Runtime) -> None:
    """C3, P3"""
    here = Checkpoint()

    async def dig() -> str:
        await here()
        return "gold"

    model = parent_and_child({"prompt": "child: dig", "wait_seconds": 0}, lambda _: call("dig"))
    async with runtime(model, tools=[dig], budget=None) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("parent: go")).outcome()
        await here.reached()
        child = await child_of(outlast, session)
        await outlast.sessions.delete(child.id)
        (task,) = await session.tasks()
        task = await outlast.tasks.wait(task.id, seconds=20)
        assert (task.state, task.detail) == (TaskState.CANCELED, "The sub-session was deleted.")


class Report(BaseModel):
    city: str


async def test_another_agent_with_a_typed_output(runtime: Runtime) -> None:
    """C1, C2: its output as JSON."""

    def desk(messages: list[ModelMessage]) -> Any:
        found = answers(messages)
        return str(found[-1]) if found else call("run_sub_session", prompt="Where?", agent="scout")

    agents = {
        "desk": Agent(ScriptedModel(desk)),
        "scout": Agent(ScriptedModel([call("final_result", city="Oslo")]), output_type=Report),
    }
    async with runtime(agent=agents) as outlast:
        session = await outlast.sessions.create(agent="desk")
        await session.ask("go")
        (task,) = await session.tasks()
        assert (task.agent, task.result) == ("scout", {"city": "Oslo"})


async def test_an_agent_that_nobody_has_is_refused_with_the_names(runtime: Runtime) -> None:
    """C1"""
    model = parent_and_child({"prompt": "x", "agent": "nobody"}, lambda _: "y")
    async with runtime(model) as outlast:
        outcome = await (await outlast.sessions.create()).ask("parent: go")
        assert "There is no agent 'nobody'. There are: agent." in (outcome.text or "")


async def test_sub_sessions_are_listed_with_their_parent_only(runtime: Runtime) -> None:
    """C3: they would hide the conversations of people."""
    async with runtime(parent_and_child({"prompt": "child: x"}, lambda _: "y")) as outlast:
        session = await outlast.sessions.create()
        await session.ask("parent: go")
        assert [each.id for each in await outlast.sessions.list()] == [session.id]
        (child,) = await outlast.sessions.list(parent=session.id)
        assert child.parent_id == session.id
        assert await outlast.owned_by("olga").list(parent=session.id) == []
