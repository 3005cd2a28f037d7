"""Two things at the same moment: each race is forced, and whoever commits first is right."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic_ai import Tool
from pydantic_ai.messages import ModelMessage

from outlast import Outlast, hints
from outlast.events.types import EventType
from outlast.ids import TurnId
from outlast.runs import worker
from outlast.store import tables
from outlast.store.outbox import Work
from outlast.store.repositories import turns
from outlast.store.unit import Unit
from outlast.testing import ScriptedModel, Step, call, gate, texts_seen, tool_returns
from outlast.wire.task_state import TaskState
from tests.support.logs.histories import check_history, return_of
from tests.support.moments.checkpoint import Checkpoint
from tests.support.moments.commits import HeldCommits, let_run
from tests.support.turns.background import (
    BUDGET,
    handle_of,
    nth_event,
    only_task,
    parked_session,
    task_that,
    wakes_seen,
    woken_turns,
)
from tests.support.turns.runtime import Runtime, events_of, scripted, wait_for_event

LONG = timedelta(seconds=30)


class Survey:
    """A slow tool, and what became of its code."""

    def __init__(self) -> None:
        self.here = Checkpoint()
        self.ended = asyncio.Event()
        self.was_canceled = False

    async def survey(self) -> str:
        try:
            await self.here()
        except asyncio.CancelledError:
            self.was_canceled = True
            raise
        finally:
            self.ended.set()
        return "2.4 m"


def steps() -> ScriptedModel:
    return scripted(call("survey", call_id="c1"), "It goes on.", "I see.")


@asynccontextmanager
async def held(
    runtime: Runtime, survey: Survey, model: ScriptedModel | None = None, **settings: Any
) -> AsyncGenerator[tuple[Outlast[Any, Any], HeldCommits]]:
    options: dict[str, Any] = {"budget": BUDGET, "wake_company": timedelta(0), **settings}
    async with runtime(model or steps(), tools=[survey.survey], **options) as outlast:
        yield outlast, HeldCommits(outlast.database)


async def test_a_call_that_ends_while_it_is_parked_is_a_task_that_ends(runtime: Runtime) -> None:
    """B1, P3: once begun, parking is decided; the end that arrives meanwhile is told right after, once."""
    survey = Survey()
    async with held(runtime, survey) as (outlast, commits):
        commits.hold("park")
        session = await outlast.sessions.create()
        await session.send("Go.")
        await commits.reached("park")
        survey.here.open()
        await survey.ended.wait()
        await let_run()
        commits.release("park")
        await session.settled()
        task = await only_task(session)
        assert (task.state, task.result) == (TaskState.SUCCEEDED, "2.4 m")
        assert (await handle_of(session, "c1"))["task_id"] == task.id
        assert len(await wakes_seen(session)) == 1
        check_history(await session.history())


async def test_a_call_that_ends_before_parking_begins_is_no_task(runtime: Runtime) -> None:
    """B1, A4: done before the transaction begins, its result is returned."""
    survey = Survey()
    async with held(runtime, survey, budget=None) as (outlast, _):
        session = await outlast.sessions.create()
        sent = await session.send("Go.")
        await survey.here.reached()
        survey.here.open()
        await sent.outcome()
        assert return_of("c1", await session.history()).content == "2.4 m"
        assert await session.tasks() == []


async def test_a_turn_that_was_asked_to_stop_cannot_park(runtime: Runtime) -> None:
    """B1, A5, P6: Stop commits first; the call is cancelled with its turn."""
    survey = Survey()
    async with held(runtime, survey, budget=timedelta(seconds=0.3)) as (outlast, commits):
        session = await outlast.sessions.create()
        await session.send("Go.")
        await survey.here.reached()
        commits.hold("hold")
        stopping = asyncio.create_task(session.stop())
        await commits.reached("hold")
        # The writer is held until after the budget: the park comes next, and finds the stop.
        await asyncio.wait({stopping}, timeout=0.5)
        commits.release("hold")
        outcome = await stopping
        assert outcome is not None
        assert outcome.state == "stopped"
        assert survey.was_canceled
        assert await session.tasks() == []
        assert return_of("c1", await session.history()).outcome == "interrupted"


async def test_a_call_parked_just_before_stop_goes_on(runtime: Runtime) -> None:
    """B1, D5, P6: the park commits first; the model is told the handle, and the task goes on."""

    def reply(messages: list[ModelMessage]) -> Step:
        if not tool_returns(messages):
            return call("survey", call_id="c1")
        # Before the end of the task is told, the turn is still at its second request when it learns of the stop.
        return "I see." if len(texts_seen(messages)) > 1 else [gate(asyncio.Event()), "Never said."]

    survey = Survey()
    async with held(runtime, survey, ScriptedModel(reply)) as (outlast, commits):
        commits.hold("park")
        session = await outlast.sessions.create()
        await session.send("Go.")
        await commits.reached("park")
        stopping = asyncio.create_task(session.stop())
        await let_run()
        commits.release("park")
        outcome = await stopping
        assert outcome is not None
        assert outcome.state == "stopped"
        task = await only_task(session)
        assert task.state is TaskState.RUNNING
        assert (await handle_of(session, "c1"))["task_id"] == task.id
        survey.here.open()
        await task_that(session, lambda task: task.state is TaskState.SUCCEEDED)
        assert not survey.was_canceled
        await session.resume()
        await session.settled()
        assert len(await wakes_seen(session)) == 1


async def test_a_lost_attempt_cannot_park_and_its_call_is_stopped(runtime: Runtime) -> None:
    """P5: a superseded attempt changes nothing, and learns that it must stop."""
    survey = Survey()
    # Nothing else is written meanwhile: parking is what finds out.
    async with held(runtime, survey, coalesce=LONG) as (outlast, commits):
        commits.hold("journal")
        session = await outlast.sessions.create()
        sent = await session.send("Go.")
        turn_id = (await wait_for_event(session, "turn.started")).turn_id
        assert turn_id is not None
        await commits.reached("journal")
        taking = asyncio.create_task(outlast.database.transaction(lambda unit: take_over(unit, turn_id), name="take"))
        await let_run()
        commits.release("journal")
        await taking
        await asyncio.wait_for(survey.ended.wait(), 60)
        assert survey.was_canceled
        assert await session.tasks() == []
        assert sent.input.id


def take_over(unit: Unit, turn_id: TurnId) -> None:
    """What another worker does that believes this one dead, without ever running it."""
    turns.set_values(unit, turn_id, attempt=2, worker_id="wrk_other")


async def test_a_success_that_commits_before_the_cancel_is_the_truth(runtime: Runtime) -> None:
    """B2, B6, P3: asked too late, the task stays what it is."""
    survey = Survey()
    async with held(runtime, survey) as (outlast, commits):
        session, task = await parked_session(outlast)
        commits.hold("task.end")
        survey.here.open()
        await commits.reached("task.end")
        canceling = asyncio.create_task(outlast.tasks.cancel(task.id))
        await let_run()
        commits.release("task.end")
        task = await canceling
        assert (task.state, task.result, task.is_cancel_requested) == (TaskState.SUCCEEDED, "2.4 m", False)
        await session.settled()
        assert len(await events_of(session, "task.ended")) == 1
        assert len(await wakes_seen(session)) == 1


async def test_a_success_after_the_cancel_was_asked_is_the_truth_too(runtime: Runtime) -> None:
    """B6, DESIGN part 7: cancel is a timestamp; a task asked to cancel may still succeed."""
    survey = Survey()
    async with held(runtime, survey) as (outlast, commits):
        session, task = await parked_session(outlast)
        commits.hold("cancel")
        canceling = asyncio.create_task(outlast.tasks.cancel(task.id))
        await commits.reached("cancel")
        survey.here.open()
        await survey.ended.wait()
        commits.release("cancel")
        task = await canceling
        assert (task.state, task.result) == (TaskState.SUCCEEDED, "2.4 m")
        assert task.is_cancel_requested
        assert not survey.was_canceled
        await session.settled()
        assert len(await wakes_seen(session)) == 1


async def test_a_success_that_commits_before_the_deadline_stands(runtime: Runtime) -> None:
    """DESIGN part 7, P3: the first commit wins; the deadline that comes second changes nothing."""
    survey = Survey()
    async with held(runtime, survey, call_deadline=timedelta(seconds=0.3)) as (outlast, commits):
        session, _ = await parked_session(outlast)
        commits.hold("task.end")
        survey.here.open()
        await commits.reached("task.end")
        # The writer is held until the deadline has passed and wants to commit as well.
        await asyncio.wait({asyncio.ensure_future(session.settled())}, timeout=0.4)
        commits.release("task.end")
        await session.settled()
        task = await only_task(session)
        assert (task.state, task.result, task.error) == (TaskState.SUCCEEDED, "2.4 m", None)
        assert task.late_outcome is None, "a deadline is no outcome"
        assert len(await wakes_seen(session)) == 1


async def test_a_deadline_that_commits_first_wins_and_the_success_is_late(runtime: Runtime) -> None:
    """DESIGN part 7, P3, P5: told once as `timeout`; what the code reached is kept and wakes nobody."""
    survey = Survey()
    async with held(runtime, survey, call_deadline=timedelta(seconds=0.2)) as (outlast, commits):
        session, _ = await parked_session(outlast)
        commits.hold("task.end")
        await commits.reached("task.end")
        survey.here.open()
        await survey.ended.wait()
        await let_run()
        commits.release("task.end")
        task = await task_that(session, lambda task: task.is_over)
        assert task.error is not None
        assert (task.state, task.error["kind"]) == (TaskState.FAILED, "timeout")
        await session.settled()
        while True:
            late = (await only_task(session)).late_outcome
            if late is not None:
                break
        assert (late["state"], late["result"]) == ("succeeded", "2.4 m")
        assert await woken_turns(session) == 1
        assert len(await events_of(session, "task.ended")) == 1


async def test_a_wake_that_commits_before_the_turn_ends_is_delivered_in_it(runtime: Runtime) -> None:
    """P3, DESIGN part 5: there is no window between the last look and the end."""
    survey, speaking = Survey(), Checkpoint()
    model = scripted(call("survey"), [gate(speaking), "It goes on."], "I see.")
    async with held(runtime, survey, model) as (outlast, commits):
        session = await outlast.sessions.create()
        sent = await session.send("Go.")
        await speaking.reached()
        commits.hold("task.end")
        survey.here.open()
        await commits.reached("task.end")
        speaking.open()
        await let_run()
        commits.release("task.end")
        assert (await sent.outcome()).text == "I see."
        await session.settled()
        assert (await woken_turns(session), len(await wakes_seen(session))) == (0, 1)


async def test_a_wake_that_commits_after_the_turn_ended_starts_the_next(runtime: Runtime) -> None:
    """P3, DESIGN part 5: the other order; the news is told once all the same."""
    survey = Survey()
    async with held(runtime, survey) as (outlast, commits):
        commits.hold("turn.end")
        session = await outlast.sessions.create()
        sent = await session.send("Go.")
        await commits.reached("turn.end")
        survey.here.open()
        await survey.ended.wait()
        await let_run()
        commits.release("turn.end")
        assert (await sent.outcome()).text == "It goes on."
        await session.settled()
        assert (await woken_turns(session), len(await wakes_seen(session))) == (1, 1)


async def test_a_wake_that_meets_stop_is_held(runtime: Runtime) -> None:
    """P3, D5: whichever commits first, the wake is kept and nothing starts until the owner goes on."""
    survey, speaking = Survey(), Checkpoint()
    model = scripted(call("survey"), [gate(speaking), "never"], "I see.")
    async with held(runtime, survey, model) as (outlast, commits):
        session = await outlast.sessions.create()
        await session.send("Go.")
        await speaking.reached()
        commits.hold("hold")
        stopping = asyncio.create_task(session.stop())
        await commits.reached("hold")
        survey.here.open()
        await survey.ended.wait()
        await let_run()
        commits.release("hold")
        await stopping
        await task_that(session, lambda task: task.is_over)
        assert await woken_turns(session) == 0
        turn = await session.resume()
        assert turn is not None
        assert (await turn.outcome()).text == "I see."
        assert len(await wakes_seen(session)) == 1


def waits_for_it(messages: list[ModelMessage]) -> Any:
    returns: dict[str, Any] = dict(tool_returns(messages))
    if "c1" not in returns:
        return call("survey", call_id="c1")
    if "q0" not in returns:
        return call("check_background", task_id=returns["c1"]["task_id"], wait_seconds=300, call_id="q0")
    return "I see."


async def test_what_check_background_told_is_not_told_by_a_wake(runtime: Runtime) -> None:
    """P3, B7: the wake is there first, and is withdrawn in the commit that carries the tool's answer."""
    survey = Survey()
    async with held(runtime, survey, ScriptedModel(waits_for_it)) as (outlast, commits):
        session = await outlast.sessions.create()
        sent = await session.send("Go.")
        await nth_event(session, "call.started", 2)
        commits.hold("task.end")
        survey.here.open()
        await commits.reached("task.end")
        assert await input_states(outlast) == ["delivered"]
        commits.release("task.end")
        assert (await sent.outcome()).text == "I see."
        await session.settled()
        assert await input_states(outlast) == ["delivered", "withdrawn"]
        assert await wakes_seen(session) == []


