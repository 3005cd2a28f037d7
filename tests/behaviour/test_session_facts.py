"""What a list of sessions says of each: its title, what was read, how the last turn ended, how much is open."""

from pydantic_ai.messages import ModelMessage

from outlast.testing import gate, text
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.runtime import Runtime, events_of, scripted


async def test_the_first_message_gives_the_title_and_a_person_gives_a_better_one(runtime: Runtime) -> None:
    """D10: whole words of the first message; a person's title wins, also after it was taken away again."""
    async with runtime(scripted("Hello.")) as outlast:
        session = await outlast.sessions.create()
        assert (session.title, session.title_from) == (None, None)
        await session.ask("Measure the river, and then the lake, and whatever else of the kind there is around here")
        await session.refresh()
        assert session.title == "Measure the river, and then the lake, and whatever else of…"
        assert session.title_from == "message"
        copy = await outlast.sessions.fork(session.id)
        assert copy.title_from == "message"
        await session.update(title="River")
        assert (session.title, session.title_from) == ("River", "person")
        assert session.preview is not None
        assert session.preview.startswith("Measure the river")
        await session.update(title=None)
        assert session.title_from == "message"


async def test_reading_on_leaves_the_log_as_it_is(runtime: Runtime) -> None:
    """K2: a mark at each event that somebody sees tells one thing, that the session is no longer unread."""
    async with runtime(scripted("Hello.")) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Hi")
        last = (await session.refresh()).last_event
        for number in range(1, last + 1):
            await session.update(read_to=number)
        assert (session.read_to, session.is_unread) == (last, False)
        told = await events_of(session, "session.changed")
        assert [each.data for each in told] == [{"read_to": told[0].data["read_to"], "is_unread": False}]
        await session.update(read_to=session.last_event)
        assert len(await events_of(session, "session.changed")) == 1


async def test_a_session_tells_how_its_last_turn_ended_and_what_is_open(runtime: Runtime) -> None:
    """D10, K2: completed, failed with words, stopped; messages that wait."""
    here = Checkpoint()

    def fails(_: list[ModelMessage]) -> str:
        raise RuntimeError("the river is gone")

    async with runtime(scripted("One.", fails, [gate(here), text("Two.")])) as outlast:
        session = await outlast.sessions.create()
        assert session.last_turn is None
        outcome = await session.ask("First")
        ended = (await session.refresh()).last_turn
        assert ended is not None
        assert (ended.id, ended.state, ended.error, ended.reason) == (outcome.turn_id, "completed", None, None)
        await session.ask("Second")
        failed = (await session.refresh()).last_turn
        assert failed is not None
        assert failed.error is not None
        assert failed.state == "failed"
        await session.send("Third")
        await here.reached()
        await session.send("Wait", when_busy="queue")
        [listed] = await outlast.sessions.list()
        assert (listed.counts.waiting_messages, listed.counts.open_tasks) == (1, 0)
        assert listed.last_turn == failed
        await session.stop()
        stopped = (await session.refresh()).last_turn
        assert stopped is not None
        assert stopped.state == "stopped"
