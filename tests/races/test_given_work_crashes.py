"""A process that dies while its model sets work going: the work is there once, and what it comes to is told once."""

import asyncio
from pathlib import Path

import pytest

from outlast.wire.task_state import TaskState
from tests.support.crashes.crash import World, crash, session_of
from tests.support.logs.histories import check_history
from tests.support.turns.background import wakes_seen
from tests.support.turns.runtime import events_of

pytestmark = pytest.mark.timeout(180)
"""Each test starts another interpreter, on a machine that may be busy."""


@pytest.mark.parametrize("place", ["commit spawn before 1", "commit spawn after 1", "tool survey"])
async def test_what_was_spawned_is_there_once(tmp_path: Path, place: str) -> None:
    """B3, A6, H4, kill: one task for the call, its requirement still met, its cost counted once, its end told once."""
    await asyncio.to_thread(crash, tmp_path, "spawned", place)
    world = World(tmp_path)
    async with world.open("spawned") as outlast:
        session = await session_of(outlast)
        await session.settled()
        (task,) = await session.tasks()
        assert (task.state, task.result) == (TaskState.SUCCEEDED, "the mill is measured")
        assert task.attempt == (2 if place == "tool survey" else 1)
        assert task.usage is not None
        assert task.usage.cost_microdollars == 700
        assert (await outlast.usage_of("local")).today.known_microdollars == 700
        assert len(await events_of(session, "task.created")) == len(await events_of(session, "task.ended")) == 1
        assert len(await wakes_seen(session)) == 1
        check_history(await session.history())
    surveys = [line for line in world.effects if line.startswith("survey")]
    assert len(surveys) == task.attempt
    assert len(set(surveys)) == 1, "the same key each time"


@pytest.mark.parametrize(
    "place", ["commit child.start before 1", "commit child.start after 1", "tool look door", "commit turn.end before 1"]
)
async def test_what_was_given_to_a_sub_session_is_there_once(tmp_path: Path, place: str) -> None:
    """C1, C2, kill: one sub-session, one task, one input of it; its answer stands once in the parent's history."""
    await asyncio.to_thread(crash, tmp_path, "given away", place)
    world = World(tmp_path)
    async with world.open("given away") as outlast:
        session = await session_of(outlast)
        outcome = await session.settled()
        (task,) = await session.tasks()
        assert (task.state, task.result) == (TaskState.SUCCEEDED, "It says: door looks fine.")
        (child,) = await outlast.sessions.list(parent=session.id)
        assert task.links["child_session"] == child.id
        assert len(await events_of(child, "input.accepted")) == 1
        assert len(await events_of(session, "task.ended")) == 1
        assert outcome is not None
        assert str(await session.history()).count("It says: door looks fine.") == 2, "the result, and the answer"
        assert await wakes_seen(session) == []
        check_history(await session.history())


async def test_calls_with_one_id_are_told_apart_after_a_crash(tmp_path: Path) -> None:
    """P3, P4, kill: the one that had begun is run again with its own key, and not told what the first came to."""
    await asyncio.to_thread(crash, tmp_path, "same id", "tool upsert 2")
    world = World(tmp_path)
    async with world.open("same id") as outlast:
        session = await session_of(outlast)
        outcome = await session.settled()
        assert outcome is not None
        told = [event.data["part"]["content"] for event in await events_of(session, "call.ended")]
        assert told[1:] == ["row 1 is there", "row 2 is there"]
        (task,) = await session.tasks()
        assert told[0]["task_id"] == task.id
        check_history(await session.history())
    (first, *second) = [line.split()[1:] for line in world.effects if line.startswith("upsert")]
    assert [row for row, _ in (first, *second)] == ["1", "2", "2"]
    assert len({key for _, key in second}) == 1
    assert first[1] != second[0][1]
