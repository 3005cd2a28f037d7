"""Trees of sessions: work that an ancestor gives to a descendant, and what a person stops in the middle of one."""

import asyncio
from typing import Any

import pytest
from pydantic_ai import Tool
from pydantic_ai.messages import ModelMessage

import outlast as public
from outlast import Outlast, Session, hints
from outlast.ids import SessionId
from outlast.store.repositories import family
from outlast.testing import ScriptedModel, call, last_user_text, tool_returns
from outlast.testing.step import Step
from outlast.wire.task_state import TaskState
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.background import task_that
from tests.support.turns.runtime import Runtime, events_of, wait_for_event

LEAF = "leaf: count"


def answers(messages: list[ModelMessage]) -> list[Any]:
    return [*tool_returns(messages).values()]


def is_told(messages: list[ModelMessage]) -> bool:
    return "Background task" in last_user_text(messages) or "The sub-session of task" in last_user_text(messages)


async def below(outlast: Outlast[Any, Any], session: Session) -> list[SessionId]:
    """The deepest first."""
    return await outlast.database.read(lambda connection: family.below(connection, session.id))


class Tree:
    """A root that goes on with the sub-session of its sub-session, whose id a test says."""

    def __init__(self, leaf: Any, **asked: Any) -> None:
        self.leaf_id = ""
        self._leaf = leaf
        self._asked = asked

    def script(self, messages: list[ModelMessage]) -> Step:
        said, found = last_user_text(messages), answers(messages)
        if said.startswith("leaf") or any("leaf" in str(each) for each in messages[0].parts):
            return self._leaf(messages)
        if is_told(messages):
            return f"told: {said}"
        if said == "middle":
            return "done" if found else call("run_sub_session", prompt=LEAF)
        if said == "root, go on":
            asked: dict[str, Any] = {"prompt": "leaf: again", "session_id": self.leaf_id, **self._asked}
            return call("run_sub_session", **asked) if len(found) == 1 else str(found[-1])
        return "done" if found else call("run_sub_session", prompt="middle")


async def a_tree(outlast: Outlast[Any, Any], tree: Tree) -> Session:
    session = await outlast.sessions.create()
    assert (await session.ask("root")).text == "done"
    tree.leaf_id, _ = await below(outlast, session)
    return session


async def test_a_session_goes_on_with_the_child_of_its_child(runtime: Runtime) -> None:
    """C1, C2: its work is that session's own task, and ends with the answer of that very input."""

    def leaf(messages: list[ModelMessage]) -> Step:
        return f"did {last_user_text(messages)}"

    tree = Tree(leaf)
    async with runtime(ScriptedModel(tree.script)) as outlast:
        session = await a_tree(outlast, tree)
        assert "'result': 'did leaf: again'" in ((await session.ask("root, go on")).text or "")
        states = [(each.links["child_session"], each.state) for each in await session.tasks()]
        assert (tree.leaf_id, TaskState.SUCCEEDED) in states


async def test_the_child_of_a_child_reports_what_fits(runtime: Runtime) -> None:
    """C2: to whoever asked for it."""

    def leaf(messages: list[ModelMessage]) -> Step:
        if not last_user_text(messages).startswith("leaf: again"):
            return "done"
        return call("report_result", result=3) if not answers(messages) else "Reported."

    tree = Tree(leaf, result_schema={"type": "integer"})
    async with runtime(ScriptedModel(tree.script)) as outlast:
        session = await a_tree(outlast, tree)
        assert "'result': 3" in ((await session.ask("root, go on")).text or "")


