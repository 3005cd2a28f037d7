"""`outlast serve` as a process of its own, for benchmarks that go over HTTP."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import psutil

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Place:
    url: str
    token: str
    port: int
    process: psutil.Process
    ready_seconds: float

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(base_url=self.url, headers=self.headers, timeout=60)


@contextmanager
def serving(folder: Path, app: str = "bench.server_app:app") -> Generator[Place]:
    """A server with an empty database in that folder, or with the one that is there."""
    database = folder / "bench.db"
    file = database.with_name(f"{database.name}.server.json")
    file.unlink(missing_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    environment = {
        **os.environ,
        "BENCH_DATABASE": str(database),
        "PYTHONPATH": str(ROOT),
        "OUTLAST_LOG_LEVEL": "error",
    }
    command = [sys.executable, "-m", "outlast", "serve", app, "--port", str(port)]
    began = time.perf_counter()
    with subprocess.Popen(command, env=environment, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_until_ready(url, process)
            ready = time.perf_counter() - began
            while not file.exists():
                time.sleep(0.005)
            token = json.loads(file.read_text())["token"]
            yield Place(url, token, port, psutil.Process(process.pid), ready)
        finally:
            process.terminate()


def _wait_until_ready(url: str, process: "subprocess.Popen[bytes]") -> None:
    with httpx2.Client() as client:
        while process.poll() is None:
            try:
                if client.get(f"{url}/readyz").status_code == 200:
                    return
            except httpx2.TransportError:
                time.sleep(0.005)
    raise SystemExit("the server did not start")
