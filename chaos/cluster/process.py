"""One process of the cluster: the command `outlast worker` or `outlast serve --no-worker`, as an operator starts it.

It is forked from a process that has imported everything, instead of started: a machine that must import the same
modules after every kill does little else.
"""

import os
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from outlast.cli.main import app

APP = "chaos.cluster.app:outlast"
FOLDER, DATABASE, NUMBER = "CHAOS_FOLDER", "CHAOS_DATABASE", "CHAOS_NUMBER"
PRELOADED = (
    "chaos.cluster.process",
    "chaos.cluster.agent",
    "outlast.cli.server.process",
    "outlast.cli.server.worker_process",
    "outlast.engines.distributed",
    "outlast.store.postgres.opening",
    "sqlalchemy.dialects.postgresql.asyncpg",
)


@dataclass(frozen=True, slots=True)
class Post:
    """What a process is told at its start. With a `port` it serves HTTP, without one it runs turns."""

    folder: Path
    url: str
    number: int
    port: int | None

    @property
    def command(self) -> list[str]:
        return ["worker", APP] if self.port is None else ["serve", APP, "--no-worker", f"--port={self.port}"]

    @property
    def environment(self) -> Mapping[str, str]:
        return {FOLDER: str(self.folder), DATABASE: self.url, NUMBER: str(self.number)}


def main(post: Post, channel: socket.socket) -> None:
    """Until it is told to leave, or the driver at the other end of `channel` is gone. Output goes to the run's log."""
    log = os.open(post.folder / "workers.log", os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    home = post.folder / f"at {post.port or 'work'}"  # a server leaves a file where it runs
    home.mkdir(exist_ok=True)
    os.chdir(home)
    os.environ.update(post.environment)
    threading.Thread(target=_leave_with, args=(channel,), name="driver", daemon=True).start()
    app(post.command, prog_name="outlast")


def _leave_with(channel: socket.socket) -> None:
    """Nobody writes to it: it ends with the driver."""
    channel.recv(1)
    os._exit(1)
