"""aegra: LangGraph's API on PostgreSQL, one process."""

import asyncio
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg

from bench.peers.contender import GRAPHS, Call, Contender, graph_turn
from bench.peers.environment import binaries
from bench.peers.langgraph import GRAPH
from bench.peers.server import free_port, running
from tests.support.stores.postgres import installed_postgres

PACKAGES = ("aegra==0.2.0", "aegra-api==0.6.0", "sqlalchemy[asyncio]", "psycopg[binary]")
_NAME = "aegra"
_POOL = "20"
"""Its own defaults, 2 and 6 connections, would be what limits it."""


@contextmanager
def aegra(folder: Path) -> Generator[Contender]:
    command = binaries("aegra", PACKAGES) / "uvicorn"
    shutil.copy(GRAPH, folder / "graph.py")
    (folder / "aegra.json").write_text(GRAPHS)
    port = free_port()
    with installed_postgres(is_durable=True) as postgres:
        asyncio.run(_make_database(postgres.folder))
        environment = {
            "DATABASE_URL": f"postgresql://postgres@/{_NAME}?host={postgres.folder}",
            "SQLALCHEMY_POOL_SIZE": _POOL,
            "LANGGRAPH_MAX_POOL_SIZE": _POOL,
            "AEGRA_CONFIG": "aegra.json",
            "LOG_LEVEL": "ERROR",
        }
        arguments = ("aegra_api.main:app", "--host", "127.0.0.1", "--port", str(port), "--log-level", "error")
        started = running("aegra", [command, *arguments], folder, port, health="/health", environment=environment)
        with started as pid:
            database = int((postgres.folder / "data" / "postmaster.pid").read_text().splitlines()[0])
            url = f"http://127.0.0.1:{port}"
            yield Contender(
                "aegra",
                "PostgreSQL with fsync",
                url,
                lambda: [pid, database],
                Call("/threads", {}),
                "thread_id",
                graph_turn,
                '"e now"',
            )


async def _make_database(folder: Path) -> None:
    """With the one function that it wants of `uuid-ossp`, which this PostgreSQL comes without."""
    share = folder / "share" / "extension"
    share.mkdir(parents=True)
    (share / "uuid-ossp.control").write_text("default_version = '1.1'\nrelocatable = true\n")
    (share / "uuid-ossp--1.1.sql").write_text(
        "CREATE FUNCTION uuid_generate_v4() RETURNS uuid LANGUAGE sql AS 'SELECT gen_random_uuid()';\n"
    )
    driver: Any = asyncpg
    connection = await driver.connect(host=str(folder), user="postgres", database="postgres")
    await connection.execute(f"CREATE DATABASE {_NAME}")
    await connection.execute(f"ALTER DATABASE {_NAME} SET extension_control_path = '{share.parent}:$system'")
    await connection.close()
