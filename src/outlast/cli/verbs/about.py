"""Verbs about the server itself: me, usage, open, pause, resume."""

from typing import Annotated

import typer

from outlast.cli.asking import ask
from outlast.cli.target import AsJson, Token, Url
from outlast.cli.terminal.tables import print_facts, print_json
from outlast.client import Client
from outlast.wire.about import PeriodAnswer


def me(url: Url = None, token: Token = None, as_json: AsJson = False) -> None:
    """Show who you are to the server, what you may do there, and what it is."""

    async def work(client: Client) -> None:
        found = await client.me()
        if as_json:
            print_json(found)
            return
        until = None if found.expires_at is None else f"{found.expires_at:%Y-%m-%d %H:%M} UTC"
        facts = [("owner", found.owner_id), ("key", found.name), ("role", found.role), ("scope", found.scope)]
        print_facts([*facts, ("until", until), ("server", f"outlast {found.version}, {found.engine}")])

    ask(url, token, work)


def usage(
    owner: Annotated[str | None, typer.Option(help="Of another owner, for admins.")] = None,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Show what was used today and this week, and how much of the limit that is."""

    async def work(client: Client) -> None:
        report = await client.usage(owner)
        if as_json:
            print_json(report)
            return
        percent = None if report.percent is None else f"{report.percent} % of today's limit"
        limit = None if report.limit_microdollars is None else _money(report.limit_microdollars)
        facts = [("today", _period(report.today)), ("this week", _period(report.week)), ("limit a day", limit)]
        print_facts([*facts, ("spent", percent), ("next day", f"{report.resets_at:%Y-%m-%d %H:%M} UTC")])

    ask(url, token, work)


def _period(used: PeriodAnswer) -> str:
    said = f"{used.requests} requests, {used.input_tokens:,} tokens in, {used.output_tokens:,} out"
    if used.cost_microdollars is not None:
        said += f", {_money(used.cost_microdollars)}"
    return f"{said} ({used.unpriced_requests} of unknown cost)" if used.unpriced_requests else said


def _money(microdollars: int) -> str:
    return f"${microdollars / 1_000_000:,.4f}"


def open_(url: Url = None, token: Token = None, as_json: AsJson = False) -> None:
    """Print a link that opens the server's page in a browser: it works once, within ten minutes."""

    async def work(client: Client) -> None:
        link = await client.login_link()
        print_json({"link": link}) if as_json else print(link)

    ask(url, token, work)


def pause(url: Url = None, token: Token = None, as_json: AsJson = False) -> None:
    """Let the server start nothing new, until `resume`; it accepts everything, and what runs goes on."""

    async def work(client: Client) -> None:
        paused = await client.pause()
        said = f"Paused by {paused.by} since {paused.since:%Y-%m-%d %H:%M} UTC. `outlast resume` starts what waits."
        print_json(paused) if as_json else print(said)

    ask(url, token, work)


def resume(url: Url = None, token: Token = None, as_json: AsJson = False) -> None:
    """End a pause: what was accepted meanwhile is started."""

    async def work(client: Client) -> None:
        answer = await client.unpause()
        print_json(answer) if as_json else print("Work goes on.")

    ask(url, token, work)
