"""Questions: a tool asks, its call waits as a task, and goes on where it is with the first valid answer (B8, B2)."""

import asyncio
import threading
from typing import Any

import pytest
from pydantic_ai import Tool
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolReturnPart

import outlast as public
from outlast import Outlast, Session, Task, hints
from outlast.errors import Conflict, InvalidInput
from outlast.testing import ScriptedModel, call
from outlast.wire.task import ClosedRequest
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.background import stored_task, task_that
from tests.support.turns.runtime import Runtime, events_of, scripted

COLOURS = {"type": "string", "enum": ["red", "blue"]}


async def paint() -> str:
    return f"painted {await public.ask('Which colour?')}"


def paint_sync() -> str:
    assert threading.current_thread() is not threading.main_thread()
    return f"painted {public.ask_sync('Which colour?')}"


WAYS: dict[str, Any] = {"async": paint, "sync": paint_sync}


def _model(*more: Any) -> ScriptedModel:
    return scripted(call("paint", call_id="c1"), "It asks you.", *(more or ("I see.",)))


def _tool(way: str = "async", **said: Any) -> Tool[Any]:
    return Tool(WAYS[way], name="paint", metadata=hints(**said))


def _replying(tool: str, *said: str) -> ScriptedModel:
    """Calls the tool, gives its task these answers, and says the last one."""

    def step(messages: list[ModelMessage]) -> Any:
        answered = sum(isinstance(each, ModelResponse) for each in messages)
        if answered == 0:
            return call(tool, call_id="c1")
        if answered >= len(said):
            return said[-1]
        parts = [part for each in messages if isinstance(each, ModelRequest) for part in each.parts]
        returned = [part for part in parts if isinstance(part, ToolReturnPart) and part.tool_call_id == "c1"]
        handle: Any = returned[0].content
        return call("check_background", task_id=handle["task_id"], reply=said[answered - 1])

    return ScriptedModel(step)


async def _asked(outlast: Outlast[Any, Any]) -> tuple[Session, Task]:
    session = await outlast.sessions.create()
    outcome = await (await session.send("paint")).outcome()
    assert outcome.text == "It asks you."
    [told] = outcome.calls
    assert (told.result["awaiting"], told.result["question"]) == ("question", "Which colour?")
    [task] = (await outlast.tasks.requests(session_id=session.id)).items
    assert (told.result["task_id"], task.state) == (task.id, "awaiting_input")
    assert (await stored_task(outlast, task.id)).worker_id is not None
    return session, task


def prompt_of(task: Task) -> str | None:
    return None if task.request is None else task.request.prompt


def closed_of(task: Task) -> ClosedRequest:
    assert task.request is not None
    assert task.request.closed is not None
    return task.request.closed


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("said", [{}, {"budget": None}], ids=["with a budget", "without"])
async def test_an_answer_lets_the_tool_go_on(runtime: Runtime, way: str, said: dict[str, Any]) -> None:
    """B8: the call is parked at once whatever its budget; the tool gets the value, and its end is told."""
    async with runtime(_model(), tools=[_tool(way, **said)]) as outlast:
        session, task = await _asked(outlast)
        answered = await outlast.tasks.reply(task.id, "red", by="Ada")
        assert closed_of(answered).by == "Ada"
        ended = await outlast.tasks.wait(task.id, seconds=20)
        assert (ended.state, ended.result, ended.attempt) == ("succeeded", "painted red", 1)
        outcome = await session.settled()
        assert outcome is not None
        assert outcome.text == "I see."
        [opened] = await events_of(session, "request.opened")
        [closed] = await events_of(session, "request.closed")
        assert (closed.data["request_id"], closed.data["how"]) == (opened.data["request"]["id"], "answered")
        assert not [each for each in await events_of(session, "input.delivered") if each.data["kind"] == "request"]


async def test_the_first_valid_answer_wins(runtime: Runtime) -> None:
    """B8: what does not fit is refused and leaves the question open; a later answer is told whose was first."""

    async def paint() -> str:
        return f"painted {await public.ask('Which colour?', COLOURS)}"

    async with runtime(_model(), tools=[paint]) as outlast:
        _, task = await _asked(outlast)
        with pytest.raises(InvalidInput, match="does not fit"):
            await outlast.tasks.reply(task.id, "green")
        both = [outlast.tasks.reply(task.id, each, by=each) for each in ("red", "blue")]
        came_to = await asyncio.gather(*both, return_exceptions=True)
        [lost] = [each for each in came_to if isinstance(each, BaseException)]
        [won] = [each for each in came_to if isinstance(each, Task)]
        first = closed_of(won).by
        assert isinstance(lost, Conflict)
        assert f"already answered by {first}" in str(lost)
        assert (await outlast.tasks.wait(task.id, seconds=20)).result == f"painted {first}"


