"""What events and answers tell of a task: all that a card of it shows."""

from dataclasses import replace

from pydantic_ai import Tool

import outlast as public
from outlast import hints
from outlast.store.repositories import task_snapshot
from outlast.testing import call
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.background import BUDGET, parked_session, stored_task, task_that
from tests.support.turns.runtime import Runtime, events_of, scripted


async def test_a_card_has_times_arguments_output_and_the_beginning_of_the_result(runtime: Runtime) -> None:
    """B1, K2: without a further question; long arguments are cut, and all of them are objects."""
    here = Checkpoint()

    async def survey(river: str, note: str) -> str:
        public.output(f"measuring {river}\n\x1b[2mdone with it\n")
        await here()
        return f"{note} " * 200

    steps = [call("survey", river="Elbe", note="n" * 500), "It goes on.", "I see."]
    tools = [Tool(survey, metadata=hints(group="rivers"))]
    async with runtime(scripted(*steps), tools=tools, budget=BUDGET) as outlast:
        session, task = await parked_session(outlast)
        assert task.args == {"river": "Elbe", "note": "n" * 500}
        [began] = await events_of(session, "call.started")
        assert began.data["args"] == task.args
        made = (await events_of(session, "task.created"))[0].data["task"]
        assert (made["args"]["river"], made["args"]["note"]) == ("Elbe", "n" * 119 + "…")
        assert (made["group"], made["needs"]) == ("rivers", None)
        assert (made["worker_id"], made["created_at"]) == (task.worker_id, task.created_at.isoformat())
        assert made["deadline_at"] is not None
        assert "ended_at" not in made
        assert "result_preview" not in made
        here.open()
        task = await task_that(session, lambda each: each.is_over)
        assert (task.output_size, task.last_line) == (len("measuring Elbe\n\x1b[2mdone with it\n"), "[2mdone with it")
        told = (await events_of(session, "task.ended"))[-1].data["task"]
        assert len(told["result_preview"]) == 300
        assert task.ended_at is not None
        assert (told["output_size"], told["last_line"]) == (task.output_size, task.last_line)
        assert told["ended_at"] == task.ended_at.isoformat()
        assert [each.id for each in await outlast.tasks.list()] == [task.id]


async def test_a_card_has_nothing_that_no_event_tells(runtime: Runtime) -> None:
    """K6, B4: that code heeded its cancel at last is kept and not told, so nobody sees it."""
    here = Checkpoint()

    async def survey() -> str:
        await here()
        return "done"

    async with runtime(scripted(call("survey"), "It goes on.", "I see."), tools=[survey], budget=BUDGET) as outlast:
        session, task = await parked_session(outlast)
        here.open()
        await task_that(session, lambda each: each.is_over)
        stored = await stored_task(outlast, task.id)
        for late, shown in (({"state": "canceled"}, None), ({"state": "succeeded"}, {"state": "succeeded"})):
            assert task_snapshot.of(replace(stored, late_outcome=late)).get("late_outcome") == shown
