"""Pausing: everything is accepted, nothing new is started, over restarts too (I3)."""

from outlast.testing import gate, text
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.runtime import Runtime, event_types, scripted


async def test_a_pause_accepts_and_starts_nothing(runtime: Runtime) -> None:
    """I3, P1: what was accepted during a pause waits, survives a restart, and starts when it ends."""
    async with runtime(scripted("Hello.")) as outlast:
        paused = await outlast.pause(by="root")
        assert (await outlast.pause(by="somebody else")) == paused
        session = await outlast.sessions.create()
        sent = await session.send("hi")
        assert (await sent.outcome(wait=0.1)).state == "queued"
    async with runtime(scripted("Hello.")) as outlast:
        session = await outlast.sessions.get(session.id)
        assert (await outlast.paused()) == paused
        assert "turn.started" not in await event_types(session)
        assert await outlast.unpause()
        outcome = await session.result(until="settled")
        assert outcome is not None
        assert outcome.text == "Hello."
        assert not await outlast.unpause()


async def test_what_runs_goes_on_during_a_pause(runtime: Runtime) -> None:
    """I3: a running turn takes its steering message and ends; the queued one waits."""
    here = Checkpoint()
    async with runtime(scripted([gate(here), text("One.")], "Two.")) as outlast:
        session = await outlast.sessions.create()
        first = await session.send("first")
        await here.reached()
        await outlast.pause()
        second = await session.send("second", when_busy="queue")
        here.open()
        assert (await first.outcome()).text == "One."
        assert (await second.outcome(wait=0.1)).state == "queued"
        await outlast.unpause()
        assert (await second.outcome()).text == "Two."
