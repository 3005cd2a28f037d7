"""A server of another project as a process on loopback."""

import os
import socket
import subprocess
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx2

from bench.peers.environment import LeftOut

_START_SECONDS = 120
_LEAVE_SECONDS = 20


@contextmanager
def running(
    name: str, command: Sequence[str | Path], folder: Path, port: int, *, health: str, environment: Mapping[str, str]
) -> Generator[int]:
    """Its process id, once it answers. One that does not come up is left out. Ended on leaving."""
    own = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    log = folder / "server.log"
    with log.open("w") as said:
        server = subprocess.Popen(command, cwd=folder, env={**own, **environment}, stdout=said, stderr=said)
    try:
        if not _answers(f"http://127.0.0.1:{port}{health}", server):
            raise LeftOut(f"{name} did not come up: {' '.join(log.read_text()[-300:].split())}")
        yield server.pid
    finally:
        server.terminate()
        try:
            server.wait(_LEAVE_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _answers(url: str, server: "subprocess.Popen[bytes]") -> bool:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and server.poll() is None:
        try:
            if httpx2.get(url).is_success:
                return True
        except httpx2.TransportError:
            pass
        time.sleep(0.2)
    return False


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]
