"""Verbs about files: get."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from outlast.cli.asking import ask
from outlast.cli.target import Token, Url
from outlast.cli.terminal.stream import raw
from outlast.client import Client

app = typer.Typer(no_args_is_help=True, help="Files of messages, calls and tasks.")


@app.callback()
def files() -> None:
    """Files of messages, calls and tasks."""


@app.command()
def get(
    file: Annotated[str, typer.Argument(help="Its id, as tasks, messages and events tell it.")],
    to: Annotated[
        Path | None, typer.Option(help="Where to write it; without it, into a pipe or file as it is.")
    ] = None,
    url: Url = None,
    token: Token = None,
) -> None:
    """Read a file. Nothing that is there already is written over."""
    if to is None and raw(sys.stdout).isatty():
        raise typer.BadParameter("Say where it goes with --to, or use a pipe: a terminal would obey what it is sent.")
    if to is not None and to.exists():
        raise typer.BadParameter(f"{to} is there already: give another name.")

    async def work(client: Client) -> None:
        found = await client.files.get(file)
        if to is None:
            out = raw(sys.stdout)
            out.buffer.write(found.data)
            out.flush()
        else:
            with to.open("xb") as target:
                target.write(found.data)

    ask(url, token, work)
