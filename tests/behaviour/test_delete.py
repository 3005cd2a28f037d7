"""Deleting a session: gone at once for everybody, whatever ran in it; then its rows, then its files."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic_ai.messages import ModelRequest, UserPromptPart

from outlast import Outlast, Session
from outlast.errors import Conflict, NotFound
from outlast.events import signals
from outlast.store.repositories import events
from outlast.store.repositories.deleted import marked
from outlast.store.tables import metadata
from outlast.store.unit import Unit
from outlast.testing import call, gate, text
from outlast.transitions import deletion
from tests.support.crashes.deleting_child import LARGE, delete_until
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.background import BUDGET, ThreadGate, parked
from tests.support.turns.runtime import Runtime, scripted, wait_for_event


@pytest.fixture
def only_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks again by itself: what is heard in time was told."""
    monkeypatch.setattr(signals, "RECHECK_SECONDS", 300.0)


async def rows_of(outlast: Outlast[Any, Any], session_id: str) -> list[str]:
    """The tables that still hold something of a session; what an owner is told of its end may stay."""

    def look(connection: sa.Connection) -> list[str]:
        found: list[str] = []
        for table in metadata.sorted_tables:
            column = table.c.id if table.name == "sessions" else table.c.get("session_id")
            if column is None or table.name in ("creations", "feed"):
                continue
            count = connection.execute(sa.select(sa.func.count()).select_from(table).where(column == session_id))
            found += [table.name] * bool(count.scalar_one())
        return found

    return await outlast.database.read(look)


def files_of(runtime: Runtime, session_id: str) -> list[Path]:
    return list(runtime.files.glob(f"{session_id}*"))


async def check_gone(outlast: Outlast[Any, Any], session: Session) -> None:
    """Every call on it finds nothing."""
    stream = session.events()
    for nothing in (
        session.refresh(),
        session.update(title="x"),
        session.send("x"),
        session.history(),
        session.messages(),
        session.inbox(),
        session.tasks(),
        session.stop(),
        session.resume(),
        session.retry(),
        session.settled(),
        session.result(),
        session.snapshot(),
        session.input("inp_1"),
        anext(stream),
        outlast.sessions.get(session.id),
        outlast.sessions.delete(session.id),
    ):
        with pytest.raises(NotFound):
            await nothing
    assert session.id not in {each.id for each in await outlast.sessions.list(archived=None)}


async def test_a_deleted_session_is_gone_with_its_rows_and_files(runtime: Runtime) -> None:
    """D10: nothing of it is left, nothing of others is touched, and its name is free."""
    said = [ModelRequest(parts=[UserPromptPart(content=LARGE)])]
    async with runtime(lambda _: "Yes.") as outlast:
        session = await outlast.sessions.create(external_id="one", idempotency_key="k", history=said)
        other = await outlast.sessions.create(history=said)
        await session.ask("Hi")
        assert files_of(runtime, session.id)
        with pytest.raises(NotFound):
            await outlast.owned_by("bob").delete(session.id)
        await outlast.sessions.delete(session.id)
        await check_gone(outlast, session)
        assert await rows_of(outlast, session.id) == []
        assert files_of(runtime, session.id) == []
        assert len(await other.history()) == 1
        with pytest.raises(Conflict):
            await outlast.sessions.create(external_id="one", idempotency_key="k", history=said)
        assert (await outlast.sessions.create(external_id="one")).id != session.id


async def fill(outlast: Outlast[Any, Any], session_id: str) -> list[str]:
    """A row in each table that holds something of sessions, whatever it is; their names."""
    values: dict[type, Any] = {str: "x", int: 999, bool: False, float: 1.0, bytes: b"x"}

    def work(unit: Unit) -> list[str]:
        filled: list[str] = []
        for table in metadata.sorted_tables:
            if "session_id" not in table.c or table.name in ("creations", "feed"):
                continue
            row = {each.name: values[each.type.python_type] for each in table.c if not each.nullable}
            unit.connection.execute(sa.insert(table).values({**row, "session_id": session_id}))
            filled.append(table.name)
        return filled

    return await outlast.database.transaction(work, name="fill")


