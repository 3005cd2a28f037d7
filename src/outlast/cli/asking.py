"""Running a verb against a server: a client, an exit code, errors in one line, and Ctrl-C that harms nothing."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import NoReturn

import typer
from pydantic import ValidationError

from outlast.cli import target
from outlast.cli.connected import connected
from outlast.cli.exits import Exit, exit_of
from outlast.client import Client
from outlast.errors import OutlastError

LEFT = "Left. The work goes on in the server."


def ask(
    url: str | None,
    token: str | None,
    work: Callable[[Client], Awaitable[Exit | None]],
    *,
    on_interrupt: Callable[[], str] = lambda: LEFT,
) -> NoReturn:
    """Do `work` with a client; ends with its exit code. `on_interrupt` is asked for what Ctrl-C says."""

    async def run() -> Exit | None:
        place = target.find(url, token)
        async with connected(place) as client:
            return await work(client)

    try:
        code = asyncio.run(run()) or Exit.OK
    except OutlastError as exc:
        say(exc.message)
        code = exit_of(exc)
    except ValidationError:
        say("The server's answer is not understood: is it an Outlast server of this version?")
        code = Exit.FAILED
    except KeyboardInterrupt:
        say(f"\n{on_interrupt()}")
        code = Exit.INTERRUPTED
    raise typer.Exit(code)


def say(text: str) -> None:
    """To the person, not to the program that reads stdout."""
    print(text, file=sys.stderr, flush=True)
