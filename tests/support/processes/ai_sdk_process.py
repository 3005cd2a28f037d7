"""The server for stock AI SDK clients as a process of its own."""

import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Server:
    """A server process; `kill` ends it as a power cut would."""

    process: subprocess.Popen[bytes]
    url: str

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)


@contextmanager
def serving(folder: Path, *, pages: Path | None = None) -> Generator[Server]:
    """Whoever connects before the process is up waits in the socket's queue. What it says is in `server.log`.

    With `pages` it serves that folder too, and whoever shows no key is one and the same owner.
    """
    with (folder / "server.log").open("ab") as log, socket.create_server(("127.0.0.1", 0)) as listening:
        command = [sys.executable, "-m", "tests.support.apps.ai_sdk_server", str(folder), str(listening.fileno())]
        command += [] if pages is None else [str(pages)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, pass_fds=[listening.fileno()])
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    try:
        yield Server(process, url)
    finally:
        process.terminate()
        process.wait(20)
