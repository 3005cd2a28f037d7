"""`outlast db`: a database file, without a server."""

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from outlast.cli.asking import say
from outlast.cli.exits import Exit

app = typer.Typer(help="Upgrade and copy a database file.", no_args_is_help=True)
Database = Annotated[Path, typer.Argument(metavar="DATABASE", help="The SQLite file.")]
_FILES = ".files"


@app.command()
def upgrade(database: Database = Path("outlast.db")) -> None:
    """Bring a database to the schema of this version, as every start does. A copy of the old one is kept beside it."""
    from outlast.clock import SystemClock
    from outlast.engines.embedded import FileLock
    from outlast.errors import OutlastError
    from outlast.store.opening import open_sqlite

    async def work() -> None:
        lock = FileLock(database.resolve())
        lock.acquire()
        try:
            await (await open_sqlite(database.resolve(), clock=SystemClock(), durability="full")).close()
        finally:
            lock.release()

    _must_exist(database)
    try:
        asyncio.run(work())
    except OutlastError as exc:
        say(exc.message)
        raise typer.Exit(Exit.FAILED) from exc
    print(f"{database} has the schema of this version.")


@app.command()
def backup(
    database: Database,
    copy: Annotated[Path, typer.Argument(metavar="COPY", help="The file to write; it must not be there yet.")],
) -> None:
    """Copy a database and the large values beside it, also while a server works with it."""
    _must_exist(database)
    if copy.exists() or _beside(copy).exists():
        say(f"{copy} is already there: name another file.")
        raise typer.Exit(Exit.FAILED)
    copy.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    # After the rows: a file is there before the first row that names it.
    if _beside(database).is_dir():
        shutil.copytree(_beside(database), _beside(copy))
    print(f"Copied to {copy}.")


def _beside(database: Path) -> Path:
    return database.with_name(database.name + _FILES)


def _must_exist(database: Path) -> None:
    if not database.is_file():
        say(f"There is no file {database}.")
        raise typer.Exit(Exit.NOT_FOUND)
