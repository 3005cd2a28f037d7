"""A server of its own for benchmarks that go over HTTP."""

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import psutil

from tests.support.processes.serving_process import ServingProcess


@dataclass(frozen=True)
class Place:
    port: int
    token: str
    server: ServingProcess
    process: psutil.Process
    ready_seconds: float

    def client(self) -> httpx2.AsyncClient:
        return self.server.client()


@contextmanager
def serving(
    folder: Path, app: str = "bench.server_app:app", environment: Mapping[str, str] | None = None
) -> Generator[Place]:
    """A server with an empty database in that folder, or with the one that is there."""
    began = time.perf_counter()
    with ServingProcess(folder, app=app, environment=environment) as server:
        ready = time.perf_counter() - began
        yield Place(server.port, server.place.token, server, psutil.Process(server.process.pid), ready)
