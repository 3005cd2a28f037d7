"""`outlast serve`: an agent behind HTTP, for this machine unless told otherwise."""

import asyncio
import errno
import shlex
import socket
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
import uvicorn
from rich.console import Console

from outlast.api.app import create_app
from outlast.api.auth import Principal
from outlast.cli.app_file import AnyOutlast, load_app
from outlast.cli.server_file import ServerFile
from outlast.errors import OutlastError
from outlast.observe import logs
from outlast.runtime import LOCAL_OWNER

_GRACE_SECONDS = 2
_LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})


class Server(uvicorn.Server):
    """Says where it is once it can be reached, and leaves word of it for the other commands."""

    def __init__(self, config: uvicorn.Config, outlast: AnyOutlast, listening: socket.socket, console: Console) -> None:
        super().__init__(config)
        self._outlast = outlast
        self._listening = listening
        self._console = console

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            await self._announce()

    async def _announce(self) -> None:
        host, port = self._listening.getsockname()[:2]
        url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        place = ServerFile.beside(self._outlast.path)
        token = await self._token(place)
        place.write(url, token)
        link = self.config.app.state.logins.make(Principal(LOCAL_OWNER, "admin", "write", "local"))  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType, reportAttributeAccessIssue, reportFunctionMemberAccess]
        self._console.print(f"Outlast serves {', '.join(self._outlast.agents)} at {url}/#token={link}", soft_wrap=True)
        self._console.print(f"  key for other programs: in {place.path}", soft_wrap=True, highlight=False)
        self._console.print("  try: outlast send 'hello' --wait · outlast ps · Ctrl-C stops it, and nothing is lost")

    async def _token(self, place: ServerFile) -> str:
        """The same key as last time if it still opens: who uses it need not notice a restart."""
        known = place.read()
        if known is not None and await self._outlast.keys.find(known.token) is not None:
            return known.token
        _, token = await self._outlast.keys.make(LOCAL_OWNER, "local server", role="admin")
        return token


def serve(
    app: Annotated[str, typer.Argument(help="The agent: app.py, app.py:name, package.module or package.module:name.")],
    host: Annotated[str, typer.Option(help="The address to listen on; this machine only unless you say more.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The port; 0 takes a free one.")] = 8000,
    database: Annotated[
        str | None, typer.Option("--database", "-d", help="Where to keep everything, if the file has only an Agent.")
    ] = None,
    reload: Annotated[bool, typer.Option("--reload", help="Start again when a Python file changes; turns go on.")] = (
        False
    ),
) -> None:
    """Serve an agent over HTTP: sessions, streams, background tasks."""
    console = Console(stderr=True)
    if reload:
        _serve_again(console, app, host=host, port=port, database=database)
        return
    try:
        outlast = load_app(app, database=database)
    except OutlastError as exc:
        console.print(exc.message, style="red", markup=False)
        raise typer.Exit(2) from exc
    run(outlast, host=host, port=port, console=console)


def run(outlast: AnyOutlast, *, host: str, port: int, console: Console) -> None:
    """Serve until SIGINT or SIGTERM; turns are handed over, not lost."""
    logs.configure(level=outlast.settings.log_level)
    if host not in _LOCAL:
        console.print(f"Listening on {host}: everybody who can reach it needs a key. Put TLS in front of it.")
    listening = _listen(host, port, console)
    config = uvicorn.Config(
        create_app(outlast),
        log_config=None,
        lifespan="on",
        timeout_graceful_shutdown=_GRACE_SECONDS,
        server_header=False,
        access_log=False,
    )
    server = Server(config, outlast, listening, console)
    failure: list[BaseException] = []

    async def serve_it() -> None:
        try:
            async with outlast:
                await server.serve(sockets=[listening])
        except OutlastError as exc:
            failure.append(exc)

    asyncio.run(serve_it())
    if failure:
        console.print(str(failure[0]), style="red", markup=False)
        raise typer.Exit(1)
    console.print("Stopped. What was running goes on at the next start.")


def _listen(host: str, port: int, console: Console) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as exc:
        listening.close()
        why = "is taken: give another one with --port" if exc.errno == errno.EADDRINUSE else f"cannot be used: {exc}"
        console.print(f"Port {port} on {host} {why}.", style="red", markup=False)
        raise typer.Exit(1) from exc
    return listening


def _serve_again(console: Console, app: str, **options: Any) -> None:
    """A new process after each change of a Python file; the old one hands its turns over first."""
    from watchfiles import PythonFilter, run_process

    given = [f"--{name}={value}" for name, value in options.items() if value is not None]
    command = shlex.join([sys.executable, "-m", "outlast", "serve", app, *given])
    place = Path(app.partition(":")[0])
    folder = place.parent if place.suffix == ".py" else Path()
    console.print(f"Watching {folder.resolve()} for changes")
    run_process(folder.resolve(), target=command, target_type="command", watch_filter=PythonFilter())