async def test_the_model_answers(runtime: Runtime) -> None:
    """B2, B8: with check_background; what does not fit is told, and the question stays open."""

    async def paint() -> str:
        return f"painted {await public.ask('Which colour?', COLOURS)}"

    model = _replying("paint", "green", "blue", "Answered.")
    async with runtime(model, tools=[paint]) as outlast:
        session = await outlast.sessions.create()
        outcome = await (await session.send("paint")).outcome()
        _, refused, taken = outcome.calls
        assert "does not fit" in refused.result
        assert taken.result["message"].startswith("Answered")
        [task] = await session.tasks()
        ended = await outlast.tasks.wait(task.id, seconds=20)
        assert ended.result == "painted blue"
        assert (closed_of(ended).by, closed_of(ended).by_kind) == ("the model", "model")


async def test_no_model_gives_an_approval(runtime: Runtime) -> None:
    """B2, B8: that is refused with what to do."""

    def pay() -> str:
        raise AssertionError("it was never approved")

    model = _replying("pay", "yes", "Tell me.")
    async with runtime(model, tools=[Tool(pay, metadata=hints(approve=True))]) as outlast:
        outcome = await (await (await outlast.sessions.create()).send("pay")).outcome()
        assert "only a person gives: tell the user" in outcome.calls[1].result


async def test_a_call_asks_one_question_after_the_other(runtime: Runtime) -> None:
    """B8: also when its tool asks two at once; of the second one the model hears by a notice."""

    async def paint() -> str:
        return " on ".join(await asyncio.gather(public.ask("Which colour?"), public.ask("Which wall?")))

    async with runtime(_model("It asks more.", "I see."), tools=[paint]) as outlast:
        session, task = await _asked(outlast)
        await outlast.tasks.reply(task.id, "red")
        second = await task_that(session, lambda each: prompt_of(each) == "Which wall?")
        assert second.state == "awaiting_input"
        await outlast.tasks.reply(task.id, "the left one")
        assert (await outlast.tasks.wait(task.id, seconds=20)).result == "red on the left one"
        await session.settled()
        [notice] = [each for each in await events_of(session, "input.delivered") if each.data["kind"] == "request"]
        assert "Which wall?" in notice.data["text"]


@pytest.mark.parametrize("way", WAYS)
async def test_a_cancel_ends_the_wait(runtime: Runtime, way: str) -> None:
    """B8, cancel: the request is closed, and a later answer is told why."""
    async with runtime(_model(), tools=[_tool(way)]) as outlast:
        _, task = await _asked(outlast)
        await outlast.tasks.cancel(task.id)
        assert (await outlast.tasks.wait(task.id, seconds=20)).state == "canceled"
        with pytest.raises(Conflict, match="Its task has ended: it was canceled"):
            await outlast.tasks.reply(task.id, "red")


async def test_a_tool_that_no_longer_waits_takes_its_question_back(runtime: Runtime) -> None:
    """B8: it goes on without an answer, and one that comes later is told so."""
    go_on = asyncio.Event()

    async def paint() -> str:
        asking = asyncio.create_task(public.ask("Which colour?"))
        await go_on.wait()
        asking.cancel()
        await asyncio.wait({asking})
        return "painted nothing"

    async with runtime(_model(), tools=[paint]) as outlast:
        _, task = await _asked(outlast)
        go_on.set()
        assert (await outlast.tasks.wait(task.id, seconds=20)).result == "painted nothing"
        with pytest.raises(Conflict, match="no longer waits"):
            await outlast.tasks.reply(task.id, "red")


async def test_waiting_takes_none_of_the_calls_time(runtime: Runtime) -> None:
    """B8, A1: neither its deadline nor that of its progress counts while somebody is asked."""
    tool = _tool(deadline=1.5, progress_deadline=0.3, budget=0.5)
    async with runtime(_model(), tools=[tool]) as outlast:
        _, task = await _asked(outlast)
        await asyncio.sleep(1.8)  # past both deadlines: nothing may happen meanwhile
        assert (await outlast.tasks.get(task.id)).state == "awaiting_input"
        answered = await outlast.tasks.reply(task.id, "red")
        assert answered.deadline_at is not None
        assert (await outlast.tasks.wait(task.id, seconds=20)).result == "painted red"


