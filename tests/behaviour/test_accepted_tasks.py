"""Tasks that are accepted for a worker to start: kept, run once, their ends told once, however many come at once."""

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any, Self

import pytest
from pydantic_ai import Agent, FunctionToolset, ModelRetry, RunContext, Tool, ToolReturn
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ToolFailed

import outlast as public
from outlast import Outlast, Session, Task, ids
from outlast.agents.direct import DirectTools
from outlast.calls.intake import TaskIntake
from outlast.errors import NotFound
from outlast.ids import SessionId
from outlast.store.repositories import outputs
from outlast.store.repositories.stored_task import NewTask, WakePolicy
from outlast.store.repositories.stored_task import Task as StoredTask
from outlast.testing import ScriptedModel
from outlast.wire.task_state import TaskState
from tests.support.moments.checkpoint import Checkpoint
from tests.support.moments.commits import let_run
from tests.support.turns.background import wakes_seen
from tests.support.turns.calls import silent_call
from tests.support.turns.runtime import Runtime, events_of, scripted

PATIENCE = 60.0


def new(tool: str, *, wake: WakePolicy = WakePolicy.SILENT, may_run_again: bool = False, **args: Any) -> NewTask:
    return NewTask(
        ids.task_id(),
        title=tool,
        call_id=ids.reference_id(),
        tool=tool,
        agent="agent",
        spec={"args": args},
        wake=wake,
        may_run_again=may_run_again,
    )


async def ended(outlast: Outlast[Any, Any], task: StoredTask) -> Task:
    found = await outlast.tasks.wait(task.id, seconds=PATIENCE)
    assert found.is_over, found
    return found


async def told(session: Session, task: StoredTask) -> list[str]:
    """The states that the log tells of a task, in order."""
    return [each.data["task"]["state"] for each in await events_of(session) if each.task_id == task.id]


async def test_many_at_once_are_each_run_once_and_told_once(runtime: Runtime) -> None:
    """P1, P3: whoever shares a commit with others gets its own task, and that its own end."""
    ran: list[int] = []

    async def double(number: int) -> int:
        ran.append(number)
        return 2 * number

    async with runtime(tools=[Tool(double)]) as outlast:
        made = [await outlast.sessions.create() for _ in range(3)]
        intake = TaskIntake(outlast.database)
        asked = (intake.accept(made[at % 3].id, new("double", number=at)) for at in range(90))
        accepted = await asyncio.gather(*asked)
        results = [(await ended(outlast, each)).result for each in accepted]
        assert results == [2 * at for at in range(90)]
        assert sorted(ran) == list(range(90))
        for session in made:
            events = await events_of(session)
            types = Counter((each.task_id, each.type) for each in events if each.task_id)
            tasks = await session.tasks()
            assert len(tasks) == 30
            assert all(types[each.id, "task.created"] == types[each.id, "task.ended"] == 1 for each in tasks)
            numbers = [each.number for each in events]
            assert numbers == sorted(set(numbers), key=lambda number: number or 0)


async def test_what_an_end_wakes_is_woken_once_beside_ends_that_wake_nobody(runtime: Runtime) -> None:
    """B7, P3."""

    async def double(number: int) -> int:
        return 2 * number

    async with runtime(scripted("Heard.", "Heard.", "Heard."), tools=[Tool(double)]) as outlast:
        session = await outlast.sessions.create()
        intake = TaskIntake(outlast.database)
        wanted = [
            new("double", number=at, wake=WakePolicy.ON_TERMINAL if at % 7 == 3 else WakePolicy.SILENT)
            for at in range(20)
        ]
        accepted = await asyncio.gather(*(intake.accept(session.id, each) for each in wanted))
        for each in accepted:
            await ended(outlast, each)
        await session.settled()
        seen = "\n".join(await wakes_seen(session))
        assert [seen.count(f'task_id="{each.id}"') for each in accepted] == [int(at % 7 == 3) for at in range(20)]


