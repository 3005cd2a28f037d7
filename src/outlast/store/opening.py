"""Opening a database by its URL: a SQLite file, or PostgreSQL."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError
from sqlalchemy.ext.asyncio import create_async_engine

from outlast.clock import Clock
from outlast.errors import InvalidInput, OutlastError
from outlast.store import jobs, schema
from outlast.store.connection import connect
from outlast.store.postgres import FOREIGN, PostgresDatabase, unavailable
from outlast.store.sqlite import SqliteDatabase, make_engine

ADVISORY_LOCK = 0x0071A57
_HEARS_WITHIN = 5.0


def parse(url: str) -> sa.URL:
    """A URL, or simply the path of a SQLite file."""
    if "://" not in url:
        return sa.URL.create("sqlite", database=url)
    parsed = sa.make_url(url)
    if parsed.get_backend_name() == "sqlite":
        if not parsed.database or parsed.database == ":memory:":
            raise InvalidInput("Outlast keeps its work in a file: give a path, such as sqlite:///outlast.db.")
        return parsed
    if parsed.get_backend_name() == "postgresql":
        return parsed.set(drivername="postgresql+asyncpg")
    raise InvalidInput(f"{parsed.drivername} is not supported: use a SQLite file or a postgresql:// URL.")


def sqlite_path(url: sa.URL) -> Path:
    assert url.database is not None
    # Links are followed: two names of one file must not look like two databases.
    return Path(url.database).resolve()


async def open_sqlite(path: Path, *, clock: Clock, durability: str) -> SqliteDatabase:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        await asyncio.to_thread(_migrate_file, path, durability)
    except (DatabaseError, OSError) as exc:
        why = exc.orig if isinstance(exc, DatabaseError) else exc
        raise OutlastError(
            f"{path} cannot be opened as a SQLite database: {why}. Check the path, its permissions and the disk.",
        ) from exc
    return SqliteDatabase(path, clock=clock, durability=durability)


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


def _migrate_file(path: Path, durability: str) -> None:
    engine = make_engine(path, durability=durability)
    try:
        with engine.connect() as connection, connection.begin():
            found = schema.version(connection)
            if schema.is_current(connection):
                return
            if found is not None:
                _copy(path, path.with_name(f"{path.name}.before-{found}"))
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            schema.upgrade(connection)
    finally:
        engine.dispose()


def _copy(source: Path, target: Path) -> None:
    """A consistent copy of the file as it was before the migration."""
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)
