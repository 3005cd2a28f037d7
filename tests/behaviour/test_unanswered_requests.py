"""What nobody answers: a request has its own limit, and its end is told like any other (A13, A17, B7, B8)."""

from datetime import timedelta
from typing import Any

import pytest
from cryptography.fernet import Fernet
from pydantic_ai import Tool

import outlast as public
from outlast import Settings, hints
from outlast.errors import Conflict
from outlast.testing import call
from tests.support.turns.background import nth_event, task_that, wakes_seen
from tests.support.turns.runtime import Runtime, events_of, scripted

KINDS: dict[str, dict[str, Any]] = {
    "approval": {"approve": True},
    "question": {},
    "connection": {"requires": {"connection": "github"}},
}
KEYS = (Fernet.generate_key().decode(),)
RAN: list[str] = []


def _tool(kind: str, **said: Any) -> Tool[None]:
    async def act() -> str:
        RAN.append(await public.ask("Which?") if kind == "question" else "at once")
        return "acted"

    return Tool(act, metadata=hints(**KINDS[kind], **said))


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


def test_a_person_has_seven_days() -> None:
    """A13: unless something else is set."""
    assert Settings().request_deadline == timedelta(days=7)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_request_that_nobody_answers_fails_its_task(runtime: Runtime, kind: str) -> None:
    """A13, A17, B8, failure: `timeout`, told to the model; code that waits is stopped; what comes later hears why."""
    model = scripted(call("act"), "Wait.", "I see.")
    tool = _tool(kind)
    async with runtime(model, tools=[tool], encryption_keys=KEYS, request_deadline=timedelta(seconds=0.3)) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("Go.")).outcome()
        task = await task_that(session, lambda each: each.is_over)
        assert task.error is not None
        assert (task.state, task.error["kind"]) == ("failed", "timeout")
        await nth_event(session, "turn.completed", 2)
        [wake] = await wakes_seen(session)
        assert "timeout" in wake
        [closed] = await events_of(session, "request.closed")
        assert closed.data["how"] == "expired"
        await outlast.connections.set("github", "ghp_too-late")
        with pytest.raises(Conflict, match="before its deadline"):
            await (outlast.tasks.reply(task.id, "x") if kind == "question" else outlast.tasks.approve(task.id))
        assert (RAN, (await outlast.tasks.requests()).items) == ([], [])


@pytest.mark.parametrize("kind", ["approval", "connection"])
async def test_the_calls_own_deadline_begins_when_it_runs(runtime: Runtime, kind: str) -> None:
    """A13, A17, A1: it may wait for a person far longer than it may run."""
    tool = _tool(kind, deadline=30)
    async with runtime(scripted(call("act"), "Wait.", "I see."), tools=[tool], encryption_keys=KEYS) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("Go.")).outcome()
        [task] = (await outlast.tasks.requests()).items
        assert task.deadline_at is not None
        assert task.deadline_at - task.created_at > timedelta(days=6)
        if kind == "approval":
            await outlast.tasks.approve(task.id)
        else:
            await outlast.connections.set("github", "ghp_4711-4711")
        ended = await outlast.tasks.wait(task.id, seconds=20)
        assert (ended.state, ended.result, RAN) == ("succeeded", "acted", ["at once"])
        assert ended.deadline_at is not None
        assert ended.deadline_at - task.created_at < timedelta(hours=1)
