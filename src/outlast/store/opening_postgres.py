"""Opening PostgreSQL: migrate it, then a pool; apart from files, which need none of what it imports."""

import asyncio
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from outlast.errors import InvalidInput
from outlast.store import jobs, schema
from outlast.store.connection import connect
from outlast.store.postgres import FOREIGN, PostgresDatabase, sqlstate, unavailable

ADVISORY_LOCK = 0x0071A57
_HEARS_WITHIN = 5.0
_REFUSED = ("28", "3D", "42501")
"""SQLSTATEs that no waiting ends: a role that may not come in, no such database, no right to make tables."""


async def open_postgres(url: sa.URL, *, direct: sa.URL | None = None, connections: int = 10) -> PostgresDatabase:
    """Migrate, then open a pool. `direct` leads past a pooler to the same database, or it is refused."""
    engine = create_async_engine(direct or url)
    try:
        async with engine.begin() as connection:
            await connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})"))
            await connection.run_sync(_migrate)
            has_old_jobs = await jobs.install((await connection.get_raw_connection()).driver_connection)
        if has_old_jobs:
            async with engine.connect() as connection:
                await jobs.upgrade((await connection.get_raw_connection()).driver_connection)
    except FOREIGN as exc:
        if sqlstate(exc).startswith(_REFUSED):
            why = exc.orig if isinstance(exc, DBAPIError) else exc
            raise InvalidInput(
                f"PostgreSQL does not let {url.username!r} use the database {url.database!r}: {why}. Check the URL, "
                "and that the database was created and the role may make tables in it."
            ) from exc
        raise unavailable(exc)  # noqa: B904 - it has its cause, or is the error itself
    finally:
        await engine.dispose()
    database = PostgresDatabase(url, pool_size=connections, is_pooled=direct is not None)
    if direct is not None:
        try:
            await _check_direct(database, direct)
        except BaseException:
            await database.close()
            raise
    return database


async def _check_direct(database: PostgresDatabase, direct: sa.URL) -> None:
    """What is said through the pool must be heard by whoever listens past it."""
    heard, channel = asyncio.Event(), f"outlast_check_{uuid4().hex}"

    def hear(*_: object) -> None:
        heard.set()

    connection = await connect(direct, name="check", when_closed=lambda: None)
    try:
        await connection.add_listener(channel, hear)
        await database.transaction(
            lambda unit: unit.connection.execute(sa.text("SELECT pg_notify(:channel, '')"), {"channel": channel}),
            name="check direct",
        )
        async with asyncio.timeout(_HEARS_WITHIN):
            await heard.wait()
    except TimeoutError as exc:
        raise InvalidInput(
            "direct_database does not lead to the same database as database, or is behind a pooler too: nothing "
            "that was said there was heard. Give a URL that leads straight to the PostgreSQL server."
        ) from exc
    finally:
        await connection.close()


def _migrate(connection: sa.Connection) -> None:
    if not schema.is_current(connection):
        schema.upgrade(connection)
