"""Sessions as people keep them: named, found, filed, read."""

import asyncio
from datetime import timedelta

import pytest
from pydantic_ai.messages import ModelRequest, UserPromptPart

from outlast.clock import ManualClock
from outlast.errors import IdempotencyMismatch, InvalidInput, NotFound
from outlast.testing import call, gate, text
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.background import BUDGET, parked
from tests.support.turns.runtime import Runtime, events_of, scripted, wait_for_event


async def test_a_session_tells_its_state(runtime: Runtime) -> None:
    """D10: attributes are as of the last look; `refresh` looks again."""
    here = Checkpoint()
    models = {"big": scripted()}
    async with runtime(scripted([gate(here), text("Done.")]), models=models) as outlast:
        session = await outlast.sessions.create(title="River", metadata={"team": "water"}, model=None)
        assert (session.state, session.turn_id, session.is_unread, session.is_archived) == ("idle", None, False, False)
        sent = await session.send("Measure.")
        await here.reached()
        await session.refresh()
        assert (session.state, session.turn_id) == ("running", sent.turn_id)
        here.open()
        await sent.outcome()
        await session.refresh()
        assert (session.state, session.turn_id, session.is_unread) == ("idle", None, True)
        assert session.last_event == (await events_of(session))[-1].number
        assert session.updated_at >= session.created_at


async def test_a_stopped_session_is_held(runtime: Runtime) -> None:
    """D5: until its owner sends or resumes."""
    here = Checkpoint()
    async with runtime(scripted([gate(here), text("One.")], "Two.")) as outlast:
        session = await outlast.sessions.create()
        await session.send("Go.")
        await here.reached()
        await session.stop()
        assert (await session.refresh()).state == "held"
        await session.ask("Go on.")
        assert (await session.refresh()).state == "idle"


async def test_what_people_set_is_told_once(runtime: Runtime) -> None:
    """D10: title, metadata, model, archive; an update that changes nothing tells nothing."""
    async with runtime(models={"big": scripted()}) as outlast:
        session = await outlast.sessions.create(title="Old", metadata={"a": 1})
        await session.update(title="New", metadata={"b": [2]}, model="big", is_archived=True)
        assert (session.title, session.metadata, session.model, session.is_archived) == ("New", {"b": [2]}, "big", True)
        await session.update(title="New", is_archived=True)
        await session.update(title=None)
        assert session.title is None
        changed = [event.data for event in await events_of(session, "session.changed")]
        first = {"title": "New", "metadata": {"b": [2]}, "model": "big", "is_archived": True}
        assert changed == [first, {"title": None}]
        for wrong in ({"title": " "}, {"title": "x" * 501}, {"model": "huge"}, {"metadata": {"x": "y" * 20_000}}):
            with pytest.raises(InvalidInput):
                await session.update(**wrong)  # pyright: ignore[reportArgumentType]
        assert session.title is None


async def test_what_was_answered_is_unread_until_it_is_read(runtime: Runtime) -> None:
    """D10, K2: reading only moves on, never past the end of the log, and does not make a session newer."""
    async with runtime(scripted("One.", "Two.")) as outlast:
        session, other = await outlast.sessions.create(), await outlast.sessions.create()
        await session.ask("Hi")
        await session.refresh()
        await other.update(title="Newer")
        await session.update(read_to=session.last_event)
        assert not session.is_unread
        await session.update(read_to=1)
        assert not session.is_unread
        assert [each.id for each in await outlast.sessions.list()] == [other.id, session.id]
        await session.update(read_to=10**12)
        await session.ask("Again")
        assert (await session.refresh()).is_unread
        told = [event.data["is_unread"] for event in await events_of(session, "session.changed")]
        assert told == [False]