async def test_no_table_and_no_file_is_forgotten(runtime: Runtime) -> None:
    """D10, I4: counted over all tables that there are, with a row of the session in each, and all its files."""
    async with runtime(lambda _: "Yes.") as outlast:
        session = await outlast.sessions.create()
        await session.files.add("a.txt", b"text")
        filled = await fill(outlast, session.id)
        assert set(await rows_of(outlast, session.id)) >= {"sessions", "outputs", "fires", "summaries", *filled}
        assert files_of(runtime, session.id)
        await outlast.sessions.delete(session.id)
        assert await rows_of(outlast, session.id) == []
        assert files_of(runtime, session.id) == []


async def test_readers_get_a_last_event_and_end(runtime: Runtime) -> None:
    """D10, P4: also one that is behind and whose log is gone when it comes to read on."""
    async with runtime(lambda _: "Yes.") as outlast:
        session = await outlast.sessions.create()
        await session.ask("Hi")

        begun = asyncio.Event()

        async def read() -> list[str]:
            seen: list[str] = []
            async with session.events() as stream:
                async for event in stream:
                    seen.append(event.type)
                    begun.set()
            return seen

        last = (await session.refresh()).last_event
        async with session.events() as slow, session.events(after=last - 1) as waiting:
            assert (await anext(slow)).type == "session.created"
            assert (await anext(waiting)).type == "turn.completed"
            following = asyncio.create_task(anext(waiting))
            reading = asyncio.create_task(read())
            await begun.wait()
            await outlast.sessions.delete(session.id)
            assert (await following).type == "session.deleted"
            with pytest.raises(StopAsyncIteration):
                await anext(waiting)
            assert [event.type async for event in slow][-1] == "session.deleted"
            seen = await reading
            assert seen[-1] == "session.deleted"
            assert seen.count("session.deleted") == 1


async def test_the_owner_is_told_in_the_stream_over_all_sessions(runtime: Runtime) -> None:
    """D10, E6: also one who was away, and finds nothing else of the session."""
    async with runtime(lambda _: "Yes.") as outlast:
        session, other = await outlast.sessions.create(), await outlast.sessions.create()
        await session.ask("Hi")
        async with outlast.events_of("local", follow=False) as stream:
            before = [fed.event.session_id async for fed in stream]
        assert before.count(session.id) > 3
        await outlast.sessions.delete(session.id)
        async with outlast.events_of("local", follow=False) as stream:
            told = [(fed.event.session_id, fed.event.type) async for fed in stream]
        assert told == [(other.id, "session.created"), (session.id, "session.deleted")]


@pytest.mark.usefixtures("only_signals")
async def test_a_running_turn_is_stopped_and_those_who_wait_for_it_are_told(runtime: Runtime) -> None:
    """D10, P4, P6: nobody hangs, the code stops, and the owner's next turn gets the place."""
    here, cancelled = Checkpoint(), asyncio.Event()

    async def look() -> str:
        try:
            await here()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return "seen"

    async with runtime(scripted(call("look"), "Two."), tools=[look], max_turns_per_owner=1) as outlast:
        session, other = await outlast.sessions.create(), await outlast.sessions.create()
        sent = await session.send("Look.")
        await here.reached()
        queued = await session.send("Then this.", when_busy="queue")
        next_one = await other.send("And me?")
        waiters = [
            asyncio.create_task(each)
            for each in (sent.outcome(), session.settled(), queued.turn(), queued.outcome(), session.result())
        ]
        await asyncio.sleep(0)
        await outlast.sessions.delete(session.id)
        async with asyncio.timeout(30):
            for each in await asyncio.gather(*waiters, return_exceptions=True):
                assert isinstance(each, NotFound)
            await cancelled.wait()
        assert (await next_one.outcome()).text == "Two."
        await check_gone(outlast, session)


async def test_a_turn_that_waits_for_its_place_never_starts(runtime: Runtime) -> None:
    """D10: neither in this process nor after a restart."""
    here = Checkpoint()
    async with runtime(scripted([gate(here), text("One.")]), max_turns_per_owner=1) as outlast:
        first, second = await outlast.sessions.create(), await outlast.sessions.create()
        sent = await first.send("Go.")
        await here.reached()
        await second.send("Me too.")
        await outlast.sessions.delete(second.id)
        here.open()
        assert (await sent.outcome()).text == "One."
    async with runtime(scripted()) as outlast:
        (left,) = await outlast.sessions.list()
        assert left.id == first.id


