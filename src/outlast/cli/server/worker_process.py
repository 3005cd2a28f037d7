"""A worker process: it runs turns and tasks until it is told to stop, and then hands them over."""

import asyncio
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

import typer
from rich.console import Console

from outlast.cli.app_file import AnyOutlast, load_app
from outlast.cli.server import shutdown
from outlast.cli.server.memory import freeze_loaded
from outlast.cli.server.shutdown import ShutdownSignals
from outlast.cli.terminal.console import console as make_console
from outlast.cli.terminal.stream import raw
from outlast.errors import OutlastError
from outlast.observe import logs
from outlast.observe.metrics import WorkMetrics
from outlast.observe.stalls import watching_for_stalls

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run(app: str, *, database: str | None, metrics: tuple[str, int] | None, exit_with_parent: bool) -> NoReturn:
    """`metrics`: the address at which Prometheus may ask."""
    console = make_console(stderr=True)
    try:
        outlast = load_app(app, database=database)
    except OutlastError as exc:
        console.print(exc.message, style="red")
        raise typer.Exit(2) from exc
    if outlast.is_embedded:
        message = "A worker needs PostgreSQL: a SQLite file has one process, and `outlast serve` runs its work."
        console.print(message, style="red")
        raise typer.Exit(2)
    outlast.settings = outlast.settings.model_copy(update={"run_work": True})
    logs.configure(level=outlast.settings.log_level, stream=raw(sys.stderr), mask=outlast.secrets.mask)
    numbers = WorkMetrics()
    outlast.listen(numbers.seen)
    shutdown.run_and_exit(_run(outlast, console, numbers, metrics, exit_with_parent=exit_with_parent))


async def _run(
    outlast: AnyOutlast,
    console: Console,
    numbers: WorkMetrics,
    metrics: tuple[str, int] | None,
    *,
    exit_with_parent: bool,
) -> int:
    try:
        with _answering(numbers, metrics, console):
            await _work(outlast, console, numbers, exit_with_parent=exit_with_parent)
    except OutlastError as exc:
        console.print(exc.message, style="red")
        return 1
    return 0


@contextmanager
def _answering(numbers: WorkMetrics, address: tuple[str, int] | None, console: Console) -> Generator[None]:
    if address is None:
        yield
        return
    try:
        close = numbers.serve(*address)
    except OSError as exc:
        console.print(f"Port {address[1]} on {address[0]} cannot be used for metrics: {exc}.", style="red")
        raise typer.Exit(1) from exc
    try:
        yield
    finally:
        close()


async def _work(outlast: AnyOutlast, console: Console, numbers: WorkMetrics, *, exit_with_parent: bool) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    signals = ShutdownSignals()

    def received(number: int, _: FrameType | None) -> None:
        signals.received(number)
        loop.call_soon_threadsafe(stop.set)

    for each in _SIGNALS:
        signal.signal(each, received)
    if exit_with_parent:
        # Nobody writes to it: it is ready when whoever started this process is gone.
        loop.add_reader(sys.stdin.fileno(), lambda: (loop.remove_reader(sys.stdin.fileno()), stop.set()))
    async with outlast:
        freeze_loaded()
        with watching_for_stalls(numbers.stalls.inc):
            console.print(f"A worker for {', '.join(outlast.agents)} is ready.")
            await stop.wait()
            console.print("Leaving: turns are handed over at their next boundary. Ctrl-C leaves at once.")