async def test_sessions_are_found_by_what_was_said_and_set(runtime: Runtime) -> None:
    """D10: search in title and messages, in any case and language; wildcards are ordinary characters."""
    async with runtime(lambda _: "Yes.") as outlast:
        river = await outlast.sessions.create(title="Über den Fluss", metadata={"n": 1, "is_wet": True, "x": None})
        percent = await outlast.sessions.create(title="100% done", metadata={"n": "1", "is_wet": False})
        await percent.ask("Was the BRIDGE closed?")

        async def found(**wanted: object) -> set[str]:
            return {each.id for each in await outlast.sessions.list(**wanted)}  # pyright: ignore[reportArgumentType]

        assert await found(search="über") == {river.id}
        assert await found(search="bridge") == {percent.id}
        assert await found(search="0% d") == {percent.id}
        assert await found(search="0_ d") == set()
        assert await found(metadata={"n": 1}) == {river.id}
        assert await found(metadata={"n": "1"}) == {percent.id}
        assert await found(metadata={"is_wet": True, "x": None}) == {river.id}
        assert await found(metadata={"is_wet": True, "n": "1"}) == set()
        assert await found(agent="agent") == {river.id, percent.id}
        assert await found(agent="nobody") == set()
        for odd in ({"metadata": {"n": [1]}}, {"external_id": "\ud800"}, {"agent": "\x00"}, {"search": "\ud800"}):
            with pytest.raises(InvalidInput):
                await found(**odd)
        await river.update(is_archived=True)
        assert await found() == {percent.id}
        assert await found(archived=True) == {river.id}
        assert await found(archived=None) == {river.id, percent.id}


async def test_a_list_is_read_page_by_page(runtime: Runtime) -> None:
    """D10: latest change first; a cursor is opaque, and one that was not given out is refused."""
    async with runtime() as outlast:
        made = [(await outlast.sessions.create()).id for _ in range(5)]
        seen: list[str] = []
        cursor: str | None = None
        while True:
            page = await outlast.sessions.page(limit=2, before=cursor)
            seen += [each.id for each in page.items]
            cursor = page.next
            if cursor is None:
                break
        assert seen == made[::-1]
        for wrong in ("", "x", "ses_1", "WzFd", "é"):
            with pytest.raises(InvalidInput):
                await outlast.sessions.page(before=wrong)


async def test_an_external_id_names_one_session_of_an_owner(runtime: Runtime) -> None:
    """D10: get or create, also when many ask at once."""
    async with runtime() as outlast:
        ada, bob = outlast.owned_by("ada"), outlast.owned_by("bob")
        made = await asyncio.gather(*(ada.create(external_id="ticket 7", title=f"{n}") for n in range(5)))
        assert len({each.id for each in made}) == 1
        assert made[0].external_id == "ticket 7"
        assert (await bob.create(external_id="ticket 7")).id != made[0].id
        (found,) = await ada.list(external_id="ticket 7")
        assert found.id == made[0].id
        assert len(await events_of(found, "session.created")) == 1


async def test_a_repeated_creation_gives_the_same_session(embedded: Runtime) -> None:
    """D2: for 24 hours, per owner; the same key for something else is refused and makes nothing."""
    clock = ManualClock()
    said = [ModelRequest(parts=[UserPromptPart(content="x" * 100_000)])]
    async with embedded(clock=clock) as outlast:
        first = await outlast.sessions.create(title="A", history=said, idempotency_key="k")
        again = await outlast.sessions.create(title="A", history=said, idempotency_key="k")
        assert first.id == again.id
        with pytest.raises(IdempotencyMismatch):
            await outlast.sessions.create(title="B", idempotency_key="k")
        assert (await outlast.owned_by("bob").create(title="A", idempotency_key="k")).id != first.id
        assert len(await outlast.sessions.list()) == 1
        clock.advance(timedelta(hours=24, seconds=1))
        assert (await outlast.sessions.create(title="B", idempotency_key="k")).id != first.id


async def test_a_session_that_is_being_named_is_found_by_its_key_too(runtime: Runtime) -> None:
    """D2, D10: a key that met an existing name stands for that session."""
    async with runtime() as outlast:
        named = await outlast.sessions.create(external_id="one")
        again = [await outlast.sessions.create(external_id="one", idempotency_key="k") for _ in range(2)]
        assert [each.id for each in again] == [named.id, named.id]


async def test_stored_messages_are_read_in_pages(runtime: Runtime) -> None:
    """D10: as JSON, with the place of each in history and in the log."""
    async with runtime(scripted("One.", "Two.")) as outlast:
        session = await outlast.sessions.create()
        first, second = await session.ask("1?"), await session.ask("2?")
        page = await session.messages(limit=3)
        assert [each.position for each in page.items] == [1, 2, 3]
        assert [each.turn_id for each in page.items] == [first.turn_id, first.turn_id, second.turn_id]
        assert page.items[1].message["parts"][0]["content"] == "One."
        (last,) = (await session.messages(after=page.next or "")).items
        (completed, _) = await events_of(session, "response.completed")
        assert page.items[1].event == completed.number
        assert (last.position, last.message["kind"]) == (4, "response")
        with pytest.raises(InvalidInput):
            await session.messages(after="x")


