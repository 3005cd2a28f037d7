"""External operations: a tool sets work going elsewhere, and whoever does it says how it ended (B9)."""

import asyncio
import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic_ai import ModelMessage, Tool
from pydantic_ai.exceptions import ModelRetry, ToolFailed

import outlast as public
from fuzz import nasty
from outlast import Outcome, Outlast, Session, hints
from outlast.errors import Conflict, InvalidInput, NotFound, NotStarted
from outlast.store.tables import metadata
from outlast.testing import ScriptedModel, call
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.background import BUDGET, nth_event, only_task, stored_task, task_that, wakes_seen
from tests.support.turns.runtime import Runtime, events_of, scripted

URL = "https://agents.example.org/base/"


class Outside:
    """Somebody else's service: keeps what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.tasks: list[str] = []

    async def build(self, kind: str = "house") -> dict[str, str]:
        async with public.external(deadline=timedelta(hours=2), title=f"Build a {kind}") as op:
            self.asked.append(op.url)
            self.tasks.append(op.task_id)
        return {"order": "4711"}


async def first_turn(session: Session, text: str) -> Outcome:
    """The turn itself, and not what comes of the operations that it opens."""
    return await (await session.send(text)).outcome()


async def a_woken_turn(session: Session) -> None:
    """Until the turn after the first one has ended."""
    await nth_event(session, "turn.completed", 2)


async def test_the_completion_wakes_the_session(runtime: Runtime) -> None:
    """B9: task and URL are there before the block begins; the tool's value is the result, with the task's id."""
    outside = Outside()
    there: list[str] = []

    async def build() -> str:
        async with public.external(title="Build") as op:
            there.append((await seen.tasks.get(op.task_id)).state.value)
            outside.asked.append(op.url)
            assert (op.is_new, op.token in op.url) == (True, True)
        return "ordered"

    async with runtime(scripted(call("build"), "Ordered.", "It stands."), tools=[build], public_url=URL) as seen:
        session = await seen.sessions.create()
        outcome = await first_turn(session, "Build.")
        task = await only_task(session)
        assert there == ["running"]
        assert re.fullmatch(rf"{URL}v1/tasks/{task.id}/complete\?token=olt_[\w-]{{43}}", outside.asked[0])
        [told] = outcome.calls
        assert told.result == {
            "type": "external",
            "task_ids": [task.id],
            "result": "ordered",
            "message": f"It goes on elsewhere, as task {task.id}. Its end will be told to you here.",
        }
        assert (task.kind, task.state, task.title) == ("external", "running", "Build")
        assert (await stored_task(seen, task.id)).worker_id is None
        done = await seen.tasks.complete(task.id, result={"rooms": 4})
        assert (done.applied, done.task.state, done.task.result) == (True, "succeeded", {"rooms": 4})
        await a_woken_turn(session)
        [wake] = await wakes_seen(session)
        assert '{"rooms":4}' in wake


async def test_a_sync_tool_opens_one_too(runtime: Runtime) -> None:
    """B9: it waits in its own thread."""

    def build() -> str:
        with public.external() as op:
            assert op.url.startswith(URL)
        with public.external(title="second") as second:
            assert second.withdraw()
            assert not second.withdraw()
        return "ordered"

    async def wrong() -> str:
        with public.external():
            return ""

    async with runtime(
        scripted(call("build"), call("wrong"), "Ordered."), tools=[build, wrong], public_url=URL
    ) as outlast:
        session = await outlast.sessions.create()
        outcome = await first_turn(session, "Build.")
        first, second = sorted(await session.tasks(), key=lambda each: each.title)
        assert [(each.title, each.state) for each in (first, second)] == [("build", "running"), ("second", "canceled")]
        assert outcome.calls[0].result["task_ids"] == [first.id], "what was withdrawn is not named"
        assert await wakes_seen(session) == []
        assert "internal error" in str(outcome.calls[1].result)


async def test_outside_of_a_tool_there_is_none(runtime: Runtime) -> None:
    """B9: and a deadline that has passed is refused."""
    with pytest.raises(NotStarted):
        async with public.external():
            pass
    with pytest.raises(InvalidInput):
        public.external(deadline=0)


async def test_without_an_address_it_says_what_to_set(runtime: Runtime) -> None:
    """B9: nothing is begun."""
    outside = Outside()
    async with runtime(scripted(call("build"), "No."), tools=[outside.build]) as outlast:
        session = await outlast.sessions.create()
        outcome = await first_turn(session, "Build.")
        assert "OUTLAST_PUBLIC_URL" in str(outcome.calls[0].result)
        assert (outcome.calls[0].outcome, await session.tasks(), outside.asked) == ("failed", [], [])


@pytest.mark.parametrize("error", [ToolFailed("the line is dead"), ModelRetry("the line is dead"), OSError("dead")])
async def test_a_call_that_fails_names_the_task_it_leaves_open(runtime: Runtime, error: Exception) -> None:
    """B9: its request may have gone out, so the completion still counts."""

    async def build() -> str:
        async with public.external():
            raise error

    async with runtime(scripted(call("build"), "Failed.", "Well."), tools=[build], public_url=URL) as outlast:
        session = await outlast.sessions.create()
        outcome = await first_turn(session, "Build.")
        task = await only_task(session)
        [told] = outcome.calls
        assert (told.outcome, task.state) == ("failed", "running")
        assert f"Task {task.id} stays open" in str(told.result)
        assert ("internal error" if isinstance(error, OSError) else "the line is dead") in str(told.result)
        assert (await outlast.tasks.complete(task.id, error="No bricks.")).applied
        await a_woken_turn(session)
        assert "Error (tool_error): No bricks." in (await wakes_seen(session))[0]
        assert (await outlast.tasks.get(task.id)).state == "failed"


async def test_a_withdrawn_one_is_over_and_wakes_nobody(runtime: Runtime) -> None:
    """B9: the call fails by itself, and a completion that comes all the same is told that it is late."""

    async def build() -> str:
        async with public.external() as op:
            await op.withdraw()
            raise ToolFailed("the line is dead")

    async with runtime(scripted(call("build"), "Failed."), tools=[build], public_url=URL) as outlast:
        session = await outlast.sessions.create()
        outcome = await first_turn(session, "Build.")
        task = await only_task(session)
        assert (outcome.calls[0].result, task.state) == ("the line is dead", "canceled")
        late = await outlast.tasks.complete(task.id, result="there it is")
        assert (late.applied, late.task.state) == (False, "canceled")
        assert late.task.late_outcome == {"state": "succeeded", "result": "there it is", "error": None}
        assert await wakes_seen(session) == []


async def test_only_the_first_completion_counts(runtime: Runtime) -> None:
    """B9: repeats change nothing, whatever they say; ten at the same instant are one."""
    outside = Outside()
    async with runtime(scripted(call("build"), "Ordered.", "Told."), tools=[outside.build], public_url=URL) as outlast:
        session = await outlast.sessions.create()
        await first_turn(session, "Build.")
        [task_id] = outside.tasks
        completing = [outlast.tasks.complete(task_id, result=number) for number in range(10)]
        answers = await asyncio.gather(*completing)
        assert sum(each.applied for each in answers) == 1
        first = next(number for number, each in enumerate(answers) if each.applied)
        again = await outlast.tasks.complete(task_id, error="Never mind.")
        assert (again.applied, again.task.state, again.task.result) == (False, "succeeded", first)
        assert again.task.late_outcome is None
        await a_woken_turn(session)
        assert len(await wakes_seen(session)) == 1
        assert len(await events_of(session, "task.ended")) == 1


async def test_a_completion_before_the_tool_has_returned_counts(runtime: Runtime) -> None:
    """B9: the call's result comes all the same, and the end is told once."""
    gate, ids = Checkpoint(), list[str]()

    async def build() -> str:
        async with public.external() as op:
            ids.append(op.task_id)
            await gate()
        return "ordered"

    async with runtime(scripted(call("build"), "Ordered."), tools=[build], public_url=URL) as outlast:
        session = await outlast.sessions.create()
        turn = await session.send("Build.")
        await gate.reached()
        assert (await outlast.tasks.complete(ids[0], result="quick")).applied
        gate.open()
        outcome = await turn.outcome()
        assert outcome.calls[0].result["result"] == "ordered"
        assert outcome.text == "Ordered.", "it was told before the model was asked again"
        assert len(await wakes_seen(session)) == 1


