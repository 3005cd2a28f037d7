"""Opening a database by its URL: a SQLite file, or PostgreSQL."""

import asyncio
import sqlite3
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine

from outlast.clock import Clock
from outlast.errors import InvalidInput
from outlast.store import schema
from outlast.store.postgres import PostgresDatabase
from outlast.store.sqlite import SqliteDatabase, make_engine

ADVISORY_LOCK = 0x0071A57


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
    return Path(url.database).absolute()


async def open_sqlite(path: Path, *, clock: Clock, durability: str) -> SqliteDatabase:
    path.parent.mkdir(parents=True, exist_ok=True)
    await asyncio.to_thread(_migrate_file, path, durability)
    return SqliteDatabase(path, clock=clock, durability=durability)


async def open_postgres(url: sa.URL) -> PostgresDatabase:
    engine = create_async_engine(url)
    try:
        async with engine.begin() as connection:
            await connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})"))
            await connection.run_sync(_migrate)
    finally:
        await engine.dispose()
    return PostgresDatabase(url)


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
    with sqlite3.connect(source) as old, sqlite3.connect(target) as new:
        old.backup(new)
    old.close()
    new.close()
