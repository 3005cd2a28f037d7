"""Questions within sub-sessions: the models above are told, see them, and may answer; so may a person (B8, C3)."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.fernet import Fernet
from pydantic_ai import Tool
from pydantic_ai.messages import ModelMessage

import outlast as public
from outlast import Outlast, Session, Task, hints
from outlast.errors import Conflict
from outlast.testing import ScriptedModel, call, last_user_text, tool_returns
from tests.support.turns.runtime import Runtime, events_of

COLOURS = {"type": "string", "enum": ["red", "blue"]}


async def paint() -> str:
    return f"painted {await public.ask('Which colour?', COLOURS)}"


def _deep(levels: int, at_root: Callable[[str, dict[str, Any]], Any]) -> ScriptedModel:
    """Each level gives the work to the next one; the last one calls the tool that asks. `at_root` hears of it."""

    def step(messages: list[ModelMessage]) -> Any:
        part: Any = messages[0].parts[-1]
        first = str(part.content)
        said, found = last_user_text(messages), tool_returns(messages)
        level = int(first.removeprefix("level "))
        if "has a question" in said and level == 0:
            return at_root(said, found)
        if "has a question" in said:
            return "I do not know."
        if "painted" in said or "painted" in str(found):
            return f"level {level}: painted red"
        if not found:
            return call("paint") if level == levels else call("run_sub_session", prompt=f"level {level + 1}")
        return "It goes on."

    return ScriptedModel(step)


async def _asked(outlast: Outlast[Any, Any]) -> tuple[Session, Task]:
    """The root's own call still waits for its sub-session: nobody waits for the root."""
    session = await outlast.sessions.create()
    await session.send("level 0")

    async def look() -> Task:
        while True:
            found = (await outlast.tasks.requests(session_id=session.id)).items
            if found:
                return found[0]
            await asyncio.sleep(0.02)

    return session, await asyncio.wait_for(look(), 20)


async def test_the_model_of_the_parent_answers(runtime: Runtime) -> None:
    """B8, B2, C3: it is told of the question, sees what the child did last and what it asks, and replies."""
    seen: list[Any] = []

    def at_root(said: str, found: dict[str, Any]) -> Any:
        task_id = said.split("Background task ")[1].split(" ")[0]
        of_child = said.split("of task ")[1].split(" ")[0]
        views: list[Any] = [each for each in found.values() if isinstance(each, dict) and "tasks" in each]
        if not views:
            return call("check_background", task_id=of_child, wait_seconds=0)
        seen[:] = views
        if len(views) == 1:
            return call("check_background", task_id=task_id, reply="blue")
        return "I said blue."

    async with runtime(_deep(1, at_root), tools=[paint]) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("level 0")).outcome()
        await session.settled()
        [child] = seen[0]["tasks"]
        assert child["messages"][0]["text"] == "level 1"
        assert all(len(each["text"]) <= 400 for each in child["messages"])
        assert "[calls paint {}]" in str(child["messages"])
        [asks] = child["asks"]
        assert (asks["prompt"], asks["schema"]) == ("Which colour?", COLOURS)
        (task,) = [each for each in await outlast.tasks.list() if each.tool == "paint"]
        assert (task.state, task.result) == ("succeeded", "painted blue")
        assert task.request is not None
        assert task.request.closed is not None
        assert (task.request.closed.by, task.request.closed.by_kind) == ("the model of a parent session", "model")


async def test_a_question_two_levels_down_is_answered_at_the_root(runtime: Runtime) -> None:
    """B8, C3: a person finds it in the list of the root; a second answer is told whose was first."""
    model = _deep(2, lambda _said, _found: "Ask the person.")
    async with runtime(model, tools=[paint]) as outlast:
        session, task = await _asked(outlast)
        assert task.session_id != session.id
        await outlast.tasks.reply(task.id, "red", by="Ada")
        with pytest.raises(Conflict, match="already answered by Ada"):
            await outlast.tasks.reply(task.id, "blue", by="Bob")
        outcome = await session.settled()
        assert outcome is not None
        assert "painted red" in (outcome.text or "")
        ended = [each.data["task"]["state"] for each in await events_of(session, "task.ended")]
        assert ended == ["succeeded"]


@pytest.mark.parametrize("kind", ["approval", "connection"])
async def test_what_is_for_people_no_model_of_a_parent_gives(runtime: Runtime, kind: str) -> None:
    """B2, B8, A13, A17: nor the session's own; each is told to tell the user."""

    def push() -> str:
        raise AssertionError("nobody has said that it may")

    def step(messages: list[ModelMessage]) -> Any:
        said = last_user_text(messages)
        found = [str(each) for each in tool_returns(messages).values()]
        if any("only a person gives" in each for each in found):
            return "Tell the user."
        if said.startswith("answer"):
            return call("check_background", task_id=said.split()[-1], reply="yes")
        if said == "level 0":
            return "It goes on." if found else call("run_sub_session", prompt="level 1")
        return "It waits." if found else call("push")

    asks: Any = {"approve": True} if kind == "approval" else {"requires": {"connection": "github"}}
    keys = (Fernet.generate_key().decode(),)
    async with runtime(
        ScriptedModel(step), tools=[Tool(push, metadata=hints(**asks))], encryption_keys=keys
    ) as outlast:
        root, task = await _asked(outlast)
        child = await outlast.sessions.get(task.session_id)
        for session in (root, child):
            outcome = await (await session.send(f"answer {task.id}", when_busy="interrupt")).outcome()
            assert outcome.text == "Tell the user."
        assert (await outlast.tasks.get(task.id)).state == "awaiting_input"
        await outlast.tasks.cancel(task.id)


async def test_a_stranger_s_question_is_not_there(runtime: Runtime) -> None:
    """B2, P7: only questions of this session and of those that work for it can be answered by its model."""
    model = ScriptedModel(
        lambda messages: (
            "done"
            if any("There is no task" in str(each) for each in messages)
            else call("check_background", task_id=last_user_text(messages).split()[-1], reply="blue")
            if "answer" in last_user_text(messages)
            else "It asks."
            if tool_returns(messages)
            else call("paint")
        )
    )
    async with runtime(model, tools=[paint]) as outlast:
        one, other = await outlast.sessions.create(), await outlast.sessions.create()
        await (await one.send("paint")).outcome()
        [task] = (await outlast.tasks.requests()).items
        assert (await (await other.send(f"answer {task.id}")).outcome()).text == "done"
        assert (await outlast.tasks.get(task.id)).state == "awaiting_input"
