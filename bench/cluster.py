"""A PostgreSQL, one API process and some workers, each a process of its own on this machine."""

import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from outlast.cli.server_file import ServerFile
from tests.support.stores.postgres import running_postgres

ROOT = Path(__file__).parents[1]
APP = "bench.cluster_app:app"


@dataclass
class Cluster:
    database: str
    folder: Path
    workers: list["subprocess.Popen[bytes]"] = field(default_factory=list["subprocess.Popen[bytes]"])
    app: str = APP
    is_apart: bool = False
    postgres_pid: int = 0
    api_pid: int = 0
    url: str = ""
    token: str = ""

    def client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(base_url=self.url, headers={"Authorization": f"Bearer {self.token}"}, timeout=60)

    @property
    def cancelled(self) -> Path:
        return self.folder / "cancelled"

    def start(self, *arguments: str, ready: str) -> "subprocess.Popen[bytes]":
        """Returns when it has said that it is ready."""
        log = self.folder / f"log-{len(list(self.folder.glob('log-*')))}"
        environment = {
            **os.environ,
            "BENCH_DATABASE": self.database,
            "BENCH_CANCELLED": str(self.cancelled),
            "OUTLAST_FILES": str(self.folder / "files"),
            "PYTHONPATH": str(ROOT),
            **({"BENCH_PLACE": "a machine of its own"} if self.is_apart else {}),
        }
        with log.open("wb") as said:
            process = subprocess.Popen(
                [sys.executable, "-m", "outlast", *arguments], env=environment, cwd=self.folder, stderr=said
            )
        while ready not in log.read_text():
            if process.poll() is not None:
                raise SystemExit(log.read_text())
            time.sleep(0.02)
        return process

    def add_worker(self) -> "subprocess.Popen[bytes]":
        worker = self.start("worker", self.app, ready="is ready")
        self.workers.append(worker)
        return worker


@contextmanager
def cluster(
    folder: Path, *, workers: int, app: str = APP, has_api: bool = True, is_apart: bool = False
) -> Generator[Cluster]:
    """Without the API process, this one accepts."""
    with ExitStack() as stack:
        server = stack.enter_context(running_postgres(is_durable=True))
        made = Cluster(stack.enter_context(server.new_database()), folder, app=app, is_apart=is_apart)
        made.postgres_pid = int((server.folder / "data" / "postmaster.pid").read_text().splitlines()[0])
        if has_api:
            api = made.start("serve", app, "--no-worker", "--port", "0", ready="key for other programs")
            stack.callback(_end, [api])
            made.api_pid = api.pid
            place = next(each for each in (ServerFile(path).read() for path in folder.glob("*.server.json")) if each)
            made.url, made.token = place.url, place.token
        stack.callback(_end, made.workers)
        for _ in range(workers):
            made.add_worker()
        yield made


def _end(processes: list["subprocess.Popen[bytes]"]) -> None:
    for process in processes:
        if process.poll() is None:
            process.terminate()
    for process in processes:
        process.wait()
