"""Agno's AgentOS: one process, sessions in a SQLite file."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from bench.peers.contender import Call, Contender
from bench.peers.environment import binaries
from bench.peers.server import free_port, running
from bench.turn_work import PROMPT

PACKAGES = ("agno==3.1.10", "fastapi", "uvicorn", "python-multipart", "sqlalchemy[asyncio]", "aiosqlite")


@contextmanager
def agno(folder: Path) -> Generator[Contender]:
    command = binaries("agno", PACKAGES) / "uvicorn"
    shutil.copy(Path(__file__).with_name("agno_app.txt"), folder / "agno_app.py")
    port = free_port()
    arguments = ("agno_app:app", "--host", "127.0.0.1", "--port", str(port), "--log-level", "error")
    started = running(
        "agno", [command, *arguments], folder, port, health="/health", environment={"AGNO_TELEMETRY": "false"}
    )
    with started as pid:
        url = f"http://127.0.0.1:{port}"
        yield Contender("agno", "SQLite file", url, lambda: [pid], None, "", _turn, "event: RunCompleted")


def _turn(session: str) -> Call:
    return Call("/agents/turn/runs", form={"message": PROMPT, "stream": "true", "session_id": session})
