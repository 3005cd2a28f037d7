"""A call that outruns its budget is parked: the turn does not wait for it, and it goes on as a task."""

import asyncio
from collections.abc import Callable
from typing import Any

from pydantic_ai import Agent, Tool

import outlast as public
from outlast import Outlast, Session, hints
from outlast.testing import ScriptedModel, call, tool_returns

Start = Callable[..., Outlast[Any, Any]]


class Survey:
    """A tool that takes until somebody opens the gate."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()

    async def __call__(self) -> str:
        """Measure the river."""
        public.progress(1, 3, unit="rivers")
        public.output("the Elbe: 2.4 m\n")
        await self.gate.wait()
        return "2.4 m"

    def tool(self) -> Tool[Any]:
        """A budget of its own; the setting `budget` holds for tools without one."""
        return Tool(self.__call__, name="survey", metadata=hints(budget=0.02))


async def a_session_with_parked_work(outlast: Outlast[Any, Any]) -> Session:
    """The first turn ends although the survey does not."""
    session = await outlast.sessions.create()
    first = await (await session.send("How high is the river?")).outcome()
    assert (first.state, first.text) == ("completed", "I shall tell you.")
    return session


async def test_the_model_gets_a_handle_and_the_turn_goes_on(start: Start) -> None:
    """Within the budget nothing is different; past it the model is told that the call goes on as a task (A4, B1)."""
    survey, model = Survey(), ScriptedModel([call("survey"), "I shall tell you.", "It is 2.4 m."])
    async with start(Agent(model, tools=[survey.tool()])) as outlast:
        session = await a_session_with_parked_work(outlast)
        handle: Any = next(iter(tool_returns(model.requests[1].messages).values()))
        (task,) = await session.tasks()
        assert (handle["type"], handle["task_id"]) == ("background", task.id)
        assert (task.state, task.tool) == ("running", "survey")
        survey.gate.set()
        await session.settled()


async def test_its_end_wakes_the_session(start: Start) -> None:
    """The same commit ends the task and starts a turn, in which the model is told the result (B7, P3)."""
    survey, model = Survey(), ScriptedModel([call("survey"), "I shall tell you.", "It is 2.4 m."])
    async with start(Agent(model, tools=[survey.tool()])) as outlast:
        session = await a_session_with_parked_work(outlast)
        survey.gate.set()
        outcome = await session.settled()
        assert outcome is not None
        assert outcome.text == "It is 2.4 m."
        (task,) = await session.tasks()
        assert (task.state, task.result) == ("succeeded", "2.4 m")
    assert "2.4 m" in str(model.requests[2].messages[-1])


async def test_a_task_can_be_watched_and_waited_for(start: Start) -> None:
    """`progress` and `output` of a tool are there while it runs (A3, B4)."""
    survey, model = Survey(), ScriptedModel([call("survey"), "I shall tell you.", "It is 2.4 m."])
    async with start(Agent(model, tools=[survey.tool()])) as outlast:
        session = await a_session_with_parked_work(outlast)
        (task,) = await outlast.tasks.list(session_id=session.id)
        early = await outlast.tasks.wait(task.id, seconds=0)
        assert early.progress is not None
        assert (early.state, early.progress["current"]) == ("running", 1)
        survey.gate.set()
        assert (await outlast.tasks.wait(task.id)).result == "2.4 m"
        assert (await outlast.tasks.output(task.id)).text == "the Elbe: 2.4 m\n"
        await session.settled()


async def test_asking_waits_for_what_is_open(start: Start) -> None:
    """`ask` gives the last word: it waits for the turn, its tasks, and the turns that they wake (D7)."""
    survey, model = Survey(), ScriptedModel([call("survey"), "I shall tell you.", "It is 2.4 m."])
    async with start(Agent(model, tools=[survey.tool()])) as outlast:
        session = await outlast.sessions.create()
        early = await session.ask("How high is the river?", wait=1.0)
        assert early.text == "I shall tell you."
        survey.gate.set()
        last = await session.settled()
        assert last is not None
        assert last.text == "It is 2.4 m."


async def test_the_model_can_look_at_its_own_tasks(start: Start) -> None:
    """`check_background` lists, waits and cancels; what it has told is not told again by a wake (B2)."""
    survey = Survey()

    def steps(messages: Any) -> Any:
        returns: list[Any] = list(tool_returns(messages).values())
        if not returns:
            return call("survey")
        if len(returns) == 1:
            survey.gate.set()
            return call("check_background", task_id=returns[0]["task_id"], wait_seconds=30)
        return "It is 2.4 m."

    model = ScriptedModel(steps)
    async with start(Agent(model, tools=[survey.tool()])) as outlast:
        session = await outlast.sessions.create()
        assert (await session.ask("How high is the river?")).text == "It is 2.4 m."
        assert len((await session.turns()).items) == 1
