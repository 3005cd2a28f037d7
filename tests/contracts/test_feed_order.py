"""PostgreSQL: what commits later is not missed, and what is written later does not come first."""

import asyncio

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from outlast.clock import SystemClock
from outlast.events.signals import LocalSignals
from outlast.handles.feed import OwnerStream
from outlast.ids import OwnerId, SessionId
from outlast.store.database import Database
from outlast.store.repositories import spending
from outlast.store.unit import Unit
from tests.support.stores.store import OWNER, append, new_session, note, opened

_WAITING = sa.text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
_WAITING_FOR_ROW = sa.text("SELECT count(*) FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted")
_ADVISORY = sa.text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")


async def write(connection: AsyncConnection, session_id: SessionId, text: str) -> None:
    """All of a transaction but its commit."""

    def run(connection: sa.Connection) -> None:
        connection.execute(sa.text("SELECT pg_current_xact_id()"))
        unit = Unit(connection, SystemClock().now())
        unit.append(session_id, [note(text)])
        unit.flush()

    await connection.run_sync(run)


async def waits_for_a_lock(engine: AsyncEngine) -> None:
    async with asyncio.timeout(60):
        while True:
            async with engine.connect() as connection:
                if (await connection.execute(_WAITING)).scalar_one() == 1:
                    return


async def told(database: Database, after: str | None = None) -> list[tuple[str, str]]:
    async with OwnerStream(database, LocalSignals(), OwnerId(OWNER), after=after, follow=False) as stream:
        return [(each.cursor, each.event.data["reason"]) async for each in stream]


async def test_a_transaction_that_commits_later_is_not_missed(postgres_url: str) -> None:
    """E6, P4: the one that was numbered first commits last, if it could; a reader in between loses nothing."""
    async with opened(postgres_url) as database:
        one, two = await new_session(database), await new_session(database)
        engine = create_async_engine(postgres_url)
        async with engine.connect() as first, engine.connect() as second:
            await write(first, one, "first")
            later = asyncio.create_task(write(second, two, "second"))
            await waits_for_a_lock(engine)
            assert await told(database) == []
            await first.commit()
            await later
            [(cursor, text)] = await told(database)
            assert text == "first"
            await second.commit()
            assert [text for _, text in await told(database, cursor)] == ["second"]
            assert [text for _, text in await told(database)] == ["first", "second"]
        await engine.dispose()


async def test_a_transaction_that_is_rolled_back_holds_nobody_up(postgres_url: str) -> None:
    """E6: the next one is numbered after it, and its number is never given again."""
    async with opened(postgres_url) as database:
        one, two = await new_session(database), await new_session(database)
        engine = create_async_engine(postgres_url)
        async with engine.connect() as first, engine.connect() as second:
            await write(first, one, "never")
            later = asyncio.create_task(write(second, two, "second"))
            await waits_for_a_lock(engine)
            await first.rollback()
            await later
            await second.commit()
            assert [text for _, text in await told(database)] == ["second"]
        await engine.dispose()


async def test_owners_do_not_wait_for_each_other(postgres_url: str) -> None:
    """P8: a transaction of one owner that takes its time holds up that owner alone."""
    async with opened(postgres_url) as database:
        slow, other = await new_session(database, owner_id="oskar"), await new_session(database)
        engine = create_async_engine(postgres_url)
        async with engine.connect() as connection:
            await write(connection, slow, "slow")
            async with asyncio.timeout(60):
                await append(database, other, note("quick"))
            assert [text for _, text in await told(database)] == ["quick"]
            await connection.commit()
        await engine.dispose()


async def test_events_of_a_session_keep_their_order_when_transactions_began_in_another(postgres_url: str) -> None:
    """E6: which transaction began first says nothing about which one wrote first."""
    async with opened(postgres_url) as database:
        one = await new_session(database)
        engine = create_async_engine(postgres_url)
        async with engine.connect() as first, engine.connect() as second:
            await first.execute(sa.text("SELECT pg_current_xact_id()"))
            await write(second, one, "earlier")
            await second.commit()
            await write(first, one, "later")
            await first.commit()
            assert [text for _, text in await told(database)] == ["earlier", "later"]
        await engine.dispose()


async def test_who_waits_for_a_row_of_the_owner_does_not_hold_the_owners_feed(postgres_url: str) -> None:
    """E6: whoever has that row and then writes to the feed would wait for it, and neither would ever be done."""
    async with opened(postgres_url) as database:
        session_id = await new_session(database)
        engine = create_async_engine(postgres_url)
        usage = {"input_tokens": 1, "output_tokens": 1, "cache_read_tokens": 0, "cache_write_tokens": 0}

        def spend(unit: Unit) -> None:
            spending.add(unit, OWNER, {**usage, "cost_microdollars": None})

        await database.transaction(spend, name="spend")

        def spend_and_tell(unit: Unit) -> None:
            spend(unit)
            unit.append(session_id, [note("told")])

        async with engine.connect() as holding:
            await holding.execute(sa.text("SELECT * FROM spending FOR UPDATE"))
            later = asyncio.create_task(database.transaction(spend_and_tell, name="spend"))
            async with asyncio.timeout(60):
                while not (await holding.execute(_WAITING_FOR_ROW)).scalar_one():  # noqa: ASYNC110 - in the database
                    await asyncio.sleep(0.01)
            assert (await holding.execute(_ADVISORY)).scalar_one() == 0
            await holding.rollback()
            await later
        await engine.dispose()
