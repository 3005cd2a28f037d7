"""Outlast itself: one process with a SQLite file, or one API process and two workers on PostgreSQL."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.cluster import cluster
from bench.cost_app import DATABASE
from bench.peers.contender import Call, Contender
from bench.server_process import serving
from bench.turn_work import PROMPT

APP = "bench.cost_app:app"
SQLITE, POSTGRES = "sqlite", "postgresql"


@contextmanager
def outlast_on_sqlite(folder: Path) -> Generator[Contender]:
    with serving(folder, APP, {DATABASE: "bench.db"}) as place:
        store, pids = "SQLite file, WAL, durability full", [place.process.pid]
        yield _contender(SQLITE, store, place.server.place.url, place.token, pids)


@contextmanager
def outlast_on_postgres(folder: Path) -> Generator[Contender]:
    with cluster(folder, workers=2, app=APP) as made:
        pids = [made.api_pid, *(each.pid for each in made.workers), made.postgres_pid]
        yield _contender(POSTGRES, "PostgreSQL with fsync; 1 API + 2 workers", made.url, made.token, pids)


def _contender(name: str, store: str, url: str, token: str, pids: Sequence[int]) -> Contender:
    headers = {"Authorization": f"Bearer {token}"}
    new = Call("/v1/sessions", {})
    return Contender(name, store, url, lambda: pids, new, "id", _turn, '"turn.completed"', headers)


def _turn(session: str) -> Call:
    return Call(f"/v1/sessions/{session}/messages", {"text": PROMPT})
