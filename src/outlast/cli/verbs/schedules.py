"""`outlast schedules`: what is to happen in your sessions, and when."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, cast

import typer
from pydantic_core import from_json

from outlast.cli.asking import ask, say
from outlast.cli.target import AsJson, Token, Url
from outlast.cli.terminal.tables import print_facts, print_json, print_table
from outlast.client import Client
from outlast.wire.schedule import Fire, MissedPolicy, OverlapPolicy, Preview, Schedule

app = typer.Typer(help="Make, list, pause, trigger and delete schedules.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(metavar="SCHEDULE", help="The id of a schedule.")]
Cron = Annotated[str | None, typer.Option("--cron", metavar="EXPR", help="Five fields, such as '0 8 * * 1-5'.")]
At = Annotated[str | None, typer.Option("--at", metavar="TIME", help="One time, such as 2027-03-28T09:00:00+02:00.")]
In = Annotated[str | None, typer.Option("--in", metavar="DELAY", help="From now, such as '20 minutes'.")]
Zone = Annotated[str | None, typer.Option("--zone", metavar="ZONE", help="Such as Europe/Berlin; else UTC.")]
Missed = Annotated[
    MissedPolicy | None, typer.Option("--missed", help="For times that pass while the server is down or paused.")
]
Overlap = Annotated[
    OverlapPolicy | None, typer.Option("--overlap", help="For times that come while an earlier fire is not over.")
]
Title = Annotated[str | None, typer.Option("--title", metavar="TEXT", help="A few words for people.")]
Args = Annotated[str | None, typer.Option("--args", metavar="JSON", help="Of the tool, an object.")]
Wanted = Annotated[
    str | None,
    typer.Option("--when", metavar="JSON", help='Makes it a monitor: {"kind": "changed"}, or see the documentation.'),
]


@app.command()
def create(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The id of a session.")],
    text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help="What it says to the session.")] = None,
    tool: Annotated[
        str | None, typer.Option("--tool", metavar="NAME", help="A tool to run in place of a text.")
    ] = None,
    args: Args = None,
    when: Wanted = None,
    cron: Cron = None,
    at: At = None,
    delay: In = None,
    zone: Zone = None,
    title: Title = None,
    missed: Missed = None,
    overlap: Overlap = None,
    key: Annotated[str | None, typer.Option("--key", metavar="KEY", help="With the same key it is made once.")] = None,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Say a text to a session, or run a tool of its agent, at the times of one of --cron, --at and --in."""
    given, condition = _object(args, "--args"), _object(when, "--when")

    async def work(client: Client) -> None:
        made = await client.schedules.create(
            session,
            text,
            tool=tool,
            args=given,
            condition=condition,
            cron=cron,
            at=at,
            delay=delay,
            zone=zone or "UTC",
            title=title,
            missed=missed or "run_once",
            overlap=overlap or "skip",
            idempotency_key=key,
        )
        if as_json:
            print_json(made)
            return
        print(made.id)
        say(f"Next: {_time(made.next_at)}")

    ask(url, token, work)


