"""`outlast serve` as a process of its own, and the command beside it, in one folder."""

import codecs
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self
from urllib.parse import urlsplit

import httpx2

from outlast.cli.server_file import ServerFile, ServerPlace

ROOT = Path(__file__).parents[3]
OUTLAST = Path(sys.executable).with_name("outlast")
PATIENCE = 90.0


class Program:
    """A command that runs beside the test. Use it in `with`: it is ended and collected on leaving."""

    command = OUTLAST

    def __init__(self, folder: Path, *arguments: str, **environment: str) -> None:
        self.out = self.err = ""
        self.process = subprocess.Popen(
            [self.command, *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**_own_environment(), **environment},
        )
        self._changed = threading.Condition()
        self._readers = [
            threading.Thread(target=self._read, args=(name, pipe))
            for name, pipe in (("out", self.process.stdout), ("err", self.process.stderr))
        ]
        for each in self._readers:
            each.start()

    def expect(self, words: str, *, count: int = 1) -> None:
        """Wait until it has said this, on either stream."""
        with self._changed:
            assert self._changed.wait_for(
                lambda: (self.out + self.err).count(words) >= count or self.process.poll() is not None, PATIENCE
            ), f"{words!r} was not said in time: {(self.out + self.err)[-2_000:]}"
            assert (self.out + self.err).count(words) >= count, (
                f"{words!r} was not said: {(self.out + self.err)[-2_000:]}"
            )

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def ended(self) -> int:
        """Wait for its end; its exit code. `out` and `err` are then whole."""
        code = self.process.wait(PATIENCE)
        for each in self._readers:
            each.join(PATIENCE)
        return code

    def kill(self) -> None:
        self.process.kill()
        self.ended()

    def _read(self, name: str, pipe: IO[str]) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")()
        while data := os.read(pipe.fileno(), 65_536):
            with self._changed:
                setattr(self, name, getattr(self, name) + decoder.decode(data))
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.ended()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


class ServingProcess(Program):
    """A server that works in a folder, for its `app.py` or a `module:name` of this project. Killed on leaving.

    It can be reached once it is entered, on a free port unless one is given.
    """

    def __init__(
        self,
        folder: Path,
        *options: str,
        app: str = "app.py",
        port: int = 0,
        environment: Mapping[str, str] | None = None,
        command: Path = OUTLAST,
    ) -> None:
        arguments = ("serve", app, "--port", str(port), *options)
        # What is installed elsewhere is to run by itself.
        paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)] if command == OUTLAST else [])
        own = {"OUTLAST_LOG_LEVEL": "warning", "PYTHONPATH": paths, **(environment or {})}
        self.command = command
        super().__init__(folder, *arguments, **own)
        self.folder = folder

    def __enter__(self) -> Self:
        try:
            self.expect("Outlast serves")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    @property
    def place(self) -> ServerPlace:
        [path] = self.folder.glob("*.server.json")
        place = ServerFile(path).read()
        assert place is not None
        return place

    @property
    def port(self) -> int:
        port = urlsplit(self.place.url).port
        assert port is not None
        return port

    def client(self) -> httpx2.AsyncClient:
        place = self.place
        return httpx2.AsyncClient(base_url=place.url, headers={"Authorization": f"Bearer {place.token}"}, timeout=60)

    def stop(self) -> None:
        self.interrupt()
        assert self.ended() == 0, self.err[-2_000:]


def run(
    folder: Path, *arguments: str, code: int = 0, stdin: str = "", environment: Mapping[str, str] | None = None
) -> str:
    """The command as a person types it; what it writes to stdout. Its exit code must be this one."""
    done = _run([OUTLAST, *arguments], folder, stdin, environment)
    assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
    return done.stdout


def complaint(folder: Path, *arguments: str, code: int, environment: Mapping[str, str] | None = None) -> str:
    """What it says on stderr when it cannot do what was asked."""
    done = _run([OUTLAST, *arguments], folder, "", environment)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), (arguments, done.stdout, done.stderr)
    return " ".join(done.stderr.split())


def _run(
    command: Sequence[str | Path], folder: Path, stdin: str, environment: Mapping[str, str] | None
) -> subprocess.CompletedProcess[str]:
    env = {**_own_environment(), **(environment or {})}
    return subprocess.run(command, cwd=folder, input=stdin, capture_output=True, text=True, env=env, timeout=PATIENCE)


def _own_environment() -> dict[str, str]:
    """Without what would lead to another server."""
    return {key: value for key, value in os.environ.items() if not key.startswith("OUTLAST_")}
