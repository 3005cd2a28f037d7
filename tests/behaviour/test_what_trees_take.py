"""What a tree of sub-sessions takes: places of workers and owners, money, and room in the sessions above."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import Tool
from pydantic_ai.messages import ModelMessage

import outlast as public
from outlast import Outlast, Session
from outlast.errors import NotFound
from outlast.store.repositories import family
from outlast.testing import ScriptedModel, call, last_user_text, tool_returns
from outlast.testing.step import Step
from outlast.wire.task_state import TaskState
from tests.support.models.prices import PricedModel
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.runtime import Runtime

PATIENCE = 60.0


def answers(messages: list[ModelMessage]) -> list[Any]:
    return [*tool_returns(messages).values()]


def levels(deepest: int, *steps: Step, wait_seconds: float = 300) -> Callable[[list[ModelMessage]], Step]:
    """Sessions called "level 1", "level 2" … each give work to the next one; the last does the steps."""

    def script(messages: list[ModelMessage]) -> Step:
        said, found = last_user_text(messages), answers(messages)
        if "Background task" in said:
            return "told"
        level = int(said.removeprefix("level "))
        if level == deepest:
            return steps[len(found)] if len(found) < len(steps) else "bottom"
        given = call("run_sub_session", prompt=f"level {level + 1}", wait_seconds=wait_seconds)
        return f"from below: {found[-1].get('result')}" if found else given

    return script


async def child_of(outlast: Outlast[Any, Any], session: Session) -> Session:
    (found,) = await outlast.database.read(lambda connection: family.children(connection, [session.id]))
    return await outlast.sessions.get(found)


@pytest.mark.parametrize("places", ["max_turns_per_worker", "max_turns_per_owner"])
async def test_parents_that_wait_leave_their_places_to_those_below(runtime: Runtime, places: str) -> None:
    """C1, D13: with one place in all, three levels of which two wait come to their end."""
    limits: dict[str, Any] = {places: 1}
    async with runtime(ScriptedModel(levels(3)), **limits) as outlast:
        session = await outlast.sessions.create()
        outcome = await asyncio.wait_for(session.ask("level 1"), PATIENCE)
        assert outcome.text == "from below: from below: bottom"


async def test_two_calls_that_wait_give_the_place_back_with_the_last(runtime: Runtime) -> None:
    """C1, D13: that one of them has its answer does not keep the other one's child from its place."""
    here = Checkpoint()

    async def dig() -> str:
        await here()
        return "gold"

    def script(messages: list[ModelMessage]) -> Step:
        said, found = last_user_text(messages), answers(messages)
        if said == "parent":
            both = [call("run_sub_session", prompt=each, wait_seconds=300) for each in ("quick", "slow")]
            return " and ".join(str(each["result"]) for each in found) if found else both
        if said == "slow":
            return f"found {found[0]}" if found else call("dig")
        return "at once"

    async with runtime(ScriptedModel(script), tools=[Tool(dig)], budget=None, max_turns_per_worker=1) as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("parent")
        await asyncio.wait_for(here.reached(), PATIENCE)
        here.open()
        assert (await asyncio.wait_for(sent.outcome(), PATIENCE)).text == "at once and found gold"


async def test_one_that_is_asked_something_waits_no_longer(runtime: Runtime) -> None:
    """C3, B7: the question of one child is told at once, though the parent waits for it, and for another one."""
    here = Checkpoint()

    async def dig() -> str:
        await here()
        return "gold"

    async def wonder() -> str:
        return await public.ask("How deep?")

    def script(messages: list[ModelMessage]) -> Step:
        said, found = last_user_text(messages), answers(messages)
        if said in ("dig", "wonder"):
            return f"found {found[0]}" if found else call(said)
        if "How deep?" in said:
            return "It asks how deep."
        both = [call("run_sub_session", prompt=each, wait_seconds=300) for each in ("dig", "wonder")]
        return "Heard." if found else both

    async with runtime(ScriptedModel(script), tools=[Tool(dig), wonder], budget=None) as outlast:
        session = await outlast.sessions.create()
        outcome = await (await session.send("parent")).outcome(wait=PATIENCE)
        assert outcome.text == "It asks how deep."
        await session.stop(cascade=True)
        here.open()


async def test_a_waiting_turn_that_is_stopped_waits_no_longer(runtime: Runtime) -> None:
    """C1, D5, D13, cancel: the place that it left is not counted as left for ever."""
    here = Checkpoint()

    async def dig() -> str:
        await here()
        return "gold"

    async with runtime(
        ScriptedModel(levels(2, call("dig"))), tools=[Tool(dig)], budget=None, max_turns_per_worker=1
    ) as outlast:
        session = await outlast.sessions.create()
        await session.send("level 1")
        await asyncio.wait_for(here.reached(), PATIENCE)
        await session.stop(cascade=True)
        others = [await outlast.sessions.create() for _ in range(2)]
        sent = [await each.send("level 2") for each in others]
        here.open()
        for each in sent:
            assert (await each.outcome(wait=PATIENCE)).state == "completed"


