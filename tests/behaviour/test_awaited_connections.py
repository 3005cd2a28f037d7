"""Calls that wait for a connection of their owner, and are run when it is set (A17, A2)."""

import asyncio

import pytest
from cryptography.fernet import Fernet
from pydantic_ai import Tool

import outlast as public
from outlast import Outlast, Session, hints
from outlast.duties.connected_calls import run_connected
from outlast.testing import call
from outlast.transitions.tasks import connections
from outlast.wire.task import Task
from outlast.wire.task_state import TaskState
from tests.support.turns.background import stored_task
from tests.support.turns.runtime import Runtime, events_of, scripted, wait_for_event

KEYS = (Fernet.generate_key().decode(),)
TOKEN = "ghp_token-4711"
URL = "https://github.com/settings/tokens"
SEEN: list[str] = []


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    SEEN.clear()


async def push(branch: str = "main") -> str:
    SEEN.append(f"{branch} {len(await public.connection('github'))}")
    return "pushed"


GATED = Tool(push, metadata=hints(requires={"connection": "github"}))
REPEATABLE = Tool(push, metadata=hints(idempotent=True))


async def waiting(outlast: Outlast[None, str], session: Session, text: str = "Push.") -> Task:
    await (await session.send(text)).outcome()
    [task] = [each for each in await session.tasks() if not each.is_over]
    assert task.state is TaskState.AWAITING_INPUT
    return task


@pytest.mark.parametrize("tool", [GATED, REPEATABLE], ids=["required", "asked for"])
async def test_a_call_waits_and_is_run_when_it_is_set(runtime: Runtime, tool: Tool[None]) -> None:
    """A17: the model gets a handle at once, the request says where to get it, and setting it runs the call once."""
    model = scripted(call("push", branch="a", call_id="c1"), "Set it.", "Pushed.")
    urls = {"github": URL}
    async with runtime(model, tools=[tool], encryption_keys=KEYS, connection_urls=urls) as outlast:
        session = await outlast.sessions.create()
        task = await waiting(outlast, session)
        [told] = (await session.result() or pytest.fail("no turn")).calls
        assert (told.result["awaiting"], told.result["task_id"]) == ("connection", task.id)
        assert task.request is not None
        assert (task.request.kind, task.request.provider, task.request.url) == ("connection", "github", URL)
        await outlast.connections.set("other", TOKEN)
        await outlast.connections_of("ben").set("github", TOKEN)
        assert SEEN == []
        await outlast.connections.set("github", TOKEN)
        outcome = await session.settled()
        assert outcome is not None
        assert (outcome.text, SEEN) == ("Pushed.", [f"a {len(TOKEN)}"])
        [ended] = await session.tasks()
        assert (ended.state, ended.result) == (TaskState.SUCCEEDED, "pushed")
        [closed] = await events_of(session, "request.closed")
        assert closed.data["how"] == "answered"
        await outlast.connections.set("github", TOKEN + "2")
        await session.settled()
        assert len(SEEN) == 1


async def test_all_calls_of_the_owner_that_wait_are_run(runtime: Runtime) -> None:
    """A17: in every session, once each; also when it is set twice at the same instant."""

    steps = [call("push", branch="x"), "Set it.", call("push", branch="y"), "Set it.", "Pushed.", "Pushed."]
    model = scripted(*steps)
    async with runtime(model, tools=[GATED], encryption_keys=KEYS) as outlast:
        sessions = [await outlast.sessions.create() for _ in range(2)]
        for each in sessions:
            await waiting(outlast, each)
        await asyncio.gather(*(outlast.connections.set("github", TOKEN) for _ in range(2)))
        for each in sessions:
            await each.settled()
        await run_connected(outlast.database)
        assert sorted(SEEN) == [f"x {len(TOKEN)}", f"y {len(TOKEN)}"]


