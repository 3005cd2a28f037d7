"""A server process: an agent behind HTTP, until it is told to stop."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

import typer
import uvicorn
from rich.console import Console

from outlast.api.app import create_app
from outlast.api.connections import guarded
from outlast.cli.app_file import AnyOutlast, load_app
from outlast.cli.server import shutdown
from outlast.cli.server.first_steps import first_steps
from outlast.cli.server.http_server import Server
from outlast.cli.server.listening import address_of, listen, raise_file_limit
from outlast.cli.server.memory import freeze_loaded
from outlast.cli.server.shutdown import ShutdownSignals
from outlast.cli.server.supervisor import Supervisor
from outlast.cli.server_file import ServerFile
from outlast.cli.terminal.console import console as make_console
from outlast.cli.terminal.stream import raw
from outlast.errors import Forbidden, OutlastError
from outlast.observe import logs
from outlast.toolkit.shell import is_shell

_GRACE_SECONDS = 2
_SILENT_SECONDS = 0.5
_LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True)
class Roles:
    """What a server does beside answering: run work itself, keep processes that do, or neither."""

    run_work: bool = True
    workers: int = 0


def serve_app(app: str, *, host: str, port: int, database: str | None, roles: Roles) -> None:
    """Serve what a file or module has."""
    console = make_console(stderr=True)
    try:
        outlast = load_app(app, database=database)
    except OutlastError as exc:
        console.print(exc.message, style="red")
        raise typer.Exit(2) from exc
    if not roles.run_work:
        outlast.settings = outlast.settings.model_copy(update={"run_work": False})
    shutdown_seconds = outlast.settings.drain.total_seconds() * 2 + _GRACE_SECONDS
    supervisor = (
        Supervisor(app, roles.workers, database=database, shutdown_seconds=shutdown_seconds) if roles.workers else None
    )
    worker_of = None if roles.run_work or roles.workers else app
    advice = partial(first_steps, worker_of=worker_of)
    run(outlast, host=host, port=port, console=console, advice=advice, supervisor=supervisor)


def run(
    outlast: AnyOutlast,
    *,
    host: str,
    port: int,
    console: Console,
    advice: Callable[[str, ServerFile], Sequence[str]],
    supervisor: Supervisor | None = None,
) -> NoReturn:
    """Serve until SIGINT or SIGTERM; turns are handed over, not lost. `advice` is asked for when it can be reached."""
    logs.configure(level=outlast.settings.log_level, stream=raw(sys.stderr), mask=outlast.secrets.mask)
    if host not in _LOCAL:
        console.print(f"Listening on {host}: everybody who can reach it needs a key. Put TLS in front of it.")
    listening = listen(host, port, console)
    if outlast.public_url is None and host in _LOCAL:  # whoever completes an operation is on this machine too
        outlast.public_url = address_of(listening)
    raise_file_limit()
    config = uvicorn.Config(
        create_app(outlast, log_requests=True),
        log_config=None,
        lifespan="on",
        timeout_graceful_shutdown=_GRACE_SECONDS,
        server_header=False,
        access_log=False,
        http=guarded(outlast.settings),
    )
    signals = ShutdownSignals()
    if supervisor is not None:
        signals.before_forced_exit = supervisor.kill
        supervisor.public_url = outlast.public_url
    server = Server(config, outlast, listening, console, advice, signals)

    def say_why() -> None:
        seconds = outlast.settings.drain.total_seconds()
        console.print(
            f"Stopping: what runs has {seconds:g} s to come to a point at which it can be handed over. "
            "Ctrl-C leaves at once.",
            soft_wrap=True,
        )

    async def serve_it() -> int:
        with ExitStack() as stack:
            try:
                async with outlast, supervisor or nullcontext():
                    if host not in _LOCAL:
                        await refuse_shells(outlast)
                    freeze_loaded()
                    await server.serve(sockets=[listening])
                    stack.callback(asyncio.get_running_loop().call_later(_SILENT_SECONDS, say_why).cancel)
            except OutlastError as exc:
                console.print(str(exc), style="red")
                return 1
        console.print("Stopped. What was running goes on at the next start.")
        return 0

    shutdown.run_and_exit(serve_it())


async def refuse_shells(outlast: AnyOutlast) -> None:
    """Raises `Forbidden` where others than this machine would reach a tool that runs commands on it."""
    if outlast.settings.allow_shell:
        return
    for agent in outlast.agents:
        for tool in await outlast.tools_of(agent):
            if is_shell(tool):
                raise Forbidden(
                    f"The agent {agent!r} runs shell commands ({tool.name}), and others than this machine would reach "
                    "it. It is no sandbox: whoever may talk to it may do here what this process may. Listen on "
                    "127.0.0.1, or set OUTLAST_ALLOW_SHELL=true."
                )
