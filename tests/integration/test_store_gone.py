"""The database goes away for a while: turns wait at their next commit, nothing is lost, nothing is told twice."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import exc as exc_types

from outlast.errors import StoreUnavailable
from outlast.store.database import Moment
from outlast.store.repositories import turns
from outlast.store.unit import Unit
from outlast.testing import call, gate, text
from outlast.transitions import turn
from outlast.transitions.tasks import task_moves
from tests.support.models.asking import answer, asks
from tests.support.moments.checkpoint import Checkpoint
from tests.support.turns.background import BUDGET, parked_session
from tests.support.turns.runtime import Runtime, event_types, events_of, scripted, wait_for_event


class Trouble:
    """Fails every commit while it lasts, as a full disk does; counts the commits it refused."""

    def __init__(self) -> None:
        self.is_on = False
        self.refused: list[str] = []
        self._loop = asyncio.get_running_loop()
        self._has_refused = asyncio.Event()

    def __call__(self, name: str, moment: Moment) -> None:
        if self.is_on and moment == "before":
            self.refused.append(name)
            self._loop.call_soon_threadsafe(self._has_refused.set)
            raise exc_types.OperationalError("COMMIT", {}, Exception("database or disk is full"))

    async def has_refused(self) -> None:
        await self._has_refused.wait()


async def test_a_running_turn_waits_for_the_database(tmp_path: Path) -> None:
    """DESIGN 4, P1: the turn goes on where it was when commits work again; a message meanwhile is refused."""
    ran: list[str] = []
    in_tool = Checkpoint()

    async def measure(river: str) -> str:
        ran.append(river)
        await in_tool()
        return "six metres"

    model = scripted(call("measure", river="Glomma"), [text("It is six metres deep.", chunk=3)])
    async with Runtime(tmp_path / "app.db")(model, tools=[measure]) as outlast:
        trouble = Trouble()
        outlast.database.watcher = trouble
        session = await outlast.sessions.create()
        sent = await session.send("How deep is it?")
        await in_tool.reached()
        trouble.is_on = True
        in_tool.open()
        await trouble.has_refused()
        with pytest.raises(StoreUnavailable):
            await session.send("And the Rhine?")
        trouble.is_on = False
        outcome = await sent.outcome(wait=30)
        assert (outcome.state, outcome.text) == ("completed", "It is six metres deep.")
        assert ran == ["Glomma"], "finished means never redone"
        types = await event_types(session)
        assert types.count("call.ended") == types.count("turn.completed") == 1
        assert [event.data["text"] for event in await events_of(session, "input.accepted")] == ["How deep is it?"]
        told = "".join(event.data["text"] for event in await events_of(session, "part.delta") if _is_text(event.data))
        assert "It is six metres deep." in told
        assert len(await session.history()) == 4


def _is_text(data: dict[str, str]) -> bool:
    return data["part"].startswith("1.2")


async def test_a_stop_is_heard_after_the_database_could_not_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P6: a moment without reads does not make a running turn deaf."""
    answering, can_read_again = Checkpoint(), asyncio.Event()
    async with Runtime(tmp_path / "app.db")([[gate(answering), text("Never said.")]]) as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("hello")
        await answering.reached()
        read, failures = outlast.database.glance, iter(range(3))

        async def broken(fn: Callable[[sa.Connection], Any]) -> Any:
            if next(failures, None) is not None:
                raise StoreUnavailable("for a moment")
            can_read_again.set()
            return await read(fn)

        monkeypatch.setattr(outlast.database, "glance", broken)
        await outlast.database.transaction(
            lambda unit: turn.request_stop(unit, session.id, owner_id="local"), name="hold"
        )
        await can_read_again.wait()
        assert (await sent.outcome(wait=30)).state == "stopped"


@pytest.mark.parametrize("words", ["half a pair: \ud83d", "\udc00 and another \ud83d"])
async def test_text_that_no_database_can_hold_still_ends_the_turn(tmp_path: Path, words: str) -> None:
    """P4: whatever a model sends, no reader hangs; the turn has an end and the session goes on."""
    async with Runtime(tmp_path / "app.db")(scripted([text(words)], "Fine again.")) as outlast:
        session = await outlast.sessions.create()
        outcome = await (await session.send("hello")).outcome(wait=30)
        assert outcome.is_over
        again = await (await session.send("hello again")).outcome(wait=30)
        assert again.text == "Fine again."


