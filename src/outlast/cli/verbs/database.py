"""`outlast db`: a database, without a server."""

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from outlast.cli.asking import say
from outlast.cli.exits import Exit

app = typer.Typer(help="Upgrade and copy a database.", no_args_is_help=True)
Database = Annotated[Path, typer.Argument(metavar="DATABASE", help="The SQLite file.")]
_FILES = ".files"


@app.command()
def upgrade(
    database: Annotated[
        str, typer.Argument(metavar="DATABASE", help="A SQLite file, a postgresql:// URL, or the app that has one.")
    ] = "outlast.db",
) -> None:
    """Bring a database to the schema of this version, as every start does.

    A copy of an old SQLite file is kept beside it.
    """
    from pydantic_ai import Agent

    from outlast.cli.app_file import load_app
    from outlast.errors import OutlastError
    from outlast.runtime import Outlast

    is_url = "://" in database
    is_app = not is_url and (database.endswith(".py") or ":" in database)
    if not is_url and not is_app:
        _must_exist(Path(database))
    try:
        outlast = load_app(database) if is_app else Outlast(Agent(), database=database)
        asyncio.run(outlast.upgrade())
    except OutlastError as exc:
        say(exc.message)
        raise typer.Exit(Exit.FAILED) from exc
    # A URL may hold a password.
    print(f"{'The database' if is_url else database} has the schema of this version.")


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
