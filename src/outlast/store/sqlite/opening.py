"""Opening a SQLite file: migrate it, after a copy, then a writer and readers."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy.exc import DatabaseError

from outlast.clock import Clock
from outlast.errors import OutlastError
from outlast.store import schema
from outlast.store.sqlite.database import SqliteDatabase, make_engine


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