async def test_never_more_at_once_than_there_are_places(runtime: Runtime) -> None:
    """B5: the rest waits, is queued, and comes when a place is free."""
    here, running, most = asyncio.Semaphore(0), 0, 0

    async def work(number: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            await here.acquire()
        finally:
            running -= 1
        return number

    async with runtime(tools=[Tool(work)], max_tasks_per_worker=3) as outlast:
        session = await outlast.sessions.create()
        intake = TaskIntake(outlast.database)
        accepted = await asyncio.gather(*(intake.accept(session.id, new("work", number=at)) for at in range(10)))
        async with asyncio.timeout(PATIENCE):
            while running < 3:  # noqa: ASYNC110 - on the event loop
                await asyncio.sleep(0.01)
        await let_run()
        states = Counter(each.state for each in await outlast.tasks.list(state="open"))
        assert states == {TaskState.RUNNING: 3, TaskState.QUEUED: 7}
        for _ in accepted:
            here.release()
        assert [(await ended(outlast, each)).result for each in accepted] == list(range(10))
        assert most == 3


async def test_in_a_pause_they_wait(runtime: Runtime) -> None:
    """I3: accepted and kept; started when the pause is over."""

    async def note() -> str:
        return "noted"

    async with runtime(tools=[Tool(note)]) as outlast:
        session = await outlast.sessions.create()
        intake = TaskIntake(outlast.database)
        await outlast.pause()
        accepted = await asyncio.gather(*(intake.accept(session.id, new("note")) for _ in range(3)))
        assert {each.state for each in accepted} == {TaskState.QUEUED}
        await let_run()
        assert [await told(session, each) for each in accepted] == [["queued"]] * 3
        await outlast.unpause()
        assert [(await ended(outlast, each)).result for each in accepted] == ["noted"] * 3


async def test_a_cancel_at_any_moment_arrives(runtime: Runtime) -> None:
    """P6: before the task is claimed, while it is, before its code has begun, and after."""

    async def forever() -> str:
        await asyncio.Event().wait()
        return "never"

    async with runtime(tools=[Tool(forever)], max_tasks_per_worker=100) as outlast:
        session = await outlast.sessions.create()
        intake = TaskIntake(outlast.database)

        async def accept_and_cancel(ticks: int) -> TaskState:
            task = await intake.accept(session.id, new("forever"))
            for _ in range(ticks):
                await asyncio.sleep(0)
            return (await outlast.tasks.cancel(task.id, wait=PATIENCE)).state

        async with asyncio.timeout(PATIENCE):
            states = await asyncio.gather(*(accept_and_cancel(ticks) for ticks in range(40)))
        assert set(states) == {TaskState.CANCELED}


async def test_a_cancel_before_there_is_a_call_is_heard(runtime: Runtime) -> None:
    """P6: the task is claimed, and the agent's toolsets are still being opened."""
    opening = Checkpoint()

    class Slow(FunctionToolset[Any]):
        async def __aenter__(self) -> Self:
            await opening()
            return await super().__aenter__()

    async def forever() -> str:
        await asyncio.Event().wait()
        return "never"

    agent: Agent[Any, str] = Agent(ScriptedModel(["Done."]), toolsets=[Slow([forever])], name="agent")
    async with runtime(agent=agent) as outlast, asyncio.timeout(PATIENCE):
        session = await outlast.sessions.create()
        task = await TaskIntake(outlast.database).accept(session.id, new("forever"))
        await opening.reached()
        asked = await outlast.tasks.cancel(task.id, wait=0)
        assert (asked.state, asked.is_cancel_requested) == (TaskState.RUNNING, True)
        opening.open()
        assert (await ended(outlast, task)).state is TaskState.CANCELED


async def test_a_session_that_is_not_there_gets_no_task(runtime: Runtime) -> None:
    """P7: of several who ask at once, only the one that asked for it hears so."""

    async def note() -> str:
        return "noted"

    async with runtime(tools=[Tool(note)]) as outlast:
        session, gone = await outlast.sessions.create(), await outlast.sessions.create()
        await outlast.sessions.delete(gone.id)
        intake = TaskIntake(outlast.database)
        asked = (intake.accept(each, new("note")) for each in (session.id, gone.id, SessionId("ses_unknown")))
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(each) for each in answers] == [StoredTask, NotFound, NotFound]
        assert len(await outlast.tasks.list()) == 1


class Around(AbstractCapability[Any]):
    """Does nothing; it makes an agent one that is not plain."""


class Desk:
    name = "the desk"


