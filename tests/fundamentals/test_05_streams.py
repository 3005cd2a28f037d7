"""Everything that happens is a numbered event in its session's log. A stream replays from a position, then follows."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from pydantic_ai import Agent

from outlast import Event, Outlast, Session
from outlast.testing import ScriptedModel, call, gate, text

Start = Callable[..., Outlast[Any, Any]]


def add(a: int, b: int) -> int:
    return a + b


async def log_of(session: Session, *, after: int = 0) -> list[Event]:
    """What is there now: without `follow`, a stream ends where the log does."""
    async with session.events(after=after, follow=False) as stream:
        return [event async for event in stream]


async def test_a_turn_is_told_event_by_event(start: Start) -> None:
    """From the accepted message to one terminal event; numbers rise (E2, E3)."""
    agent = Agent(ScriptedModel([call("add", a=2, b=3), "5."]), tools=[add])
    async with start(agent) as outlast:
        session = await outlast.sessions.create()
        await session.ask("2 + 3?")
        events = await log_of(session)
    types = [event.type for event in events]
    assert types[:3] == ["session.created", "input.accepted", "turn.queued"]
    assert types.index("call.started") < types.index("call.ended") < types.index("turn.completed")
    assert [event.type for event in events if event.is_terminal] == ["turn.completed"]
    numbers = [event.number or 0 for event in events]
    assert numbers == sorted(set(numbers))


async def test_a_reader_goes_on_where_it_was_cut_off(start: Start) -> None:
    """From any position, complete and in order, nothing twice: during the turn and after it (E1, P4)."""
    go_on = asyncio.Event()
    model = ScriptedModel([[text("One. Two. ", chunk=5), gate(go_on), text("Three.", chunk=3)]])
    async with start(Agent(model)) as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("Count.")
        before: list[Event] = []
        async with session.events() as stream:
            async for event in stream:
                before.append(event)
                if event.type == "part.delta":
                    break
        go_on.set()
        after: list[Event] = []
        async with session.events(after=before[-1].number or 0) as stream:
            async for event in stream:
                after.append(event)
                if event.is_terminal:
                    break
        deltas = [event.data["text"] for event in before + after if event.type == "part.delta"]
        assert "".join(deltas) == "One. Two. Three." == (await sent.outcome()).text


async def test_a_stream_of_a_message_begins_with_it(start: Start) -> None:
    """For who has just sent something and wants to see what comes of it (E1)."""
    async with start(Agent(ScriptedModel(["Hello.", "Goodbye."]))) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Hi.")
        sent = await session.send("Bye.")
        seen: list[Event] = []
        async with await sent.events() as stream:
            async for event in stream:
                seen.append(event)
                if event.is_terminal:
                    break
    assert {event.turn_id for event in seen if event.turn_id} == {sent.turn_id}


async def test_one_stream_tells_of_all_sessions_of_an_owner(start: Start) -> None:
    """States of every session, words only of those asked for; its cursor goes on after a restart (E6)."""
    async with start(Agent(ScriptedModel(["One.", "Two."]))) as outlast:
        one, two = await outlast.sessions.create(), await outlast.sessions.create()
        await one.ask("First.")
        await two.ask("Second.")
        async with outlast.events_of(one.owner_id, sessions=[two.id], follow=False) as stream:
            seen = [(cursor, event) async for cursor, event in stream]
        assert [event for _, event in seen if event.session_id == two.id] == await log_of(two)
        assert "part.ended" not in [event.type for _, event in seen if event.session_id == one.id]
    async with start(Agent(ScriptedModel(["Three."]))) as outlast:
        await (await outlast.sessions.get(one.id)).ask("Third.")
        async with outlast.events_of(one.owner_id, after=seen[-1][0], follow=False) as stream:
            again = [event.type async for _, event in stream]
        assert again.count("turn.completed") == 1


async def test_a_listener_is_told_of_what_this_process_commits(start: Start) -> None:
    """For logs and counters: one that fails harms nothing (P8)."""
    heard: list[str] = []

    def listen(events: Sequence[Event]) -> None:
        heard.extend(event.type for event in events)
        raise RuntimeError("a listener of mine is broken")

    async with start(Agent(ScriptedModel(["Hello."]))) as outlast:
        outlast.listen(listen)
        session = await outlast.sessions.create()
        assert (await session.ask("Hi.")).text == "Hello."
    assert "turn.completed" in heard