async def test_a_call_that_may_not_run_again_fails_with_true_words(runtime: Runtime) -> None:
    """A17, A2: it had begun, so it does not wait; without a key nothing can ever be set, so nothing waits at all."""
    model = scripted(call("push"), "One.", call("push"), "Two.")
    async with runtime(model, tools=[push], encryption_keys=KEYS) as outlast:
        outcome = await (await outlast.sessions.create()).ask("Push.")
        assert outcome.calls[0].outcome == "failed"
        assert "connections set github" in str(outcome.calls[0].result)
        assert "may have taken effect" in str(outcome.calls[0].result)
    for tool in (GATED, REPEATABLE):
        async with runtime(scripted(call("push"), "Done."), tools=[tool]) as outlast:
            session = await outlast.sessions.create()
            outcome = await session.ask("Push.")
            assert (outcome.calls[0].outcome, await session.tasks()) == ("failed", [])
            assert "OUTLAST_ENCRYPTION_KEYS" in str(outcome.calls[0].result)


async def test_it_still_waits_after_a_restart_and_is_run_there(runtime: Runtime) -> None:
    """A17: the process that the call waited in is gone."""
    async with runtime(scripted(call("push"), "Set it."), tools=[GATED], encryption_keys=KEYS) as outlast:
        session = await outlast.sessions.create()
        await waiting(outlast, session)
    async with runtime(scripted("Pushed."), tools=[GATED], encryption_keys=KEYS) as outlast:
        session = await outlast.sessions.get(session.id)
        await outlast.connections.set("github", TOKEN)
        await session.settled()
        assert [f"main {len(TOKEN)}"] == SEEN


async def test_a_call_that_was_canceled_is_not_run(runtime: Runtime) -> None:
    """A17, B6: nor one whose session was deleted."""
    model = scripted(call("push"), "Set it.", "Cancelled.", call("push"), "Set it.")
    async with runtime(model, tools=[GATED], encryption_keys=KEYS) as outlast:
        session, other = await outlast.sessions.create(), await outlast.sessions.create()
        task = await waiting(outlast, session)
        await outlast.tasks_of(session.owner_id).cancel(task.id)
        await session.settled()
        await waiting(outlast, other)
        await outlast.sessions.delete(other.id)
        await outlast.connections.set("github", TOKEN)
        await session.settled()
        assert SEEN == []
        assert [each.state for each in await session.tasks()] == [TaskState.CANCELED]


async def test_one_that_was_set_between_the_look_and_the_wait_is_found(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A17: a duty runs what nobody else has; removing a connection ends nothing that waits or runs."""
    async with runtime(scripted(call("push"), "Set it.", "Pushed."), tools=[GATED], encryption_keys=KEYS) as outlast:
        session = await outlast.sessions.create()
        await waiting(outlast, session)
        with monkeypatch.context() as patch:
            patch.setattr(connections, "run_waiting", lambda unit, waiting: None)  # pyright: ignore
            await outlast.connections.set("github", TOKEN)
        await outlast.connections.remove("github")
        await run_connected(outlast.database)
        assert [each.state for each in await session.tasks()] == [TaskState.AWAITING_INPUT]
        with monkeypatch.context() as patch:
            patch.setattr(connections, "run_waiting", lambda unit, waiting: None)  # pyright: ignore
            await outlast.connections.set("github", TOKEN)
        await run_connected(outlast.database)
        await session.settled()
        assert [f"main {len(TOKEN)}"] == SEEN


async def test_a_parked_call_that_asks_for_it_waits_too(runtime: Runtime) -> None:
    """A17: its turn had let go of it; it is run again from its start when the connection is set."""
    asks = asyncio.Event()

    async def push() -> str:
        await asks.wait()
        return f"pushed {len(await public.connection('github'))}"

    tool = Tool(push, metadata=hints(idempotent=True, budget=0.01))
    model = scripted(call("push"), "Later.", "Set it.", "Pushed.")
    async with runtime(model, tools=[tool], encryption_keys=KEYS) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("Push.")).outcome()
        asks.set()
        await wait_for_event(session, "request.opened")
        [task] = await session.tasks()
        assert (task.state, (await stored_task(outlast, task.id)).worker_id) == (TaskState.AWAITING_INPUT, None)
        await outlast.connections.set("github", TOKEN)
        await session.settled()
        [task] = await session.tasks()
        assert (task.state, task.result) == (TaskState.SUCCEEDED, f"pushed {len(TOKEN)}")
