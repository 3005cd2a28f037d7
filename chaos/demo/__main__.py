"""The command line: `python -m chaos.demo [--fast] [--brief] [--stay | --once]`."""

import argparse
import asyncio
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from rich.console import Console

from chaos.demo.play import Play
from outlast.cli.demo.narration import narrating
from tests.support.stores.postgres import installed_postgres

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ending:
    """Who is told to end ends once, and leaves nothing behind: further signals change nothing."""

    def __init__(self) -> None:
        self.asked: int | None = None
        self._stop: Callable[[], object] | None = None

    def note(self, number: int, _: FrameType | None = None) -> None:
        """A handler of Python's own, not of the event loop: before and after that nothing may be broken off."""
        if self.asked is None:
            self.asked = number
            if self._stop is not None:
                self._stop()

    async def guard(self, play: Play, *, is_staying: bool) -> None:
        showing = asyncio.ensure_future(play.show(is_staying=is_staying))
        loop = asyncio.get_running_loop()
        self._stop = lambda: loop.call_soon_threadsafe(showing.cancel)
        if self.asked is not None:
            showing.cancel()
        try:
            await showing
        finally:
            self._stop = None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m chaos.demo", description="Watch a cluster that is broken.")
    parser.add_argument("--fast", action="store_true", help="do not wait for the reader")
    parser.add_argument("--brief", action="store_true", help="the first act only, with one worker less")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--stay", action="store_true", help="keep the cluster until Ctrl-C (default in a terminal)")
    kind.add_argument("--once", action="store_true", help="end after the play (default elsewhere)")
    given = parser.parse_args()
    is_staying = given.stay or (sys.stdin.isatty() and not given.once)
    console, ending = Console(highlight=False), Ending()
    for each in _SIGNALS:
        signal.signal(each, ending.note)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="outlast-demo-") as folder,
            installed_postgres() as postgres,
            narrating(console, is_fast=given.fast) as narrator,
        ):
            play = Play(narrator, postgres, Path(folder), is_fast=given.fast, is_brief=given.brief)
            asyncio.run(ending.guard(play, is_staying=is_staying))
    except (asyncio.CancelledError, RuntimeError):
        # The second is what PostgreSQL's own commands make of a Ctrl-C, which reaches them too.
        if ending.asked is None:
            raise
    console.print("Everything is stopped; nothing is left behind.")
    return 0 if ending.asked is None or is_staying else 128 + ending.asked


if __name__ == "__main__":
    sys.exit(main())