@app.command("list")
def list_(
    session: Annotated[str | None, typer.Option("--session", metavar="ID", help="Of this session only.")] = None,
    state: Annotated[Literal["active", "paused", "ended"] | None, typer.Option("--state")] = None,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """List schedules, newest first, with their next times."""

    async def work(client: Client) -> None:
        found: list[Schedule] = []
        cursor: str | None = None
        while True:
            page = await client.schedules.list(session_id=session, state=state, before=cursor, limit=500)
            found += page.items
            cursor = page.next
            if cursor is None:
                break
        if as_json:
            print_json(found)
        elif not found:
            say("No schedules.")
        else:
            rows = [(each.id, _state(each), _when(each), _time(each.next_at), _what(each)) for each in found]
            print_table(("SCHEDULE", "STATE", "WHEN", "NEXT", "WHAT"), rows, elastic="WHAT")

    ask(url, token, work)


@app.command()
def show(schedule: Id, url: Url = None, token: Token = None, as_json: AsJson = False) -> None:
    """Show a schedule and what became of its last times."""

    async def work(client: Client) -> None:
        found, fires = await client.schedules.get(schedule), await client.schedules.fires(schedule, limit=20)
        if as_json:
            print_json({"schedule": found, "fires": fires.items})
            return
        by = found.made_by
        facts = [
            ("id", found.id),
            ("session", found.session_id),
            ("says" if found.text is not None else "runs", _what(found)),
            ("when", _when(found)),
            ("state", _state(found)),
            ("next", _time(found.next_at)),
            ("fired", f"{found.fired} times, last {_time(found.last_fired_at)}" if found.fired else "never"),
            ("missed", found.missed),
            ("overlap", found.overlap),
            ("waits for", found.condition),
            ("last result", found.last_result),
            ("last error", (found.last_error or {}).get("message")),
            ("made by", by.by or by.kind),
        ]
        print_facts(facts)
        if fires.items:
            print()
            _print_fires(fires.items)

    ask(url, token, work)


@app.command()
def fires(
    schedule: Id,
    limit: Annotated[int, typer.Option(min=1, max=500, help="At most so many.")] = 50,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Show what became of its times: fired is not yet ran."""

    async def work(client: Client) -> None:
        found = (await client.schedules.fires(schedule, limit=limit)).items
        print_json(found) if as_json else _print_fires(found) if found else say("It has not fired yet.")

    ask(url, token, work)


@app.command()
def edit(
    schedule: Id,
    text: Annotated[str | None, typer.Option("--text", metavar="TEXT", help="What it says.")] = None,
    args: Args = None,
    when: Wanted = None,
    cron: Cron = None,
    at: At = None,
    delay: In = None,
    zone: Zone = None,
    title: Title = None,
    missed: Missed = None,
    overlap: Overlap = None,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Change what is given. A new time counts from now."""
    given: dict[str, Any] = {
        **{"text": text, "args": _object(args, "--args"), "condition": _object(when, "--when"), "cron": cron},
        **{"at": at, "delay": delay, "zone": zone, "title": title, "missed": missed, "overlap": overlap},
    }
    given = {name: value for name, value in given.items() if value is not None}

    async def work(client: Client) -> None:
        _print(await client.schedules.edit(schedule, **given), as_json=as_json)

    ask(url, token, work)


@app.command()
def pause(schedule: Id, url: Url = None, token: Token = None, as_json: AsJson = False) -> None:
    """Let nothing of it fire until it is resumed; what it has made goes on."""

    async def work(client: Client) -> None:
        _print(await client.schedules.pause(schedule), as_json=as_json)

    ask(url, token, work)


@app.command()
def resume(schedule: Id, url: Url = None, token: Token = None, as_json: AsJson = False) -> None:
    """Let it fire again, from its next time on."""

    async def work(client: Client) -> None:
        _print(await client.schedules.resume(schedule), as_json=as_json)

    ask(url, token, work)


@app.command()
def trigger(schedule: Id, url: Url = None, token: Token = None, as_json: AsJson = False) -> None:
    """Fire it once now, whatever its times are."""

    async def work(client: Client) -> None:
        _print(await client.schedules.trigger(schedule), as_json=as_json)

    ask(url, token, work)


@app.command()
def delete(schedule: Id, url: Url = None, token: Token = None, as_json: AsJson = False) -> None:
    """Delete it with its history; what it has made goes on."""

    async def work(client: Client) -> None:
        await client.schedules.delete(schedule)
        print_json({"deleted": schedule}) if as_json else print("Deleted.")

    ask(url, token, work)


@app.command()
def preview(
    cron: Cron = None,
    at: At = None,
    delay: In = None,
    zone: Zone = None,
    count: Annotated[int, typer.Option(min=1, max=50, help="How many times.")] = 5,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Show the next times of what is not made yet, in its zone and in yours."""

    async def work(client: Client) -> None:
        found: Preview = await client.schedules.preview(cron=cron, at=at, delay=delay, zone=zone or "UTC", count=count)
        if as_json:
            print_json(found)
        else:
            print_table((found.zone.upper(), "HERE"), [(_zoned(each), _here(each)) for each in found.times])

    ask(url, token, work)


def _print(schedule: Schedule, *, as_json: bool) -> None:
    if as_json:
        print_json(schedule)
    else:
        print(f"{schedule.id} {_state(schedule)}, next {_time(schedule.next_at)}")


def _print_fires(found: Sequence[Fire]) -> None:
    rows = [
        (
            str(each.number),
            _time(each.due_at),
            each.outcome if each.how == "due" else f"{each.outcome}, triggered",
            f"{each.late_seconds:.0f} s" if each.late_seconds >= 1 else "",
            each.turn_id or each.task_id or each.input_id or each.detail or each.reason or "",
        )
        for each in found
    ]
    print_table(("FIRE", "DUE", "OUTCOME", "LATE", "WHAT"), rows, elastic="WHAT")


def _state(schedule: Schedule) -> str:
    return schedule.state if schedule.reason is None else f"{schedule.state}: {schedule.reason}"


def _when(schedule: Schedule) -> str:
    return f"{schedule.cron} {schedule.zone}" if schedule.cron is not None else "once"


def _what(schedule: Schedule) -> str:
    what = schedule.text if schedule.tool is None else schedule.tool
    kind = "monitor " if schedule.kind == "monitor" else ""
    return f"{kind}{what}" if schedule.title is None else f"{schedule.title}: {kind}{what}"


def _time(at: datetime | None) -> str:
    """In the schedule's zone, and in brackets here, where that is another time of day."""
    if at is None:
        return "-"
    zoned, here = _zoned(at), _here(at)
    return zoned if at.utcoffset() == at.astimezone().utcoffset() else f"{zoned} ({here} here)"


def _zoned(at: datetime) -> str:
    return at.isoformat(sep=" ", timespec="minutes")


def _here(at: datetime) -> str:
    return at.astimezone().isoformat(sep=" ", timespec="minutes")


def _object(text: str | None, option: str) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        found = from_json(text)
    except ValueError as exc:
        raise typer.BadParameter(f"{option} is not JSON: {exc}") from exc
    if not isinstance(found, dict):
        raise typer.BadParameter(f"{option} is not a JSON object.")
    return cast(dict[str, Any], found)