async def test_what_the_levels_below_used_is_counted_above(runtime: Runtime) -> None:
    """C4, H1, H4: requests, tokens and the tools' own cost, each once; the owner has paid the same sum."""

    def dig() -> str:
        public.cost(700)
        return "gold"

    async with runtime(PricedModel(levels(3, call("dig")), dollars=0.01), tools=[dig]) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("level 1", wait=PATIENCE)
        (task,) = await session.tasks()
        (below,) = await (await child_of(outlast, session)).tasks()
        assert (task.usage is not None, below.usage is not None) == (True, True)
        assert task.usage
        assert below.usage
        assert (task.usage.requests, below.usage.requests) == (4, 2)
        paid = (await outlast.usage_of("local")).today
        assert below.usage.cost_microdollars is not None
        assert below.usage.cost_microdollars > 700
        assert task.usage.input_tokens + outcome.usage.input_tokens == paid.input_tokens
        assert (task.usage.cost_microdollars or 0) + (outcome.usage.cost_microdollars or 0) == paid.known_microdollars


async def test_what_was_used_before_a_stop_is_counted(runtime: Runtime) -> None:
    """C4, H1, cancel: of work that came to no answer too."""
    here = Checkpoint()

    async def dig() -> str:
        await here()
        return "gold"

    model = ScriptedModel(levels(2, call("dig"), wait_seconds=0))
    async with runtime(model, tools=[Tool(dig)], budget=None) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("level 1")).outcome()
        await asyncio.wait_for(here.reached(), PATIENCE)
        (task,) = await session.tasks()
        await outlast.tasks.cancel(task.id)
        task = await outlast.tasks.wait(task.id, seconds=PATIENCE)
        assert task.state is TaskState.CANCELED
        assert task.usage is not None
        assert task.usage.requests == 1


@pytest.mark.parametrize("is_idle", [False, True], ids=["in its turn", "between turns"])
async def test_the_parent_is_told_who_stopped_its_sub_session(runtime: Runtime, is_idle: bool) -> None:
    """C3, D5: with the name that was given, in the task and in what its model is told."""
    here = Checkpoint()

    async def dig() -> str:
        await here()
        return "gold"

    digging = Tool(dig, metadata=public.hints(budget=0.01 if is_idle else None))
    model = ScriptedModel(levels(2, call("dig"), wait_seconds=0))
    async with runtime(model, tools=[digging]) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("level 1")).outcome()
        await asyncio.wait_for(here.reached(), PATIENCE)
        child = await child_of(outlast, session)
        if is_idle:
            await child.result(wait=PATIENCE)
        await child.stop(by="Ada")
        (task,) = await session.tasks()
        task = await outlast.tasks.wait(task.id, seconds=PATIENCE)
        assert (task.state, task.detail) == (TaskState.CANCELED, "Ada stopped the sub-session.")
        await session.settled()
        assert "Ada stopped the sub-session." in last_user_text(model.requests[-1].messages)
        here.open()


async def test_so_many_sub_sessions_are_open_at_once(runtime: Runtime) -> None:
    """C4, failure: the next one is refused with those that are open, and there is room again when one has ended."""
    here = Checkpoint()

    async def dig() -> str:
        await here()
        return "gold"

    def script(messages: list[ModelMessage]) -> Step:
        said, found = last_user_text(messages), answers(messages)
        if "Background task" in said:
            return "told"
        if said == "child":
            return "done" if found else call("dig")
        if len(found) < 3:
            return call("run_sub_session", prompt="child", wait_seconds=0)
        return str(found[2])

    async with runtime(ScriptedModel(script), tools=[Tool(dig)], budget=None, max_sub_sessions=2) as outlast:
        session = await outlast.sessions.create()
        refused = (await (await session.send("parent")).outcome(wait=PATIENCE)).text or ""
        assert "2 sub-sessions and 2 tasks are open here already" in refused
        made = await session.tasks()
        assert len(made) == 2
        assert all(each.id in refused for each in made)
        here.open()
        for each in made:
            await outlast.tasks.wait(each.id, seconds=PATIENCE)


async def test_a_copy_of_a_parent_has_no_sub_sessions(runtime: Runtime) -> None:
    """C1, D10: and going on with one of the first's is refused."""
    chosen: dict[str, str] = {}

    def script(messages: list[ModelMessage]) -> Step:
        if last_user_text(messages) == "go on":
            found = answers(messages)
            asked = call("run_sub_session", prompt="level 2", session_id=chosen["id"], call_id="again")
            return str(found[-1]) if len(found) == 2 else asked
        return plain(messages)

    plain = levels(2)
    async with runtime(ScriptedModel(script)) as outlast:
        session = await outlast.sessions.create()
        await session.ask("level 1")
        chosen["id"] = (await child_of(outlast, session)).id
        copy = await outlast.sessions.fork(session.id)
        assert await outlast.sessions.list(parent=copy.id) == []
        assert "There is no such sub-session" in ((await copy.ask("go on")).text or "")
        await outlast.sessions.delete(copy.id)
        assert (await outlast.sessions.get(chosen["id"])).parent_id == session.id
        await outlast.sessions.delete(session.id)
        with pytest.raises(NotFound):
            await outlast.sessions.get(chosen["id"])