async def test_its_work_is_cancelled_and_its_deletion_is_told(runtime: Runtime) -> None:
    """C3, cancel: the task of the ancestor ends, whichever session between them did nothing."""
    here = Checkpoint()

    async def dig() -> str:
        await here()
        return "gold"

    def leaf(messages: list[ModelMessage]) -> Step:
        return call("dig") if last_user_text(messages).startswith("leaf: again") else "done"

    tree = Tree(leaf, wait_seconds=0)
    async with runtime(ScriptedModel(tree.script), tools=[dig], budget=None) as outlast:
        for is_deleted in (False, True):
            session = await a_tree(outlast, tree)
            await (await session.send("root, go on")).outcome()
            (task,) = [each for each in await session.tasks() if not each.is_over]
            await here.reached()
            if is_deleted:
                await outlast.sessions.delete(tree.leaf_id)
            else:
                await outlast.tasks.cancel(task.id)
            assert (await outlast.tasks.wait(task.id, seconds=20)).state is TaskState.CANCELED


async def test_a_question_is_told_to_the_session_that_gave_the_work(runtime: Runtime) -> None:
    """B8, C3: not to the one between them, and with the task that it is about."""

    async def paint() -> str:
        return f"painted {await public.ask('Which colour?')}"

    def leaf(messages: list[ModelMessage]) -> Step:
        if not last_user_text(messages).startswith("leaf: again"):
            return "done"
        return call("paint") if not answers(messages) else "It asks."

    tree = Tree(leaf, wait_seconds=0)
    async with runtime(ScriptedModel(tree.script), tools=[paint]) as outlast:
        session = await a_tree(outlast, tree)
        await (await session.send("root, go on")).outcome()
        (task,) = [each for each in await session.tasks() if not each.is_over]
        asking = await task_that(await outlast.sessions.get(tree.leaf_id), lambda each: each.request is not None)
        told = await _first_request(session)
        assert f"The sub-session of task {task.id}" in told.data["text"]
        _, middle = await below(outlast, session)
        assert not [each for each in await events_of(await outlast.sessions.get(middle)) if _is_request(each)]
        await outlast.tasks.cancel(asking.id)
        await session.settled()


async def _first_request(session: Session) -> public.Event:
    async with session.events() as stream, asyncio.timeout(60):
        async for event in stream:
            if _is_request(event):
                return event
    raise AssertionError("the stream ended without a request")


def _is_request(event: public.Event) -> bool:
    return event.type == "input.delivered" and event.data["kind"] == "request"


@pytest.mark.parametrize("is_idle", [False, True], ids=["in its turn", "between turns"])
async def test_a_person_stops_a_child_whose_own_work_goes_on(runtime: Runtime, is_idle: bool) -> None:
    """C3, D5: the parent is told at once, though a task of the child is still open and will wake nobody."""
    digs, waits = Checkpoint(), Checkpoint()

    async def dig() -> str:
        await digs()
        return "gold"

    async def wait() -> str:
        await waits()
        return "waited"

    def child(messages: list[ModelMessage]) -> Step:
        done = len(answers(messages))
        return call("dig") if done == 0 else call("wait") if done == 1 and not is_idle else "digging"

    def script(messages: list[ModelMessage]) -> Step:
        said = last_user_text(messages)
        if said != "parent":
            return f"told: {said}" if is_told(messages) else child(messages)
        return "asked" if answers(messages) else call("run_sub_session", prompt="child", wait_seconds=0)

    tools = [Tool(dig, metadata=hints(budget=0.01)), Tool(wait, metadata=hints(budget=None))]
    async with runtime(ScriptedModel(script), tools=tools) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("parent")).outcome()
        (child_id,) = await below(outlast, session)
        worker = await outlast.sessions.get(child_id)
        await digs.reached()
        await (wait_for_event(worker, "turn.completed") if is_idle else waits.reached())
        await worker.stop()
        (task,) = await session.tasks()
        task = await outlast.tasks.wait(task.id, seconds=20)
        assert (task.state, task.detail) == (TaskState.CANCELED, "local stopped the sub-session.")
        digs.open()
        dug = await task_that(worker, lambda each: each.tool == "dig" and each.is_over)
        assert dug.state is TaskState.SUCCEEDED
        outcome = await session.settled()
        assert outcome is not None
        assert "told" in outcome.text
