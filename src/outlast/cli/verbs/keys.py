"""`outlast keys`: API keys for the server's owners, for admins."""

import base64
import secrets
from datetime import timedelta
from typing import Annotated, Literal

import typer

from outlast.cli.asking import ask, say
from outlast.cli.target import AsJson, Token, Url
from outlast.cli.terminal.tables import print_json, print_table
from outlast.client import Client
from outlast.wire.key import KeyAnswer

app = typer.Typer(help="Make, list and revoke API keys.", no_args_is_help=True)


@app.command()
def make(
    owner: Annotated[str, typer.Argument(help="Whose sessions it opens.")],
    name: Annotated[str, typer.Argument(help="What it is for.")],
    role: Annotated[Literal["user", "admin"], typer.Option(help="An admin manages keys.")] = "user",
    scope: Annotated[
        Literal["read", "propose", "write"],
        typer.Option(help="With `read` it changes nothing; with `propose` it decides no approvals."),
    ] = "write",
    days: Annotated[float | None, typer.Option(min=0.001, help="It expires after so many days.")] = None,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Make a key. It is shown now and never again: stdout has the key and nothing else."""

    async def work(client: Client) -> None:
        expires_in = None if days is None else timedelta(days=days)
        made, text = await client.keys.make(owner, name, role=role, scope=scope, expires_in=expires_in)
        if as_json:
            print_json({**made.model_dump(), "key": text})
        else:
            say(f"Key {made.id} for {owner}; keep it, it is not shown again:")
            print(text)

    ask(url, token, work)


@app.command("list")
def list_(
    owner: Annotated[str | None, typer.Option(help="Only those of this owner.")] = None,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """List keys; never their text."""

    async def work(client: Client) -> None:
        found = await client.keys.list(owner)
        if as_json:
            print_json(found)
        else:
            rows = [(each.id, each.owner_id, each.name, f"{each.role}, {each.scope}", _state(each)) for each in found]
            print_table(("KEY", "OWNER", "NAME", "MAY", "STATE"), rows, elastic="NAME")

    ask(url, token, work)


@app.command("generate-encryption")
def generate_encryption() -> None:
    """Make a key for OUTLAST_ENCRYPTION_KEYS, here, without a server: stdout has the key and nothing else.

    The setting is a JSON list: the first key encrypts, all decrypt.
    """
    print(base64.urlsafe_b64encode(secrets.token_bytes(32)).decode())


def _state(key: KeyAnswer) -> str:
    if key.revoked_at is not None:
        return f"revoked {key.revoked_at:%Y-%m-%d}"
    used = "never used" if key.used_at is None else f"used {key.used_at:%Y-%m-%d}"
    return used if key.expires_at is None else f"{used}, expires {key.expires_at:%Y-%m-%d}"


@app.command()
def revoke(
    key: Annotated[str, typer.Argument(metavar="KEY", help="The id of a key.")],
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a key, and with it the links and cookies that were made with it: they open nothing from now on."""

    async def work(client: Client) -> None:
        await client.keys.revoke(key)
        print_json({"revoked": key}) if as_json else print("Revoked.")

    ask(url, token, work)
