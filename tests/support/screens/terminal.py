"""A real pseudo-terminal with a program in it: type, read what it shows, wait for words."""

import codecs
import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.screens.emulator import Emulator

PATIENCE = 100.0
ROWS, COLUMNS = 30, 240
CTRL_C, CTRL_D = "\x03", "\x04"


class Terminal:
    """Use it in `with`: the program is ended and collected on leaving, whatever the test did."""

    def __init__(self, command: Sequence[str | Path], *, folder: Path, **environment: str) -> None:
        self._screen, inside = os.openpty()
        self.shown = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._emulator = Emulator(ROWS, COLUMNS)
        self._seen = 0
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.modes_before = termios.tcgetattr(inside)[:4]
        env = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES", "NO_COLOR")}
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env={**env, "TERM": "xterm-256color", **environment},
            preexec_fn=lambda: os.login_tty(inside),
            close_fds=True,
        )
        os.close(inside)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def words(self) -> str:
        """Every row that was shown, as often as it changed."""
        return self._emulator.transcript

    def press(self, keys: str) -> None:
        os.write(self._screen, keys.encode())

    def enter(self, line: str) -> None:
        self.press(line + "\r")

    def expect(self, pattern: str) -> str:
        """Wait until something new matches; what was matched before does not count. Gives the match."""
        deadline = time.monotonic() + PATIENCE
        while True:
            found = re.compile(pattern).search(self.words, self._seen)
            if found:
                self._seen = found.end()
                return found[0]
            if not self._read(deadline - time.monotonic()):
                raise AssertionError(f"{pattern!r} was not shown after:\n{self.words[self._seen :][-3_000:]}")

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(PATIENCE)

    def ended(self) -> int:
        """Read on until the program has ended; its exit code."""
        while self._read(PATIENCE):
            pass
        return self._process.wait(PATIENCE)

    def modes(self) -> list[int | list[bytes | int]]:
        return termios.tcgetattr(self._screen)[:4]

    def _read(self, seconds: float) -> bool:
        """False when the time is over or the program has closed its side."""
        if seconds <= 0 or not select.select([self._screen], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._screen, 65_536)
        except OSError:  # how Linux tells that the other side is closed
            return False
        text = self._decoder.decode(data)
        self.shown += text
        self._emulator.feed(text)
        return bool(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(PATIENCE)
        os.close(self._screen)
