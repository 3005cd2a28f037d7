"""What a database's URL says, and opening a SQLite file."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError

from outlast.clock import Clock
from outlast.errors import InvalidInput, OutlastError
from outlast.store import schema
from outlast.store.sqlite import SqliteDatabase, make_engine


def parse(url: str) -> sa.URL:
    """A URL, or simply the path of a SQLite file."""
    if "://" not in url:
        return sa.URL.create("sqlite", database=url)
    parsed = sa.make_url(url)
    if parsed.get_backend_name() == "sqlite":
        if not parsed.database or parsed.database == ":memory:":
            raise InvalidInput("Outlast keeps its work in a file: give a path, such as sqlite:///outlast.db.")
        return parsed
    if parsed.get_backend_name() in ("postgresql", "postgres"):  # the latter is what many a hoster hands out
        if not parsed.database:
            raise InvalidInput("Name the database in the URL, such as postgresql://user@host/outlast.")
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