@pytest.mark.usefixtures("only_signals")
async def test_a_task_is_cancelled_and_is_gone(runtime: Runtime) -> None:
    """D10: whoever waits for it is told that there is no such task."""
    here, cancelled = Checkpoint(), asyncio.Event()

    async def survey() -> str:
        try:
            await here()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return "3 m"

    async with runtime(scripted(call("survey"), "It runs."), tools=[survey], budget=BUDGET) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("Measure.")).outcome()
        task = await parked(session)
        waiting = asyncio.create_task(outlast.tasks.wait(task.id))
        await asyncio.sleep(0)
        await outlast.sessions.delete(session.id)
        async with asyncio.timeout(30):
            await cancelled.wait()
            with pytest.raises(NotFound):
                await waiting
        for nothing in (outlast.tasks.get(task.id), outlast.tasks.cancel(task.id), outlast.tasks.output(task.id)):
            with pytest.raises(NotFound):
                await nothing
        assert await outlast.tasks.list() == []


async def test_a_thread_that_ends_later_harms_nobody(runtime: Runtime) -> None:
    """D10, P8: its long result has no place any more, and nothing fails for it."""
    here = ThreadGate()

    def survey() -> str:
        here()
        return LARGE

    async with runtime(scripted(call("survey"), "It runs.", "Hello."), tools=[survey], budget=BUDGET) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("Measure.")).outcome()
        await parked(session)
        await outlast.sessions.delete(session.id)
        here.open()
        other = await outlast.sessions.create()
        assert (await other.ask("Hi")).text == "Hello."
    async with runtime(scripted()) as outlast:
        assert await rows_of(outlast, session.id) == []


@pytest.mark.parametrize(
    "place",
    [
        "commit delete after 1",
        "commit delete.rows before 1",
        "commit delete.rows after 1",
        "commit delete.rows after 2",
        "commit delete.session before 1",
    ],
)
async def test_a_crash_in_the_middle_is_gone_on_from_at_the_next_start(embedded: Runtime, place: str) -> None:
    """D10, P1: once committed, the session is not there; the next process removes what is left."""
    await asyncio.to_thread(delete_until, embedded.folder, place)
    async with embedded(scripted()) as outlast:
        (left,) = await outlast.sessions.list(archived=None)
        assert left.title == "Other"
        assert len(await left.history()) == 1
        await asyncio.gather(*(each for each in asyncio.all_tasks() if each.get_name().startswith("delete ses_")))
        assert await outlast.database.read(marked) == []
        assert [path.name for path in files_of(embedded, "ses")] == [left.id]
        assert (await outlast.sessions.create(external_id="one")).title is None


async def test_an_outcome_is_known_when_its_event_is_no_longer_in_the_log(runtime: Runtime) -> None:
    """D7, P4: the turn's own row tells how it ended, and what it used."""
    async with runtime(scripted("One.")) as outlast:
        session = await outlast.sessions.create()
        outcome = await session.ask("Go.")
        await wait_for_event(session, "turn.completed")
        await outlast.database.transaction(
            lambda unit: events.trim(unit, session.id, before=unit.lock(session.id).last_event + 1), name="trim"
        )
        assert outcome.turn_id is not None
        again = await session.turn(outcome.turn_id).outcome(wait=5)
        assert (again.state, again.usage) == ("completed", outcome.usage)


async def test_whoever_sent_the_last_message_reads_to_the_end_of_the_log(runtime: Runtime) -> None:
    """P4, E1: its stream has begun with what the message told, so a deletion right after that cuts nothing off."""
    here = Checkpoint()
    async with runtime(scripted([gate(here), text("Never.")])) as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("Go.")
        await here.reached()
        await outlast.database.transaction(
            lambda unit: deletion.mark(unit, session.id, owner_id=session.owner_id), name="delete"
        )
        async with await sent.events() as stream:
            seen = [event async for event in stream]
        numbers = [event.number for event in seen]
        assert numbers == list(range(2, 2 + len(numbers)))
        assert [event.type for event in seen][-2:] == ["turn.stopped", "session.deleted"]