async def test_a_task_that_waits_takes_no_place(runtime: Runtime) -> None:
    """B8, B5: of its session, its owner or its worker; it goes on without queueing, also when all are taken."""
    gate, caps = (
        Checkpoint(),
        dict[str, Any]({"max_spawned_per_session": 1, "max_spawned_per_owner": 1, "max_tasks_per_worker": 1}),
    )

    async def ask(number: int) -> str:
        return f"{number}: {await public.ask('Which colour?')}"

    async def work() -> str:
        await gate()
        return "worked"

    async with runtime(scripted("Heard."), tools=[ask, work], **caps) as outlast:
        session = await outlast.sessions.create()
        asking = [await session.spawn("ask", {"number": each}, wake="silent") for each in range(3)]
        for task in asking:
            await task_that(session, lambda each, id_=task.id: each.id == id_ and each.state == "awaiting_input")
        working = await session.spawn("work", {}, wake="silent")
        await gate.reached()
        for number, task in reversed(list(enumerate(asking))):
            await outlast.tasks.reply(task.id, "red")
            assert (await outlast.tasks.wait(task.id, seconds=20)).result == f"{number}: red"
        assert (await outlast.tasks.get(working.id)).state == "running"
        gate.open()
        assert (await outlast.tasks.wait(working.id, seconds=20)).state == "succeeded"


async def test_a_tool_that_waits_has_the_drain_time(runtime: Runtime) -> None:
    """B8: an answer that comes while its worker leaves is heard there; without one the drain is over."""
    closing = asyncio.Event()

    async def answer(task_id: str) -> None:
        await closing.wait()
        await tasks.reply(task_id, "red")

    async with runtime(_model(), tools=[_tool()], drain=20) as outlast:
        (_, task), tasks = await _asked(outlast), outlast.tasks
        answering = asyncio.create_task(answer(task.id))
        asyncio.get_running_loop().call_later(0.05, closing.set)  # by then the runtime is being left
    await answering
    async with runtime(scripted("I see."), tools=[_tool()]) as outlast:
        ended = await outlast.tasks.get(task.id)
        assert (ended.state, ended.result, ended.attempt) == ("succeeded", "painted red", 1)


@pytest.mark.parametrize("way", WAYS)
async def test_a_question_survives_a_restart_where_the_tool_may_run_again(runtime: Runtime, way: str) -> None:
    """B8, kill: answers that were given are there, and the open question keeps its id."""

    async def paint() -> str:
        colour = await public.ask("Which colour?")
        return f"{colour} on {await public.ask('Which wall?')}"

    def paint_sync() -> str:
        colour = public.ask_sync("Which colour?")
        return f"{colour} on {public.ask_sync('Which wall?')}"

    tool = Tool(paint if way == "async" else paint_sync, name="paint", metadata=hints(idempotent=True))
    async with runtime(_model("It asks more.", "I see."), tools=[tool]) as outlast:
        session, task = await _asked(outlast)
        await outlast.tasks.reply(task.id, "red")
        open_one = await task_that(session, lambda each: prompt_of(each) == "Which wall?")
    async with runtime(scripted(*["I see."] * 4), tools=[tool]) as outlast:
        session = await outlast.sessions.get(session.id)
        again = await task_that(session, lambda each: each.attempt == 2 and each.state == "awaiting_input")
        assert open_one.request is not None
        assert again.request is not None
        assert again.request.id == open_one.request.id
        await outlast.tasks.reply(task.id, "the left one")
        assert (await outlast.tasks.wait(task.id, seconds=20)).result == "red on the left one"


@pytest.mark.parametrize("way", WAYS)
async def test_else_its_end_is_told_truthfully(runtime: Runtime, way: str) -> None:
    """B8, kill: interrupted, the request is closed, and a later answer is told why."""
    async with runtime(_model(), tools=[_tool(way)]) as outlast:
        _, task = await _asked(outlast)
    async with runtime(scripted("I see."), tools=[_tool(way)]) as outlast:
        ended = await outlast.tasks.wait(task.id, seconds=20)
        assert ended.error is not None
        assert ended.error["kind"] == "interrupted"
        with pytest.raises(Conflict, match="Its task has ended: It was running when its process ended"):
            await outlast.tasks.reply(task.id, "red")


async def test_outside_of_a_call_nobody_can_be_asked() -> None:
    with pytest.raises(public.OutlastError, match="outside of one"):
        await public.ask("Which colour?")
    with pytest.raises(public.OutlastError, match="outside of one"):
        public.ask_sync("Which colour?")
