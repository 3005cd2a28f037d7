"""`outlast connections`: your credentials for providers, which tools ask for."""

import getpass
import sys
from typing import Annotated

import typer

from outlast.cli.asking import ask, say
from outlast.cli.exits import Exit
from outlast.cli.target import AsJson, Token, Url
from outlast.cli.terminal.tables import print_json, print_table
from outlast.client import Client

app = typer.Typer(help="Set, list and remove credentials for providers.", no_args_is_help=True)

Provider = Annotated[str, typer.Argument(metavar="PROVIDER", help="Such as github.")]


@app.command("set")
def set_(
    provider: Provider,
    value: Annotated[
        str | None, typer.Argument(metavar="[-]", help="`-`: read the value from stdin. Else it is asked for.")
    ] = None,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Set a credential. It is typed without echo, or read from stdin, and never shown again."""
    if value not in (None, "-"):
        say("A value on the command line stays in the shell's history: leave it out, or use - and a pipe.")
        raise typer.Exit(Exit.USAGE)
    read = _piped() if value == "-" else _typed(provider)

    async def work(client: Client) -> None:
        kept = await client.connections.set(provider, read)
        print_json(kept) if as_json else print(f"Kept, for {kept.provider}.")

    ask(url, token, work)


@app.command("list")
def list_(url: Url = None, token: Token = None, as_json: AsJson = False) -> None:
    """List connections by name; never their values."""

    async def work(client: Client) -> None:
        found = await client.connections.list()
        if as_json:
            print_json(found)
            return
        rows = [
            (
                each.provider,
                "ready" if each.state == "ready" else "unreadable: set it again",
                f"{each.updated_at:%Y-%m-%d}",
                "never" if each.used_at is None else f"{each.used_at:%Y-%m-%d}",
            )
            for each in found
        ]
        print_table(("PROVIDER", "STATE", "SET", "USED"), rows, elastic="PROVIDER")

    ask(url, token, work)


@app.command()
def remove(provider: Provider, url: Url = None, token: Token = None, as_json: AsJson = False) -> None:
    """Remove a credential. From now on no tool is given it; what runs with it goes on."""

    async def work(client: Client) -> None:
        await client.connections.remove(provider)
        print_json({"removed": provider}) if as_json else print("Removed.")

    ask(url, token, work)


@app.command()
def rekey(url: Url = None, token: Token = None, as_json: AsJson = False) -> None:
    """Encrypt the connections of all owners with the server's first key, for admins. Safe to repeat."""

    async def work(client: Client) -> None:
        done = await client.rekey_connections()
        if as_json:
            print_json(done)
            return
        print(f"Moved to the first key: {done.moved}.")
        if done.unreadable:
            say(f"No key opens {done.unreadable} of them: their owners must set them again.")

    ask(url, token, work)


def _piped() -> str:
    """Without the newline that a pipe or a file ends with."""
    return sys.stdin.read().removesuffix("\n").removesuffix("\r")


def _typed(provider: str) -> str:
    if not sys.stdin.isatty():
        say(f"Nobody is there to type it: pipe it in, with `outlast connections set {provider} -`.")
        raise typer.Exit(Exit.USAGE)
    try:
        return getpass.getpass(f"Value for {provider}: ")
    except (EOFError, KeyboardInterrupt):
        say("Nothing was set.")
        raise typer.Exit(Exit.INTERRUPTED) from None
