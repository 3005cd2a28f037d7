"""What a person said of work whose effect nobody knew is shown in place of its state; "try again" tries again."""

import asyncio
from typing import Any

import pytest
from pydantic_ai import Tool

import outlast as public
from outlast import hints
from outlast.errors import Conflict
from outlast.testing import call, texts_seen
from outlast.wire.task import Settled
from outlast.wire.turn import Verdict
from outlast.wire.view import CallBlock
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.background import BUDGET, parked_session, wakes_seen
from tests.support.turns.runtime import Runtime, events_of, scripted


class Stubborn:
    """A tool that ignores its cancel the first time, so that nobody knows its effect, and works the next."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.keys: list[str | None] = []

    async def __call__(self) -> str:
        self.keys.append(public.idempotency_key())
        public.output(f"try {len(self.keys)}\n")
        while len(self.keys) == 1 and not self.released.is_set():
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                continue
        return "a hole"


async def test_a_settled_task_keeps_its_state_and_says_what_was_said(runtime: Runtime) -> None:
    """A2: verdict, who and when; lists and filters show it in place of the state."""
    dig = Stubborn()
    model = scripted(call("dig"), "It goes on.", "Abandoned.", "Good to know.")
    async with runtime(model, tools=[Tool(dig.__call__, name="dig")], budget=BUDGET) as outlast:
        session, task = await parked_session(outlast)
        abandoned = await outlast.tasks.cancel(task.id)
        assert (abandoned.state, abandoned.settled, abandoned.shown_state) == ("failed", None, "failed")
        await session.settled()
        assert [each.id for each in await outlast.tasks.list(state="failed")] == [task.id]
        assert await outlast.tasks.list(state="settled") == []
        settled = await outlast.tasks.settle(task.id, "worked", by="olga", note="I saw the hole.")
        assert settled.settled is not None
        said = settled.settled
        assert (said.verdict, said.by, said.note) == ("worked", "olga", "I saw the hole.")
        assert said.at is not None
        assert (settled.state, settled.shown_state, settled.metadata) == ("failed", "settled: worked", {})
        assert await outlast.tasks.list(state="failed") == []
        (listed,) = await outlast.tasks.list(state="settled")
        assert listed.settled == said
        told = (await events_of(session, "task.changed"))[-1]
        assert Settled.model_validate(told.data["task"]["settled"]) == said
        await session.settled()
        dig.released.set()


async def test_try_again_makes_a_new_task_that_is_linked_to_the_old_one(runtime: Runtime) -> None:
    """A2, B4: the old one stays what it was; the new one has the same arguments and key, and its end is told."""
    dig = Stubborn()
    model = scripted(call("dig"), "It goes on.", "Abandoned.", "It is tried again.", "There is a hole.")
    async with runtime(model, tools=[Tool(dig.__call__, name="dig")], budget=BUDGET) as outlast:
        session, task = await parked_session(outlast)
        await outlast.tasks.cancel(task.id)
        await session.settled()
        old = await outlast.tasks.settle(task.id, Verdict.TRY_AGAIN, by="olga")
        assert (old.state, old.shown_state) == ("failed", "settled: try_again")
        new = await outlast.tasks.get(old.links["retried_as"])
        assert (new.links, new.tool, new.args) == ({"retry_of": old.id}, "dig", old.args)
        ended = await outlast.tasks.wait(new.id, seconds=30)
        assert (ended.state, ended.result) == ("succeeded", "a hole")
        await session.settled()
        assert (await outlast.tasks.get(old.id)).state == "failed"
        assert len(dig.keys) == 2
        assert len(set(dig.keys)) == 1, "whoever deduplicates sees the same call"
        assert (await outlast.tasks.output(new.id)).text.startswith("try 1\n")
        assert new.id in str(texts_seen(await session.history())), "the model hears which task tries again"
        assert any(new.id in each and "finished" in each for each in await wakes_seen(session))
        dig.released.set()


async def test_calls_that_were_interrupted_stand_with_their_session_until_settled(runtime: Runtime) -> None:
    """A2, I3: with their ids; not one that has no effect, nor one that never ran."""
    here, there = Checkpoint(), Checkpoint()

    async def charge() -> None:
        await here()

    async def look() -> None:
        await there()

    async def send() -> None:
        raise AssertionError("it waits for those before it")

    tools: list[Any] = [charge, Tool(look, metadata=hints(read_only=True)), Tool(send, sequential=True)]
    asked = [call(tool, call_id=f"c{number}") for number, tool in enumerate(("charge", "look", "send"), 1)]
    model = scripted(asked, "Good to know.")
    async with runtime(model, tools=tools) as outlast:
        session = await outlast.sessions.create()
        assert session.interrupted_calls == []
        await session.send("Go.")
        await asyncio.gather(here.reached(), there.reached())
        await session.stop()
        (interrupted,) = (await session.refresh()).interrupted_calls
        assert (interrupted.call_id, interrupted.tool) == ("c1", "charge")
        (listed,) = await outlast.sessions.list()
        assert listed.interrupted_calls == [interrupted]
        ends = {each.data["call_id"]: each.data["is_unknown"] for each in await events_of(session, "call.ended")}
        assert ends == {"c1": True, "c2": False, "c3": False}
        (turn,) = (await session.view()).turns
        assert {each.call_id: each.is_unknown for each in turn.blocks if isinstance(each, CallBlock)} == ends
        for known in ("c2", "c3"):
            with pytest.raises(Conflict, match="nothing is unknown"):
                await session.settle_call(known, Verdict.FAILED, by="olga")
        await session.settle_call("c1", Verdict.FAILED, by="olga")
        assert (await session.refresh()).interrupted_calls == []
        await session.settled()
