"""Archived sessions that are kept for a time only, on both engines: they go whole, and nothing else does (I4)."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic_ai import Tool

from outlast import Outlast, Session
from outlast.duties import retention
from outlast.duties.retention import Kept
from outlast.errors import NotFound
from outlast.store import tables
from outlast.store.unit import Unit
from outlast.testing import call, gate
from outlast.transitions.turns import turn_start
from tests.behaviour.test_delete import files_of, rows_of
from tests.contracts.test_retention import age, noisy, removing
from tests.support.network.server import serving
from tests.support.turns.runtime import Runtime, scripted

KEPT = Kept(output=None, feed=None, deliveries=None, fires=None, archived=timedelta(days=30))
LONG = timedelta(days=31)


async def old(outlast: Outlast[Any, Any]) -> None:
    """Everything happened so long ago."""
    await age(outlast, tables.sessions.c.updated_at, LONG)
    await age(outlast, tables.events.c.at, LONG)


async def removed(runtime: Runtime, outlast: Outlast[Any, Any]) -> int:
    return (await removing(runtime, outlast, KEPT).run())["archived sessions"]


async def archived(outlast: Outlast[Any, Any]) -> Session:
    session = await outlast.sessions.create()
    await session.update(is_archived=True)
    return session


async def test_an_archived_session_goes_with_its_rows_and_files_and_its_owner_reads_why(runtime: Runtime) -> None:
    """I4: counted; it is told as any deletion is, and to nobody else; what is not archived stays."""
    async with runtime(lambda _: "Yes.", tools=[noisy()]) as outlast:
        stays, session = await outlast.sessions.create(), await outlast.sessions.create()
        for each in (stays, session):
            await each.ask("Hello")
            await each.files.add("a.txt", b"text")
        await session.update(is_archived=True)
        assert files_of(runtime, session.id)
        await old(outlast)
        assert await removed(runtime, outlast) == 1
        assert await rows_of(outlast, session.id) == []
        assert files_of(runtime, session.id) == []
        assert (await stays.refresh()).id == stays.id
        assert len(files_of(runtime, stays.id)) == 1
        today = f"{datetime.now(UTC):%Y-%m-%d}"
        for ask in (
            session.refresh(),
            session.send("x"),
            session.view(),
            session.history(),
            session.files.list(),
            session.files.add("b.txt", b"text"),
            anext(session.events()),
        ):
            with pytest.raises(NotFound, match=f"removed on {today}, as the setting keep_archived says") as told:
                await ask
            assert told.value.details["setting"] == "keep_archived"
        with pytest.raises(NotFound, match=r"^There is no such session\.$"):
            await outlast.owned_by("bob").get(session.id)
        async with outlast.events_of("local", follow=False) as stream:
            told = [fed.event async for fed in stream if fed.event.session_id == session.id]
        assert [each.type for each in told] == ["session.deleted"]
        assert await removed(runtime, outlast) == 0


async def test_it_is_kept_for_its_time_after_it_was_archived_or_read(runtime: Runtime) -> None:
    """I4: to put an old session into the archive does not remove it at once, nor while somebody looks at it."""
    async with runtime(lambda _: "Yes.") as outlast:
        session = await outlast.sessions.create()
        await session.ask("Hello")
        await old(outlast)
        await session.update(is_archived=True)
        assert await removed(runtime, outlast) == 0
        await old(outlast)
        await session.update(read_to=(await session.refresh()).last_event)
        assert await removed(runtime, outlast) == 0
        await old(outlast)
        assert await removed(runtime, outlast) == 1


async def runs(outlast: Outlast[Any, Any], session: Session) -> None:
    await session.send("Go.")


async def has_a_task(outlast: Outlast[Any, Any], session: Session) -> None:
    await session.spawn("wait_for_it", {}, wake="silent")


async def is_held(outlast: Outlast[Any, Any], session: Session) -> None:
    def hold(unit: Unit) -> None:
        turn_start.hold(unit, unit.lock(session.id), "stopped")

    await outlast.database.transaction(hold, name="hold")


@pytest.mark.parametrize("open_", [runs, has_a_task, is_held])
async def test_nothing_goes_that_runs_or_is_held(
    runtime: Runtime, open_: Callable[[Outlast[Any, Any], Session], Awaitable[None]]
) -> None:
    """I4: nor what is below or beside it; those after it are looked at all the same."""
    never = asyncio.Event()

    async def wait_for_it() -> None:
        """Wait."""
        await never.wait()

    async with runtime(scripted(gate(never), "Yes."), tools=[Tool(wait_for_it)]) as outlast:
        session, other = await archived(outlast), await archived(outlast)
        await open_(outlast, session)
        await old(outlast)
        assert await removed(runtime, outlast) == 1
        assert (await session.refresh()).is_archived
        with pytest.raises(NotFound, match="keep_archived"):
            await other.refresh()
        never.set()


async def test_sub_sessions_go_with_theirs_and_not_by_themselves(runtime: Runtime) -> None:
    """I4, B8."""
    async with runtime(scripted(call("run_sub_session", prompt="Look.", wait_seconds=30), "Seen.", "Done.")) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Go.")
        await session.settled()
        (child,) = await outlast.sessions.list(parent=session.id)
        await child.update(is_archived=True)
        await old(outlast)
        assert await removed(runtime, outlast) == 0
        await session.update(is_archived=True)
        await old(outlast)
        assert await removed(runtime, outlast) == 2
        for each in (session, child):
            assert await rows_of(outlast, each.id) == []


async def test_notes_of_what_was_removed_go_after_a_year(runtime: Runtime) -> None:
    """I4: then it is as if it had never been."""
    async with runtime(lambda _: "Yes.") as outlast:
        session = await archived(outlast)
        await old(outlast)
        await removed(runtime, outlast)
        await age(outlast, tables.removed_sessions.c.at, timedelta(days=366))
        assert (await removing(runtime, outlast, KEPT).run())["notes of removed sessions"] == 1
        with pytest.raises(NotFound, match=r"^There is no such session\.$"):
            await session.refresh()


async def test_the_setting_makes_it_so_and_without_it_nothing_goes(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I4: as a duty of the engine; archived sessions are kept for ever unless it is set."""
    monkeypatch.setattr(retention, "EVERY", timedelta(milliseconds=20))
    async with runtime(lambda _: "Yes.") as outlast:
        session = await archived(outlast)
        await old(outlast)
        count = sa.select(sa.func.count()).select_from(tables.creations)
        await outlast.sessions.create(idempotency_key="k")
        await age(outlast, tables.creations.c.created_at, LONG)
        async with asyncio.timeout(30):  # the duty was here
            while await outlast.database.read(lambda connection: connection.execute(count).scalar_one()):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert (await session.refresh()).is_archived
    async with runtime(lambda _: "Yes.", keep_archived=timedelta(days=30)) as outlast:
        async with asyncio.timeout(30):
            while session.id in {each.id for each in await outlast.sessions.list(archived=True)}:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        with pytest.raises(NotFound, match="keep_archived"):
            await outlast.sessions.get(session.id)


async def test_http_says_when_and_by_which_setting(runtime: Runtime) -> None:
    """I4, G3: in the answer to whoever owned it, in words and in fields."""
    async with serving(runtime(lambda _: "Yes.")) as server:
        client = await server.client()
        session = (await client.post("/v1/sessions", json={})).json()["id"]
        await client.patch(f"/v1/sessions/{session}", json={"is_archived": True})
        await old(server.outlast)
        await removed(runtime, server.outlast)
        for path in ("", "/events?follow=false", "/view", "/messages", "/files"):
            answer = await client.get(f"/v1/sessions/{session}{path}")
            told = answer.json()
            assert (answer.status_code, told["code"], told["setting"]) == (404, "not_found", "keep_archived"), path
            assert "was removed on" in told["detail"]