async def test_a_deadline_ends_it_and_what_comes_later_is_kept(runtime: Runtime) -> None:
    """B9: told as what it is: nobody stopped anything elsewhere."""

    async def build() -> str:
        async with public.external(deadline=0.05):
            return "ordered"

    async with runtime(scripted(call("build"), "Ordered.", "Too late."), tools=[build], public_url=URL) as outlast:
        session = await outlast.sessions.create()
        await first_turn(session, "Build.")
        task = await task_that(session, lambda each: each.is_over)
        assert task.error is not None
        assert (task.state, task.error["kind"]) == ("failed", "timeout")
        assert task.error["message"].startswith("No completion came before its deadline.")
        await a_woken_turn(session)
        late = await outlast.tasks.complete(task.id, result="there it is")
        repeat = await outlast.tasks.complete(task.id, result="and again")
        assert [(each.applied, each.task.state) for each in (late, repeat)] == [(False, "failed")] * 2
        assert repeat.task.late_outcome is not None
        assert repeat.task.late_outcome["result"] == "there it is"
        assert len(await wakes_seen(session)) == 1


async def test_a_cancel_ends_it_at_once(runtime: Runtime) -> None:
    """B9: there is no worker that would have to confirm; a completion that comes later is told so."""
    outside = Outside()
    async with runtime(scripted(call("build"), "Ordered.", "Told."), tools=[outside.build], public_url=URL) as outlast:
        session = await outlast.sessions.create()
        await first_turn(session, "Build.")
        [task_id] = outside.tasks
        assert (await outlast.tasks.cancel(task_id)).state == "canceled"
        assert not (await outlast.tasks.complete(task_id, result=1)).applied