async def input_states(outlast: Outlast[Any, Any]) -> list[str]:
    query = sa.select(tables.inputs.c.state).order_by(tables.inputs.c.sequence)
    return await outlast.database.read(lambda connection: list(connection.execute(query).scalars()))


async def test_a_runtime_closed_between_the_answer_and_its_commit_tells_once(runtime: Runtime) -> None:
    """P3, B7: the tool's answer was not committed, so the next attempt gives it, and only there."""
    survey = Survey()
    answering = Checkpoint()

    def steps(messages: list[ModelMessage]) -> Any:
        step = waits_for_it(messages)
        return [gate(answering), step] if step == "I see." else step

    tool = Tool(survey.survey, metadata=hints(budget=0.02))
    async with runtime(ScriptedModel(steps), tools=[tool], drain=timedelta(0)) as outlast:
        session = await outlast.sessions.create()
        await session.send("Go.")
        await nth_event(session, "call.started", 2)
        survey.here.open()
        await answering.reached()
    answering.open()
    async with runtime(ScriptedModel(steps), tools=[tool]) as outlast:
        session = await outlast.sessions.get(session.id)
        outcome = await session.settled()
        assert outcome is not None
        assert outcome.text == "I see."
        answer: Any = return_of("q0", await session.history()).content
        assert answer["tasks"][0]["result"] == "2.4 m"
        assert await wakes_seen(session) == []
        assert await input_states(outlast) == ["delivered", "withdrawn"]


