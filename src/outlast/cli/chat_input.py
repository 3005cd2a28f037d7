"""What a person types, as it comes: read without blocking the event loop, and nothing is left open at the end."""

import asyncio
import codecs
import os
import signal
import termios
import tty
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Self, TypeAlias

from outlast.cli.line_editor import LineEditor

_CHUNK = 4096


@dataclass(frozen=True, slots=True)
class Line:
    text: str


class Key(Enum):
    """What can be wanted without a word."""

    END = "end"
    """Nothing more will be typed: Ctrl-D, or the end of a pipe."""
    INTERRUPT = "interrupt"
    """Ctrl-C."""
    TERMINATE = "terminate"
    """Someone asks this process to end."""


Wish: TypeAlias = Line | Key


class Wishes:
    """A queue of what is typed and signalled. Use it in `with`; `await next()` gives one after another."""

    def __init__(self, editor: LineEditor | None = None) -> None:
        """With an editor, keys are read one by one; else whole lines come. Set `redraw` to see what is typed."""
        self.redraw: Callable[[], None] | None = None
        self._editor = editor
        self._queue: asyncio.Queue[Wish] = asyncio.Queue()
        self._open = ExitStack()
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._rest = ""
        self._has_ended = False
        self._leave_code: int | None = None

    async def next(self) -> Wish:
        return await self._queue.get()

    def __enter__(self) -> Self:
        """From here on signals are wishes."""
        loop = asyncio.get_running_loop()
        for number, key in ((signal.SIGINT, Key.INTERRUPT), (signal.SIGTERM, Key.TERMINATE)):
            loop.add_signal_handler(number, self._signalled, key)
            self._open.callback(loop.remove_signal_handler, number)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def leave_on_interrupt(self, code: int) -> None:
        """From here on Ctrl-C ends the process at once. That may be done at any time: what counts is on disk.

        One that came before and was not looked at counts too.
        """
        self._leave_code = code
        while not self._queue.empty():
            self._signalled(self._queue.get_nowait())
        # Which is heard while a tool holds the event loop, too.
        signal.signal(signal.SIGINT, lambda number, frame: self._signalled(Key.INTERRUPT))

    def _signalled(self, wish: Wish) -> None:
        if self._leave_code is None:
            self._queue.put_nowait(wish)
        elif wish is Key.INTERRUPT:
            os._exit(self._leave_code)

    @contextmanager
    def reading(self, descriptor: int) -> Generator[None]:
        """Meanwhile, what is typed there is read."""
        loop = asyncio.get_running_loop()
        with ExitStack() as stack:
            if self._editor is not None:
                stack.enter_context(_keys_of(descriptor))
                # After Ctrl-Z and `fg` the shell has put the terminal back to whole lines.
                loop.add_signal_handler(signal.SIGCONT, self._take_back, descriptor)
                stack.callback(loop.remove_signal_handler, signal.SIGCONT)
            try:
                loop.add_reader(descriptor, self._ready, descriptor)
            except PermissionError:  # a file is always ready, and cannot be waited for
                while not self._has_ended:
                    self._ready(descriptor)
            else:
                stack.callback(loop.remove_reader, descriptor)
            yield

    def _take_back(self, descriptor: int) -> None:
        tty.setcbreak(descriptor, termios.TCSADRAIN)
        if self.redraw is not None:
            self.redraw()

    def _ready(self, descriptor: int) -> None:
        try:
            data = os.read(descriptor, _CHUNK)
        except OSError:  # the terminal is gone
            data = b""
        if not data:
            self._end(descriptor)
        elif self._editor is None:
            self._take_lines(data)
        else:
            for line in self._editor.feed(data):
                self._queue.put_nowait(Key.END if line is None else Line(line))
            if self.redraw is not None:
                self.redraw()

    def _take_lines(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + self._decoder.decode(data)).split("\n")
        for line in lines:
            self._queue.put_nowait(Line(line))

    def _end(self, descriptor: int) -> None:
        if self._has_ended:
            return
        self._has_ended = True
        asyncio.get_running_loop().remove_reader(descriptor)
        if self._rest:
            self._queue.put_nowait(Line(self._rest))
        self._queue.put_nowait(Key.END)


@contextmanager
def _keys_of(descriptor: int) -> Generator[None]:
    """Each key at once and without echo; Ctrl-C stays a signal. The terminal is put back as it was."""
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor, termios.TCSADRAIN)  # which keeps what was typed before
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