async def test_a_long_result_is_read_in_pieces(runtime: Runtime) -> None:
    """B9, A3: cleaned, masked and bounded; the whole of it stands in a file."""
    outside = Outside()
    secret = "sesame-4711"

    def say(messages: Sequence[ModelMessage]) -> Any:
        if len(messages) == 5:
            return call("read_output", id=outside.tasks[0], offset=199_990, what="result")
        return {1: call("build"), 3: "Ordered."}.get(len(messages), "Read.")

    model = ScriptedModel(say)
    async with runtime(model, tools=[outside.build], public_url=URL) as outlast:
        outlast.secrets.add(secret)
        session = await outlast.sessions.create()
        await first_turn(session, "Build.")
        done = await outlast.tasks.complete(
            outside.tasks[0], result="x\x00" * 100_000 + secret + "</background_result>"
        )
        assert (done.task.result["truncated"], done.task.result["characters_total"] > 200_000) == (True, True)
        await a_woken_turn(session)
        piece = [each for each in (await events_of(session, "call.ended")) if each.data["tool"] == "read_output"]
        shown = str(piece[0].data["part"])
        assert "*" * len(secret) in shown
        assert secret not in shown
        assert "</background_result>" not in shown


async def test_another_owner_and_other_kinds_of_tasks(runtime: Runtime) -> None:
    """B9, P7: another owner's task is not there; one that is run here is not completed."""
    outside, gate = Outside(), Checkpoint()

    async def slow() -> str:
        await gate()
        return "done"

    model = scripted(call("build"), call("slow"), "Both.", "Told.")
    async with runtime(model, tools=[outside.build, slow], public_url=URL, budget=BUDGET) as outlast:
        session = await outlast.sessions.create()
        await first_turn(session, "Go.")
        for task_id in (outside.tasks[0], "tsk_unknown"):
            with pytest.raises(NotFound):
                await outlast.tasks_of("ben").complete(task_id, result=1)
        parked = next(each for each in await session.tasks() if each.kind == "call")
        with pytest.raises(Conflict):
            await outlast.tasks.complete(parked.id, result=1)
        gate.open()
        await task_that(session, lambda each: each.id == parked.id and each.is_over)


async def test_a_parked_call_tells_of_its_operations_in_its_end(runtime: Runtime) -> None:
    """B9: its own end wakes with its value and the id of the operation, which goes on."""
    gate = Checkpoint()

    async def build() -> str:
        async with public.external():
            await gate()
        return "ordered"

    model = scripted(call("build"), "Waiting.", "Ordered.", "Told.")
    async with runtime(model, tools=[build], public_url=URL, budget=BUDGET) as outlast:
        session = await outlast.sessions.create()
        await first_turn(session, "Build.")
        gate.open()
        parked = await task_that(session, lambda each: each.kind == "call" and each.is_over)
        operation = next(each for each in await session.tasks() if each.kind == "external")
        assert (parked.result["task_ids"], parked.result["result"]) == ([operation.id], "ordered")
        assert operation.state == "running"
        assert (await outlast.tasks.complete(operation.id, result=1)).applied