async def test_a_turn_given_back_while_it_runs_here_is_taken_up_again(tmp_path: Path) -> None:
    """P4, P5: the first attempt learns that it lost, the second one runs to the end, in the same process."""
    answering = Checkpoint()
    model = scripted([gate(answering), text("The first attempt.")], "The second attempt.")
    async with Runtime(tmp_path / "app.db")(model) as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("hello")
        running = await sent.turn()
        await answering.reached()

        def give_back(unit: Unit) -> None:
            row = turns.get(unit.connection, running.id)
            assert row is not None
            turn.requeue(unit, row, has_crashed=True)

        await outlast.database.transaction(give_back, name="give back")
        outcome = await sent.outcome(wait=30)
        assert (outcome.state, outcome.text, outcome.attempt) == ("completed", "The second attempt.", 2)
        types = await event_types(session)
        assert types.count("turn.completed") == types.count("turn.resumed") == 1


async def test_a_reader_that_fails_harms_nobody(tmp_path: Path) -> None:
    """P8: one reader raises, one is cut off, one goes on; the turn and the last reader do not notice."""
    answering = Checkpoint()
    async with Runtime(tmp_path / "app.db")([[text("One. "), gate(answering), text("Two.")]]) as outlast:
        session = await outlast.sessions.create()
        sent = await session.send("hello")

        async def fails() -> None:
            async with session.events() as stream:
                async for _ in stream:
                    raise ValueError("a broken reader")

        async def waits_for_ever() -> None:
            async with session.events() as stream:
                async for _ in stream:
                    continue

        cut_off = asyncio.create_task(waits_for_ever())
        with pytest.raises(ValueError, match="a broken reader"):
            await fails()
        await answering.reached()
        cut_off.cancel()
        await asyncio.wait({cut_off})
        answering.open()
        await wait_for_event(session, "turn.completed")
        assert (await sent.outcome(wait=30)).text == "One. Two."


async def test_a_control_tool_waits_for_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DESIGN 4, P6: the model is told what became of its cancel, not that the database was away."""
    here = Checkpoint()

    async def survey() -> str:
        await here()
        return "2.4 m"

    failures = [StoreUnavailable("for a moment") for _ in range(3)]
    plain = task_moves.request_cancel

    def request_cancel(*arguments: Any, **options: Any) -> Any:
        if failures:
            raise failures.pop()
        return plain(*arguments, **options)

    monkeypatch.setattr(task_moves, "request_cancel", request_cancel)
    model = asks({"task_id": "$task", "cancel": True})
    async with Runtime(tmp_path / "app.db")(model, tools=[survey], budget=BUDGET) as outlast:
        session, task = await parked_session(outlast)
        await (await session.send("Cancel it.")).outcome(wait=30)
        (told,) = (await answer(session))["tasks"]
        assert (told["task_id"], told["state"], failures) == (task.id, "canceled", [])


async def test_a_cancel_is_heard_after_the_database_could_not_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P6: a moment without reads does not make a parked call deaf."""
    here, is_canceled = Checkpoint(), asyncio.Event()

    async def survey() -> str:
        try:
            await here()
        except asyncio.CancelledError:
            is_canceled.set()
            raise
        return "2.4 m"

    async with Runtime(tmp_path / "app.db")(asks(), tools=[survey], budget=BUDGET) as outlast:
        session, task = await parked_session(outlast)
        await (await session.send("Never mind.")).outcome(wait=30)
        read, failures = outlast.database.glance, iter(range(3))

        async def broken(fn: Callable[[sa.Connection], Any]) -> Any:
            if next(failures, None) is not None:
                raise StoreUnavailable("for a moment")
            return await read(fn)

        monkeypatch.setattr(outlast.database, "glance", broken)
        await outlast.database.transaction(
            lambda unit: task_moves.request_cancel(unit, task.id, owner_id="local"), name="cancel"
        )
        async with asyncio.timeout(60):
            await is_canceled.wait()