async def text(about: str) -> str:
    return f"about {about}"


def in_a_thread(about: str) -> str:
    public.output(f"said in a thread of {about}")
    return f"thread of {about}"


async def with_deps(ctx: RunContext[Desk], about: str) -> dict[str, Any]:
    key = public.idempotency_key()
    assert key is not None
    return {"deps": ctx.deps.name, "tool": ctx.tool_name, "call": ctx.tool_call_id is not None, "about": about}


async def with_more(about: str) -> ToolReturn[str]:
    return ToolReturn(return_value=f"value of {about}", content="for the model", metadata={"for": "nobody"})


async def asks_again(about: str) -> str:
    raise ModelRetry(f"{about} is not there, name another one")


async def refuses(about: str) -> str:
    raise ToolFailed(f"{about} is closed")


async def breaks(about: str) -> str:
    raise RuntimeError(f"the password of {about}")


async def too_slow(about: str) -> str:
    await asyncio.Event().wait()
    return about


async def an_object(about: str) -> Any:
    return {"of": {about}, "at": b"bytes"}


TOOLS: list[Any] = [text, in_a_thread, with_deps, with_more, asks_again, refuses, breaks, an_object]


def agent(*, is_plain: bool) -> Agent[Desk, str]:
    return Agent(
        ScriptedModel(["Done."]),
        deps_type=Desk,
        tools=[*TOOLS, Tool(too_slow, timeout=0.05)],
        capabilities=[] if is_plain else [Around()],
        name="agent",
    )


@pytest.mark.parametrize("args", [{"about": "Oslo"}, {"about": 7}, {}])
async def test_a_tool_without_a_run_around_it_ends_as_it_does_in_one(runtime: Runtime, args: dict[str, Any]) -> None:
    """A1, A2: value, thread, deps, more than a value, asked again, refused, broken, too slow, bad arguments."""
    names = [each.__name__ for each in (*TOOLS, too_slow)] + ["not_there"]
    found: list[list[Any]] = []
    opened: list[str] = []

    class Open:
        def __init__(self, context: Any) -> None:
            pass

        async def __aenter__(self) -> Desk:
            opened.append("opened")
            return Desk()

        async def __aexit__(self, *_: object) -> None:
            opened.append("closed")

    for is_plain in (True, False):
        made = agent(is_plain=is_plain)
        assert (DirectTools(made).caller(silent_call("text")) is not None) is is_plain
        async with runtime(agent=made, deps=Open) as outlast:
            session = await outlast.sessions.create()
            intake = TaskIntake(outlast.database)
            ends: list[Any] = []
            for name in names:
                task = await ended(outlast, await intake.accept(session.id, new(name, **args)))
                said = await outlast.database.read(
                    lambda connection, task=task: outputs.read(connection, task.session_id, task.call_id or "")
                )
                ends.append((name, task.state, task.result, _without_reference(task.error), said.text))
            found.append(ends)
        assert opened == ["opened", "closed"] * len(names)
        opened.clear()
    assert found[0] == found[1]
    if args == {"about": "Oslo"}:
        assert [each[1].value for each in found[0]] == ["succeeded"] * 4 + ["failed"] * 3 + ["succeeded"] + [
            "failed"
        ] * 2


def _without_reference(error: dict[str, Any] | None) -> tuple[str, str] | None:
    """An internal error is known by a reference of its own."""
    return None if error is None else (error["kind"], error["message"].partition(" ref_")[0].partition("(ref")[0])


async def test_a_task_that_no_call_asked_for_has_its_own_output_and_result(runtime: Runtime) -> None:
    """B4: kept under its own id, and read like those of any other."""

    async def report() -> str:
        public.output("line one\n")
        return "x" * 100_000

    async with runtime(tools=[Tool(report)]) as outlast:
        session = await outlast.sessions.create()
        spawned = replace(new("report"), call_id=None)
        task = await ended(outlast, await TaskIntake(outlast.database).accept(session.id, spawned))
        assert task.state is TaskState.SUCCEEDED, task.error
        assert task.call_id is None
        assert (await outlast.tasks.output(task.id)).text == "line one\n"
        kept = await outlast.database.read(lambda connection: outputs.result_file(connection, session.id, task.id))
        assert kept is not None
