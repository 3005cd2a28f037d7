"""Accepted tasks whose process leaves, pauses, fails to reach its database or is told to cancel in that very moment."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic_ai import Tool

from outlast.calls.intake import TaskIntake
from outlast.engines import embedded as embedding
from outlast.errors import StoreUnavailable
from outlast.ids import TaskId
from outlast.runs import worker
from outlast.store.repositories import pauses
from outlast.store.repositories.pauses import Pause
from outlast.store.sqlite.database import SqliteDatabase
from outlast.transitions.tasks import task_moves
from outlast.wire.task_state import TaskState
from tests.behaviour.test_accepted_tasks import PATIENCE, ended, new
from tests.support.moments.checkpoint import Checkpoint
from tests.support.moments.commits import HeldCommits, let_run
from tests.support.turns.runtime import Runtime


class Payments:
    """A tool that may not be run twice, and waits for its gate."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.here = Checkpoint()

    def tool(self, name: str) -> Tool[None]:
        async def pay() -> str:
            self.begun.append(name)
            await self.here()
            return "paid"

        return Tool(pay)


def when_it_leaves(monkeypatch: pytest.MonkeyPatch, do: Callable[[], None]) -> None:
    leave = worker.Worker.leave

    def leaves(self: worker.Worker) -> None:
        leave(self)
        do()

    monkeypatch.setattr(worker.Worker, "leave", leaves)


async def test_one_that_is_claimed_while_the_process_leaves_is_left_to_the_next(
    embedded: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P2: it never began, so nobody says of it that it may have taken effect."""
    payments = Payments()
    payments.here.open()
    async with embedded(tools=[payments.tool("first")]) as first:
        session = await first.sessions.create()
        commits = HeldCommits(first.database)
        commits.hold("task.accept")
        accepting = asyncio.create_task(TaskIntake(first.database).accept(session.id, new("pay")))
        await commits.reached("task.accept")
        when_it_leaves(monkeypatch, lambda: commits.release("task.accept"))
    task = await accepting
    async with embedded(tools=[payments.tool("second")]) as second:
        found = await ended(second, task)
        assert (found.result, found.attempt) == ("paid", 1)
    assert payments.begun == ["second"]


async def test_one_that_was_to_be_cancelled_is_not_given_back(
    embedded: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P6, P1: the cancel was accepted between the claim and the moment in which it would have begun."""
    payments, asked = Payments(), new("pay")
    payments.here.open()
    async with embedded(tools=[payments.tool("first")]) as first:
        session = await first.sessions.create()
        commits = HeldCommits(first.database)
        commits.hold("task.accept")
        accepting = asyncio.create_task(TaskIntake(first.database).accept(session.id, asked))
        await commits.reached("task.accept")
        canceling = asyncio.create_task(
            first.database.transaction(
                lambda unit: task_moves.request_cancel(unit, TaskId(asked.id), owner_id="local"),
                name="cancel",
            )
        )
        await let_run()
        when_it_leaves(monkeypatch, lambda: commits.release("task.accept"))
    await asyncio.gather(accepting, canceling)
    async with embedded(tools=[payments.tool("second")]) as second:
        assert (await second.tasks.get(asked.id)).state is TaskState.CANCELED
    assert payments.begun == []


async def test_a_process_that_closes_while_it_is_asked_to_claim_does_not(
    embedded: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P2: it was open when it was asked, on another thread than the one that closes."""
    payments, reached, closed = Payments(), threading.Event(), threading.Event()
    payments.here.open()
    find = pauses.find

    def slow(connection: sa.Connection) -> Pause | None:
        if threading.current_thread().name == "outlast-write" and not reached.is_set():
            reached.set()
            assert closed.wait(PATIENCE)
        return find(connection)

    async with embedded(tools=[payments.tool("first")]) as first:
        session = await first.sessions.create()
        monkeypatch.setattr(embedding.pauses, "find", slow)
        accepting = asyncio.create_task(TaskIntake(first.database).accept(session.id, new("pay")))
        assert await asyncio.to_thread(reached.wait, PATIENCE)
        when_it_leaves(monkeypatch, closed.set)
    task = await accepting
    assert task.state is TaskState.QUEUED
    async with embedded(tools=[payments.tool("second")]) as second:
        assert (await ended(second, task)).result == "paid"
    assert payments.begun == ["second"]


async def test_those_that_wait_are_claimed_when_the_store_is_back(
    embedded: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P4: a claim that fails leaves nobody behind."""
    payments = Payments()
    transaction, failures = SqliteDatabase.transaction, 2

    async def failing(self: SqliteDatabase, fn: Any, *, name: str) -> Any:
        nonlocal failures
        if name == "task.claim" and failures:
            failures -= 1
            raise StoreUnavailable("The disk is full.")
        return await transaction(self, fn, name=name)

    async with embedded(tools=[payments.tool("here")], max_tasks_per_worker=2) as outlast:
        session = await outlast.sessions.create()
        intake = TaskIntake(outlast.database)
        accepted = await asyncio.gather(*(intake.accept(session.id, new("pay")) for _ in range(8)))
        monkeypatch.setattr(SqliteDatabase, "transaction", failing)
        payments.here.open()
        assert [(await ended(outlast, each)).result for each in accepted] == ["paid"] * 8
    assert failures == 0


async def test_a_pause_that_ends_while_a_task_is_asked_for_leaves_it_to_nobody_else(embedded: Runtime) -> None:
    """I3, P4: its claim still saw the pause; the end of the pause hands it out again, in the same commit."""
    payments = Payments()
    async with embedded(tools=[payments.tool("here")], max_tasks_per_worker=2) as outlast:
        session = await outlast.sessions.create()
        intake = TaskIntake(outlast.database)
        accepted = [await intake.accept(session.id, new("pay")) for _ in range(3)]
        await payments.here.reached()
        await outlast.pause()
        commits = HeldCommits(outlast.database)
        commits.hold("hold")
        holding = asyncio.create_task(outlast.database.transaction(lambda unit: None, name="hold"))
        await commits.reached("hold")
        payments.here.open()
        await let_run()
        unpausing = asyncio.create_task(outlast.unpause())
        await let_run()
        commits.release("hold")
        await asyncio.gather(holding, unpausing)
        assert [(await ended(outlast, each)).result for each in accepted] == ["paid"] * 3


async def test_a_tool_that_ignores_its_cancel_does_not_hold_up_the_end(runtime: Runtime) -> None:
    """P6: what becomes of it is told at the next start."""
    here, over = Checkpoint(), asyncio.Event()

    async def stubborn() -> str:
        while not over.is_set():
            try:
                await here()
                await over.wait()
            except asyncio.CancelledError:
                continue
        return "at last"

    async with runtime(tools=[Tool(stubborn)]) as outlast:
        session = await outlast.sessions.create()
        task = await TaskIntake(outlast.database).accept(session.id, new("stubborn"))
        async with asyncio.timeout(PATIENCE):
            await here.reached()
        here.open()
    over.set()
    await let_run()
    async with runtime(tools=[]) as outlast:
        found = await ended(outlast, task)
        assert found.error is not None
        assert found.error["kind"] == "interrupted"
