"""Verbs about files: get, list, put, delete."""

import asyncio
import sys
from mimetypes import guess_type
from pathlib import Path
from typing import Annotated

import typer

from outlast.cli.asking import ask
from outlast.cli.target import AsJson, Token, Url
from outlast.cli.terminal.stream import raw
from outlast.cli.terminal.tables import print_json, print_table
from outlast.client import Client

app = typer.Typer(no_args_is_help=True, help="Files of sessions: what people gave, and what tools made.")


@app.callback()
def files() -> None:
    """Files of sessions: what people gave, and what tools made."""


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
    if to is not None and (to.exists() or to.is_symlink()):
        raise typer.BadParameter(f"{to} is there already: give another name.")

    async def work(client: Client) -> None:
        found = await client.files.get(file)
        if to is None:
            out = raw(sys.stdout)
            out.buffer.write(found.data)
            out.flush()
        else:
            _write(to, found.data)

    ask(url, token, work)


def _write(to: Path, data: bytes) -> None:
    try:
        with to.open("xb") as target:
            target.write(data)
    except OSError as exc:
        raise typer.BadParameter(f"{to} cannot be written: {exc.strerror}.") from exc


@app.command("list")
def list_(
    session: Annotated[str, typer.Argument(help="The session.")],
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """The files of a session by name."""

    async def work(client: Client) -> None:
        found = await (await client.sessions.get(session)).files.list()
        if as_json:
            print_json(found)
            return
        rows = [(each.id, each.name, each.media_type, f"{each.bytes:,}", each.origin) for each in found]
        print_table(("FILE", "NAME", "TYPE", "BYTES", "FROM"), rows, elastic="NAME")

    ask(url, token, work)


@app.command()
def put(
    session: Annotated[str, typer.Argument(help="The session.")],
    file: Annotated[Path, typer.Argument(help="What to keep with it.", exists=True, dir_okay=False, readable=True)],
    name: Annotated[str | None, typer.Option(help="What it is called there; else as it is here.")] = None,
    url: Url = None,
    token: Token = None,
) -> None:
    """Keep a file with a session; its id can go with a message, and tools open it by name or id."""
    if not file.is_file():
        raise typer.BadParameter(f"{file} is no file: a pipe or a device may have no end.")

    async def work(client: Client) -> None:
        data = await asyncio.to_thread(file.read_bytes)
        media_type = guess_type(file.name)[0] or "application/octet-stream"
        kept = await (await client.sessions.get(session)).files.add(name or file.name, data, media_type)
        print(f"{kept.id}  {kept.name}")

    ask(url, token, work)


@app.command()
def delete(file: Annotated[str, typer.Argument(help="Its id.")], url: Url = None, token: Token = None) -> None:
    """Delete a file. Those of messages and calls stay as long as their session."""

    async def work(client: Client) -> None:
        await client.files.delete(file)

    ask(url, token, work)
