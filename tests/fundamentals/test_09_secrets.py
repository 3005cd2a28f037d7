"""Secrets: a tool registers a value, and from then on it is starred out wherever something is kept or shown."""

from collections.abc import Callable
from typing import Any

from cryptography.fernet import Fernet
from pydantic_ai import Agent

import outlast as public
from outlast import Outlast
from outlast.testing import ScriptedModel, call

Start = Callable[..., Outlast[Any, Any]]
KEY = "sk-live-4711"


def log_in() -> str:
    """A tool that has a key, and is careless with it."""
    public.secret(KEY)
    public.output(f"using {KEY}\n")
    public.progress(1, 1, label=f"with {KEY}")
    return f"logged in with {KEY}"


async def test_a_registered_value_is_nowhere(start: Start) -> None:
    """Not in results, output, events or history, not for the model, and not in what the model says (A11, G6)."""
    model = ScriptedModel([call("log_in", call_id="c1"), f"I used {KEY}."])
    async with start(Agent(model, tools=[log_in])) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("Log in.")
        async with session.events(follow=False) as stream:
            events = [event async for event in stream]
        shown = [outcome, events, await session.history(), await session.export(), model.requests[1].messages]
    assert KEY not in repr(shown)
    assert outcome.text.startswith("I used *")


async def test_what_was_registered_stays_so_after_a_restart(start: Start) -> None:
    """With a key to encrypt them, the values are kept: a later process masks them too (A11)."""
    keys = (Fernet.generate_key().decode(),)
    agent = Agent(ScriptedModel([call("log_in"), "Done."]), tools=[log_in])
    async with start(agent, encryption_keys=keys) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Log in.")
    async with start(Agent(ScriptedModel([f"It was {KEY}."])), encryption_keys=keys) as outlast:
        outcome = await (await outlast.sessions.get(session.id)).ask("What was the key?")
        assert KEY not in outcome.text


async def test_outside_outlast_a_tool_works_as_before() -> None:
    """Every helper for tools does nothing there: the agent can be run and tested by itself (A1)."""
    result = await Agent(ScriptedModel([call("log_in"), "Done."]), tools=[log_in]).run("Log in.")
    assert result.output == "Done."
    assert KEY in repr(result.all_messages())
    assert public.idempotency_key() is None
