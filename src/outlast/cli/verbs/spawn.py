"""The verb that sets a tool going in a session."""

from typing import Annotated, Any, cast

import typer
from pydantic_core import from_json

from outlast.cli.asking import ask, say
from outlast.cli.exits import Exit
from outlast.cli.target import AsJson, Timeout, Token, Url
from outlast.cli.terminal.tables import print_json
from outlast.cli.verbs.tasks import end_line
from outlast.client import Client


def spawn(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The id of a session.")],
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="A tool of its agent.")],
    args: Annotated[str, typer.Option("--args", metavar="JSON", help="Its arguments, an object.")] = "{}",
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="A few words for people.")] = None,
    group: Annotated[
        str | None, typer.Option(metavar="NAME", help="Tasks of one group wake the session once, at the last end.")
    ] = None,
    silent: Annotated[bool, typer.Option("--silent", help="Its end does not wake the session.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end, which gives the exit code.")] = False,
    timeout: Timeout = None,
    key: Annotated[
        str | None, typer.Option(metavar="KEY", help="With the same key it is set going once, however often asked.")
    ] = None,
    url: Url = None,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Set a tool of a session's agent going as a background task."""
    given = _object(args)

    async def work(client: Client) -> Exit | None:
        there = await client.sessions.get(session)
        wake = "silent" if silent else None
        task = await there.spawn(tool, given, title=title, group=group, wake=wake, idempotency_key=key)
        if wait:
            task = await client.tasks.wait(task.id, seconds=timeout)
        if as_json:
            print_json(task)
        elif wait:
            print(end_line(task))
        else:
            print(task.id)
            say(f"It waits for a place, number {task.place}." if task.place else f"outlast wait {task.id}")
        if not wait:
            return None
        return Exit.STILL_RUNNING if not task.is_over else Exit.OK if task.has_worked else Exit.FAILED

    ask(url, token, work, on_interrupt=lambda: "Left. The task goes on in the server.")


def _object(text: str) -> dict[str, Any]:
    try:
        found = from_json(text)
    except ValueError as exc:
        raise typer.BadParameter(f"--args is not JSON: {exc}") from exc
    if not isinstance(found, dict):
        raise typer.BadParameter('--args is not a JSON object: write --args \'{"river": "Loire"}\'.')
    return cast(dict[str, Any], found)
