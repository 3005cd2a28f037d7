"""A server process: an agent behind HTTP, until it is told to stop."""

import asyncio
import errno
import logging
import resource
import shlex
import signal
import socket
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import NoReturn

import typer
import uvicorn
from rich.console import Console

from outlast.api.app import create_app
from outlast.api.auth import Principal
from outlast.api.connections import guarded
from outlast.cli import leaving
from outlast.cli.app_file import AnyOutlast, load_app
from outlast.cli.console import console as make_console
from outlast.cli.crew import Crew
from outlast.cli.first_steps import first_steps
from outlast.cli.leaving import Insistence
from outlast.cli.memory import settle_in
from outlast.cli.server_file import ServerFile
from outlast.cli.terminal import raw
from outlast.errors import OutlastError, StoreUnavailable
from outlast.observe import logs
from outlast.runtime import LOCAL_OWNER
from outlast.store.keys import Key
from outlast.tools.sparse import SparseFilter

_GRACE_SECONDS = 2
_AGAIN_SECONDS = 0.2
_RELOAD_SECONDS = 30
"""How long the old process may take to hand its turns over."""
_SILENT_SECONDS = 0.5
_KNOWN_TO_WHO_STOPS = ("KeyboardInterrupt caught", "received signal", "process already dead")
"""How the library that watches files says that it was told to stop, and that a broken app had left before."""
_BROKEN_OFF = "ASGI callable returned without completing response."
_LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})


class Server(uvicorn.Server):
    """Says where it is once it can be reached, and leaves word of it for the other commands."""

    def __init__(
        self,
        config: uvicorn.Config,
        outlast: AnyOutlast,
        listening: socket.socket,
        console: Console,
        advice: Callable[[str, ServerFile], Sequence[str]],
        insistence: Insistence,
    ) -> None:
        super().__init__(config)
        self._insistence = insistence
        self._advice = advice
        self._outlast = outlast
        self._listening = listening
        self._console = console
        for each in (self._is_news, SparseFilter()):
            logging.getLogger("uvicorn.error").addFilter(each)

    def _is_news(self, record: logging.LogRecord) -> bool:
        """That streams break off is what stopping means: their readers go on after the next start."""
        return not (self.should_exit and record.getMessage() == _BROKEN_OFF)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Signals end the server and not the process: the runtime then hands its turns over. A second one insists.

        They stay taken when the server has ended: the process is leaving, and that may take a while.
        """
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, self.handle_exit)
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._insistence.note(sig)
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        while self.started and not self.should_exit:
            try:
                await self._announce()
            except StoreUnavailable:
                # It answers already, and says so: whoever started it hears of it when the database is back.
                await asyncio.sleep(_AGAIN_SECONDS)
            else:
                break

    async def _announce(self) -> None:
        host, port = self._listening.getsockname()[:2]
        url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        place = ServerFile.beside(self._outlast.path)
        key, token = await self._token(place)
        place.write(url, token)
        local = Principal(LOCAL_OWNER, "admin", "write", "local", key_id=key.id)
        link = self.config.app.state.logins.make(local)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType, reportAttributeAccessIssue, reportFunctionMemberAccess]
        self._console.print(f"Outlast serves {', '.join(self._outlast.agents)} at {url}/#token={link}", soft_wrap=True)
        self._console.print(f"  key for other programs: in {place.path}", soft_wrap=True)
        for line in self._advice(url, place):
            self._console.print(line, soft_wrap=True)

    async def _token(self, place: ServerFile) -> tuple[Key, str]:
        """The same key as last time if it still opens: who uses it need not notice a restart."""
        known = place.read()
        found = None if known is None else await self._outlast.keys.find(known.token)
        if known is not None and found is not None:
            return found, known.token
        return await self._outlast.keys.make(LOCAL_OWNER, "local server", role="admin")


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
    leave_seconds = outlast.settings.drain.total_seconds() * 2 + _GRACE_SECONDS
    crew = Crew(app, roles.workers, database=database, leave_seconds=leave_seconds) if roles.workers else None
    worker_of = None if roles.run_work or roles.workers else app
    advice = partial(first_steps, worker_of=worker_of)
    run(outlast, host=host, port=port, console=console, advice=advice, crew=crew)


def run(
    outlast: AnyOutlast,
    *,
    host: str,
    port: int,
    console: Console,
    advice: Callable[[str, ServerFile], Sequence[str]],
    crew: Crew | None = None,
) -> NoReturn:
    """Serve until SIGINT or SIGTERM; turns are handed over, not lost. `advice` is asked for when it can be reached."""
    logs.configure(level=outlast.settings.log_level, stream=raw(sys.stderr), mask=outlast.secrets.mask)
    if host not in _LOCAL:
        console.print(f"Listening on {host}: everybody who can reach it needs a key. Put TLS in front of it.")
    listening = _listen(host, port, console)
    _allow_files()
    config = uvicorn.Config(
        create_app(outlast, log_requests=True),
        log_config=None,
        lifespan="on",
        timeout_graceful_shutdown=_GRACE_SECONDS,
        server_header=False,
        access_log=False,
        http=guarded(outlast.settings),
    )
    insistence = Insistence()
    if crew is not None:
        insistence.at_once = crew.kill
    server = Server(config, outlast, listening, console, advice, insistence)

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
                async with outlast, crew or nullcontext():
                    settle_in()
                    await server.serve(sockets=[listening])
                    stack.callback(asyncio.get_running_loop().call_later(_SILENT_SECONDS, say_why).cancel)
            except OutlastError as exc:
                console.print(str(exc), style="red")
                return 1
        console.print("Stopped. What was running goes on at the next start.")
        return 0

    leaving.run(serve_it())


def _allow_files() -> None:
    """Each connection is an open file: as many as the system lets this process have."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # macOS names a limit that it does not grant
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _listen(host: str, port: int, console: Console) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, or asyncio does not switch off the delay of small packets.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as exc:
        listening.close()
        why = "is taken: give another one with --port" if exc.errno == errno.EADDRINUSE else f"cannot be used: {exc}"
        console.print(f"Port {port} on {host} {why}.", style="red")
        raise typer.Exit(1) from exc
    return listening


def serve_again(app: str, *, host: str, port: int, database: str | None, roles: Roles) -> None:
    """A new process after each change of a Python file, at the same address; the old one hands its turns over first."""
    from watchfiles import PythonFilter, run_process

    if port == 0:
        with closing(_listen(host, 0, make_console(stderr=True))) as found:
            port = found.getsockname()[1]
    given = [f"--host={host}", f"--port={port}", *([] if database is None else [f"--database={database}"])]
    given += [f"--workers={roles.workers}"] if roles.workers else ["--worker" if roles.run_work else "--no-worker"]
    command = shlex.join([sys.executable, "-m", "outlast", "serve", app, *given])
    place = Path(app.partition(":")[0])
    folder = (place.parent if place.suffix == ".py" else Path()).resolve()
    watcher = logging.getLogger("watchfiles.main")
    watcher.addFilter(lambda record: not record.getMessage().startswith(_KNOWN_TO_WHO_STOPS))
    make_console(stderr=True).print(f"Watching {folder} for changes", soft_wrap=True)
    run_process(
        folder, target=command, target_type="command", watch_filter=PythonFilter(), sigint_timeout=_RELOAD_SECONDS
    )
