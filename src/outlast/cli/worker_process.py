"""A worker process: it runs turns and tasks until it is told to leave, and hands them over when it does."""

import asyncio
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager

import typer
from rich.console import Console

from outlast.cli.app_file import AnyOutlast, load_app
from outlast.cli.memory import settle_in
from outlast.errors import OutlastError
from outlast.observe import logs
from outlast.observe.metrics import WorkMetrics
from outlast.observe.stalls import watching_for_stalls

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run(app: str, *, database: str | None, metrics: tuple[str, int] | None, leave_with_parent: bool) -> None:
    """`metrics`: the address at which Prometheus may ask."""
    console = Console(stderr=True)
    try:
        outlast = load_app(app, database=database)
    except OutlastError as exc:
        console.print(exc.message, style="red", markup=False)
        raise typer.Exit(2) from exc
    if outlast.is_embedded:
        message = "A worker needs PostgreSQL: a SQLite file has one process, and `outlast serve` runs its work."
        console.print(message, style="red", markup=False)
        raise typer.Exit(2)
    outlast.settings = outlast.settings.model_copy(update={"run_work": True})
    logs.configure(level=outlast.settings.log_level, mask=outlast.secrets.mask)
    numbers = WorkMetrics()
    outlast.listen(numbers.seen)
    try:
        with _answering(numbers, metrics, console):
            asyncio.run(_work(outlast, console, numbers, leave_with_parent=leave_with_parent))
    except OutlastError as exc:
        console.print(exc.message, style="red", markup=False)
        raise typer.Exit(1) from exc


@contextmanager
def _answering(numbers: WorkMetrics, address: tuple[str, int] | None, console: Console) -> Generator[None]:
    if address is None:
        yield
        return
    try:
        close = numbers.serve(*address)
    except OSError as exc:
        console.print(
            f"Port {address[1]} on {address[0]} cannot be used for metrics: {exc}.", style="red", markup=False
        )
        raise typer.Exit(1) from exc
    try:
        yield
    finally:
        close()


async def _work(outlast: AnyOutlast, console: Console, numbers: WorkMetrics, *, leave_with_parent: bool) -> None:
    loop = asyncio.get_running_loop()
    leave = asyncio.Event()

    def told() -> None:
        leave.set()
        for each in _SIGNALS:
            loop.remove_signal_handler(each)  # a second one insists

    for each in _SIGNALS:
        loop.add_signal_handler(each, told)
    if leave_with_parent:
        # Nobody writes to it: it is ready when whoever started this process is gone.
        loop.add_reader(sys.stdin.fileno(), lambda: (loop.remove_reader(sys.stdin.fileno()), leave.set()))
    async with outlast:
        settle_in()
        with watching_for_stalls(numbers.stalls.inc):
            console.print(f"A worker for {', '.join(outlast.agents)} is ready.", markup=False)
            await leave.wait()
            console.print("Leaving: turns are handed over at their next boundary.")