async def test_a_result_is_there_at_the_end_or_at_the_time_limit(runtime: Runtime) -> None:
    """D7: of the latest turn; `running` with what is there when the time is over; None before the first."""
    here = Checkpoint()
    async with runtime(scripted([text("One. "), gate(here), text("Two.")])) as outlast:
        session = await outlast.sessions.create()
        assert await session.result(wait=0) is None
        await session.send("Go.")
        await here.reached()
        await wait_for_event(session, "part.delta")
        early = await session.result(wait=0)
        assert early is not None
        assert (early.state, early.text) == ("running", "One. ")
        here.open()
        late = await session.result()
        assert late is not None
        assert (late.state, late.text) == ("completed", "One. Two.")


async def test_a_result_can_wait_until_the_session_has_settled(runtime: Runtime) -> None:
    """D7: with `until="settled"` the answer is that of the turn which the end of the last task started."""
    here = Checkpoint()

    async def survey() -> str:
        await here()
        return "3 m"

    model = scripted(call("survey"), "It is running.", "It is 3 m.")
    async with runtime(model, tools=[survey], budget=BUDGET) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("Measure.")).outcome()
        at_once = await session.result(wait=0, until="settled")
        assert at_once is not None
        assert at_once.text == "It is running."
        here.open()
        settled = await session.result(until="settled")
        assert settled is not None
        assert settled.text == "It is 3 m."


async def test_stop_can_take_the_tasks_along(runtime: Runtime) -> None:
    """D5: parked tasks go on unless `cascade`; then they are cancelled and nothing starts until a person speaks."""
    here, turn_here = Checkpoint(), Checkpoint()

    async def survey() -> str:
        await here()
        return "3 m"

    model = scripted(call("survey"), [gate(turn_here), text("Running.")], "It was canceled.")
    async with runtime(model, tools=[survey], budget=BUDGET) as outlast:
        session = await outlast.sessions.create()
        await session.send("Measure.")
        await turn_here.reached()
        task = await parked(session)
        await session.stop()
        assert not (await outlast.tasks.get(task.id)).is_over
        assert await session.stop(cascade=True) is None
        assert (await outlast.tasks.wait(task.id)).state == "canceled"
        assert (await session.refresh()).state == "held"
        assert (await session.ask("What now?")).text == "It was canceled."


async def test_tasks_are_listed_by_state_and_kind(runtime: Runtime) -> None:
    """B4: page by page; an unknown state is refused."""

    async def survey(n: int) -> int:
        await asyncio.Event().wait()
        return n

    model = scripted(call("survey", n=1), call("survey", n=2), "Both run.", "Canceled.")
    async with runtime(model, tools=[survey], budget=BUDGET) as outlast:
        session = await outlast.sessions.create()
        await (await session.send("Measure.")).outcome()
        newer, older = await outlast.tasks.list(state="running", kind="call")
        first = await outlast.tasks.page(limit=1)
        assert ([each.id for each in first.items], first.next) == ([newer.id], newer.id)
        rest = await outlast.tasks.page(limit=1, before=first.next)
        assert ([each.id for each in rest.items], rest.next) == ([older.id], None)
        assert await outlast.tasks.list(kind="session") == []
        await outlast.tasks.cancel(older.id)
        assert [each.id for each in await outlast.tasks.list(state="canceled")] == [older.id]
        with pytest.raises(InvalidInput):
            await outlast.tasks.list(state="asleep")  # pyright: ignore[reportArgumentType]
        await session.stop(cascade=True)
        await outlast.tasks.wait(newer.id)


async def test_an_ask_takes_its_time_once(runtime: Runtime) -> None:
    """D7: `wait` is the limit of the whole, of the turn and of settling together."""
    here = Checkpoint()
    async with runtime(scripted([text("One. "), gate(here), text("Two.")])) as outlast:
        session = await outlast.sessions.create()
        async with asyncio.timeout(2.9):
            outcome = await session.ask("Go.", wait=1.5)
        assert not outcome.is_over
        here.open()
        await session.settled()


async def test_another_owner_cannot_set_anything(runtime: Runtime) -> None:
    """P7: the handle of a session that is not there any more, or not yours, finds nothing."""
    async with runtime() as outlast:
        await outlast.owned_by("ada").create(external_id="one")
        assert await outlast.owned_by("bob").list(external_id="one") == []
        with pytest.raises(NotFound):
            await outlast.owned_by("bob").get("ses_x")
