"""`outlast webhooks`: where you are told of ends and needs."""

from typing import Annotated, Any

import typer

from outlast.cli.asking import ask
from outlast.cli.target import AsJson, Token, Url
from outlast.cli.terminal.tables import print_json, print_table
from outlast.client import Client
from outlast.wire.webhook import DeliveryAnswer, WebhookAnswer

app = typer.Typer(help="Be told of ends and needs by webhooks.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(metavar="WEBHOOK", help="Its id.")]


def _print_secret(webhook: WebhookAnswer, secret: str, *, as_json: bool) -> None:
    if as_json:
        print_json({**webhook.model_dump(mode="json"), "secret": secret})
        return
    print(f"{webhook.id} tells {webhook.url}.")
    print(f"Secret, shown this once: {secret}")


@app.command()
def add(
    address: Annotated[str, typer.Argument(metavar="URL", help="Where messages are sent.")],
    type_: Annotated[
        list[str] | None, typer.Option("--type", help="Such as task.ended; may be given again. Default: all.")
    ] = None,
    is_for_all: Annotated[bool, typer.Option("--all-owners", help="Of all owners; for admins.")] = False,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Be told when turns and tasks end, a task needs somebody, or a session is flagged."""

    async def work(client: Client) -> None:
        made = await client.webhooks.make(address, types=type_, is_for_all=is_for_all)
        _print_secret(made.webhook, made.secret, as_json=as_json)

    ask(url, token, work)


@app.command("list")
def list_(url: Url = None, token: Token = None, as_json: AsJson = False) -> None:
    """List webhooks, and whether they work."""

    async def work(client: Client) -> None:
        found = await client.webhooks.list()
        if as_json:
            print_json(found)
            return
        rows = [(each.id, _how(each), ", ".join(each.types or ["everything"]), each.url) for each in found]
        print_table(("WEBHOOK", "STATE", "TYPES", "URL"), rows, elastic="URL")

    ask(url, token, work)


def _how(webhook: WebhookAnswer) -> str:
    if webhook.state == "off":
        return f"off: {webhook.off_reason}"
    return "active" if webhook.failing_since is None else f"failing since {webhook.failing_since:%Y-%m-%d %H:%M}"


@app.command()
def remove(webhook: Id, url: Url = None, token: Token = None, as_json: AsJson = False) -> None:
    """Remove one, with its log."""

    async def work(client: Client) -> None:
        await client.webhooks.remove(webhook)
        print_json({"removed": webhook}) if as_json else print("Removed.")

    ask(url, token, work)


def _switch(webhook: str, is_active: bool, url: str | None, token: str | None, as_json: bool) -> None:
    async def work(client: Client) -> None:
        changed = await client.webhooks.update(webhook, is_active=is_active)
        print_json(changed) if as_json else print(f"{changed.id} is {changed.state}.")

    ask(url, token, work)


@app.command()
def on(webhook: Id, url: Url = None, token: Token = None, as_json: AsJson = False) -> None:
    """Switch one on again: it is told of what happens from now on, and of what still waits for it."""
    _switch(webhook, True, url, token, as_json)


@app.command()
def off(webhook: Id, url: Url = None, token: Token = None, as_json: AsJson = False) -> None:
    """Switch one off: what happens meanwhile it is never told."""
    _switch(webhook, False, url, token, as_json)


@app.command()
def rotate(webhook: Id, url: Url = None, token: Token = None, as_json: AsJson = False) -> None:
    """Make a new secret; for a day the one before signs too."""

    async def work(client: Client) -> None:
        made = await client.webhooks.rotate(webhook)
        _print_secret(made.webhook, made.secret, as_json=as_json)

    ask(url, token, work)


@app.command("test")
def try_out(webhook: Id, url: Url = None, token: Token = None, as_json: AsJson = False) -> None:
    """Send it a message that tells of nothing."""

    async def work(client: Client) -> None:
        made = await client.webhooks.test(webhook)
        print_json(made) if as_json else print(f"On its way: outlast webhooks log {webhook}")

    ask(url, token, work)


@app.command()
def log(
    webhook: Id,
    state: Annotated[str | None, typer.Option(help="pending, delivered or failed.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500)] = 20,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Show what it was told and is to be told, newest first."""
    chosen: Any = state

    async def work(client: Client) -> None:
        page = await client.webhooks.deliveries(webhook, state=chosen, limit=limit)
        if as_json:
            print_json(page.items)
            return
        rows = [(f"{each.at:%m-%d %H:%M:%S}", each.type, each.state, _came_to(each), each.id) for each in page.items]
        print_table(("AT", "TYPE", "STATE", "CAME TO", "MESSAGE"), rows, elastic="CAME TO")

    ask(url, token, work)


def _came_to(delivery: DeliveryAnswer) -> str:
    said = delivery.error or (f"answered {delivery.status}" if delivery.status else "not sent yet")
    return said if delivery.attempts < 2 else f"{said} (try {delivery.attempts})"


@app.command()
def redeliver(
    webhook: Id,
    message: Annotated[str, typer.Argument(metavar="MESSAGE", help="Its id, of the log.")],
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Send a message again, under the same id."""

    async def work(client: Client) -> None:
        sent = await client.webhooks.redeliver(webhook, message)
        print_json(sent) if as_json else print("On its way.")

    ask(url, token, work)
