"""What is typed into a chat, and signals to it, in the order in which they come."""

import asyncio
import codecs
import os
import signal
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Self, TypeAlias

_CHUNK = 4096


@dataclass(frozen=True, slots=True)
class Line:
    text: str


class Key(Enum):
    """Input that is no text."""

    END = "end"
    """Nothing more will be typed: Ctrl-D, or the end of a pipe."""
    INTERRUPT = "interrupt"
    """Ctrl-C, or SIGINT."""
    TERMINATE = "terminate"
    """SIGTERM."""


Input: TypeAlias = Line | Key


class InputQueue:
    """Input from all sources. Use it in `with`: from there on signals are input. `await next()` takes the oldest."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Input] = asyncio.Queue()
        self._handlers = ExitStack()
        self._exit_code: int | None = None

    async def next(self) -> Input:
        return await self._queue.get()

    def put(self, given: Input) -> None:
        if self._exit_code is None:
            self._queue.put_nowait(given)
        elif given is Key.INTERRUPT:
            os._exit(self._exit_code)

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        for number, key in ((signal.SIGINT, Key.INTERRUPT), (signal.SIGTERM, Key.TERMINATE)):
            loop.add_signal_handler(number, self.put, key)
            self._handlers.callback(loop.remove_signal_handler, number)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._handlers.close()

    def exit_on_interrupt(self, code: int) -> None:
        """From here on Ctrl-C ends the process at once, and so does one that nobody has taken yet.

        That is safe at any time: what counts is on disk.
        """
        self._exit_code = code
        while not self._queue.empty():
            self.put(self._queue.get_nowait())
        # A handler of Python's own runs although a tool holds the event loop.
        signal.signal(signal.SIGINT, lambda number, frame: self.put(Key.INTERRUPT))

    @contextmanager
    def lines_from(self, descriptor: int) -> Generator[None]:
        """Meanwhile, lines are read from a pipe, a file or a dumb terminal, without blocking the event loop."""
        loop = asyncio.get_running_loop()
        reader = _LineReader(descriptor)

        def ready() -> None:
            for given in reader.read():
                self.put(given)
            if reader.has_ended:
                loop.remove_reader(descriptor)

        try:
            loop.add_reader(descriptor, ready)
        except PermissionError:  # a file is always ready, and cannot be waited for
            while not reader.has_ended:
                ready()
        try:
            yield
        finally:
            loop.remove_reader(descriptor)


class _LineReader:
    """Bytes into lines; the last one need not be ended."""

    def __init__(self, descriptor: int) -> None:
        self.has_ended = False
        self._descriptor = descriptor
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._rest = ""

    def read(self) -> Iterator[Input]:
        """What has come; blocks if nothing has."""
        try:
            data = os.read(self._descriptor, _CHUNK)
        except OSError:  # the terminal is gone
            data = b""
        *lines, self._rest = (self._rest + self._decoder.decode(data, final=not data)).split("\n")
        for line in lines:
            yield Line(line)
        if not data:
            self.has_ended = True
            if self._rest:
                yield Line(self._rest)
            yield Key.END
