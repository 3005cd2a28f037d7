"""A process of the demo's agent, as its parent holds it: start, read its events, send messages, kill."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import TypeAdapter

from outlast.errors import OutlastError
from outlast.events.event import Event

WAIT_SECONDS = 10


_EVENT = TypeAdapter(Event)


class AgentProcess:
    """Use it in `with`: whatever happens, the process is ended and collected on leaving."""

    def __init__(self, folder: Path, *, after: int, is_fast: bool, is_stalling: bool) -> None:
        flags = [*(["--fast"] if is_fast else []), *(["--stall"] if is_stalling else [])]
        self._errors = folder / "agent.log"
        with self._errors.open("ab") as errors:
            # A session of its own: Ctrl-C reaches only the parent, which then ends this process itself.
            self._process = subprocess.Popen(
                [sys.executable, "-m", "outlast.cli.demo.agent", str(folder), "--after", str(after), *flags],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, message: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{message}\n".encode())
        self._process.stdin.flush()

    def finish(self) -> None:
        """Nothing more is wanted of it: it ends by itself."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def events(self) -> Iterator[Event]:
        """As they come, until the process has ended. One that ended by itself with an error raises."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.endswith(b"\n"):
                yield _EVENT.validate_json(line)
        code = self._process.wait(WAIT_SECONDS)
        if code not in (0, -signal.SIGKILL):
            raise OutlastError(f"The agent's process ended with {code}:\n{self._errors.read_text()[-2_000:]}")

    def kill(self) -> None:
        """SIGKILL: the process gets no chance to say or save anything."""
        self._process.kill()
        self._process.wait(WAIT_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