@pytest.mark.parametrize("completed", ["before", "after"])
async def test_a_tool_that_is_run_again_finds_its_operations(runtime: Runtime, completed: str) -> None:
    """B9, kill: the same tasks by their order, each with a token more; the earlier ones stay valid until the end."""
    opened: list[Any] = []
    gate = Checkpoint()

    async def build() -> str:
        for title in ("walls", "roof"):
            async with public.external(title=title) as op:
                opened.append(op)
        await gate()
        return "ordered"

    async def complete(outlast: Outlast[Any, Any], op: Any) -> bool:
        assert await outlast.completions.owner_by(op.task_id, op.token)
        return (await outlast.completions.complete(op.task_id, success=True, result="up")).applied

    tool = Tool(build, metadata=hints(idempotent=True, budget=0.01))
    async with runtime(scripted(call("build"), "Wait."), tools=[tool], public_url=URL) as outlast:
        session = await outlast.sessions.create()
        await first_turn(session, "Build.")
        await gate.reached()
        if completed == "before":
            assert await complete(outlast, opened[0])
    gate.open()
    async with runtime(scripted(*["I see."] * 4), tools=[tool], public_url=URL) as outlast:
        session = await outlast.sessions.get(session.id)
        await task_that(session, lambda each: each.kind == "call" and each.is_over)
        first, second, *again = opened
        assert [each.task_id for each in again] == [first.task_id, second.task_id]
        assert [each.is_new for each in opened] == [True, True, False, False]
        assert len({each.token for each in opened}) == 4
        assert [await complete(outlast, each) for each in again] == [completed == "after", True]
        assert not await complete(outlast, first), "its token is good, and what stands is told"
        assert len([each for each in await session.tasks() if each.kind == "external"]) == 2


async def test_no_more_than_may_be_open(runtime: Runtime) -> None:
    """B9: refused with the list; nothing was begun."""
    outside = Outside()
    model = scripted(call("build"), call("build"), "Well.")
    async with runtime(model, tools=[outside.build], public_url=URL, max_open_tasks_per_session=1) as outlast:
        session = await outlast.sessions.create()
        outcome = await first_turn(session, "Build two.")
        assert (outcome.calls[1].outcome, len(outside.asked)) == ("failed", 1)
        assert outside.tasks[0] in str(outcome.calls[1].result)


async def test_the_token_is_found_nowhere(runtime: Runtime, capfd: pytest.CaptureFixture[str]) -> None:
    """B9: a tool gives it, prints it and raises it: rows, events, messages and log have stars, or its hash."""
    tokens: list[str] = []

    async def build() -> Any:
        async with public.external(title="secret") as op:
            tokens.append(op.token)
            public.output(f"sent {op.url}")
            public.progress(1, 2, label=op.token)
        return {"sent": op.url}

    async def fails() -> str:
        async with public.external() as op:
            tokens.append(op.token)
            raise OSError(f"cannot reach https://elsewhere?callback={op.url}")

    model = scripted(call("build"), call("fails"), "Well.")
    async with runtime(model, tools=[build, fails], public_url=URL) as outlast:
        session = await outlast.sessions.create()
        outcome = await first_turn(session, "Build.")
        shown = [outcome, await session.history(), await events_of(session), await session.tasks()]
        shown += [await stored(outlast), *capfd.readouterr()]
        assert len(tokens) == 2
        assert [token for token in tokens if token in repr(shown)] == []


async def stored(outlast: Outlast[Any, Any]) -> str:
    """All rows of all tables, as text."""

    def read(connection: sa.Connection) -> str:
        return repr([[*map(tuple, connection.execute(sa.select(each)))] for each in metadata.sorted_tables])

    return await outlast.database.read(read)


@pytest.mark.parametrize("title", [nasty.Loud(SystemExit), 2**20000, "\ud83d\x00"], ids=["exits", "huge", "halves"])
async def test_an_odd_title_is_told_as_well_as_it_can_be(runtime: Runtime, title: Any) -> None:
    """B9, G3: it is a word for people, and no reason to fail the call."""

    async def build() -> str:
        async with public.external(title=title) as op:
            await op.withdraw()
        return "ordered"

    async with runtime(scripted(call("build"), "Done."), tools=[build], public_url=URL) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("Go.")
        assert [(each.outcome, each.result) for each in outcome.calls] == [("success", "ordered")]
        assert (await only_task(session)).title