async def test_a_second_attempt_is_cancelled_where_it_runs(runtime: Runtime) -> None:
    """P6, B10: work that was run again after a restart is stopped like any other."""
    first, second = Survey(), Survey()
    again = hints(idempotent=True, budget=0.02)
    async with runtime(steps(), tools=[Tool(first.survey, metadata=again)]) as outlast:
        session, task = await parked_session(outlast)
    assert first.was_canceled
    async with runtime(["I see."], tools=[Tool(second.survey, metadata=again)]) as outlast:
        await second.here.reached()
        task = await outlast.tasks.cancel(task.id)
        assert (task.state, task.attempt) == (TaskState.CANCELED, 2)
        assert second.was_canceled
        await (await outlast.sessions.get(session.id)).settled()


async def test_a_wake_that_is_due_in_the_moment_in_which_the_next_one_hurries_it(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1, B8: a turn is hurried, while its own time has come and it is about to be claimed."""
    dig, survey, due = Checkpoint(), Survey(), asyncio.Event()
    begin, take = worker.Worker.begin, worker.Worker.take

    async def slow() -> str:
        await dig()
        return "dug"

    def begins(self: worker.Worker, work: Work, **options: Any) -> Any:
        due.set()
        return begin(self, work, **options)

    async def takes(self: worker.Worker, turn_id: TurnId) -> None:
        due.set()
        await take(self, turn_id)

    both = [call("survey", call_id="c1"), call("slow", call_id="c2")]
    options: dict[str, Any] = {"budget": BUDGET, "wake_company": timedelta(seconds=0.2)}
    model = scripted(both, "They go on.", "I see.", "And that.")
    async with runtime(model, tools=[survey.survey, slow], **options) as outlast:
        commits = HeldCommits(outlast.database)
        session = await outlast.sessions.create()
        await (await session.send("Go.")).outcome()
        monkeypatch.setattr(worker.Worker, "begin", begins)
        monkeypatch.setattr(worker.Worker, "take", takes)
        survey.here.open()
        await wait_for_event(session, EventType.TASK_ENDED)
        commits.hold("task.end")
        dig.open()
        await commits.reached("task.end")
        await due.wait()
        await let_run()
        commits.release("task.end")
        last = await session.settled(wait=10)
        assert last is not None
        assert (last.state, last.text) == ("completed", "I see.")
        assert len(await wakes_seen(session)) == 2
        check_history(await session.history())
