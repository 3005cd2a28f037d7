"""Fixtures shared by all tests: real databases, and a check that nothing is left behind."""

import asyncio
import gc
import threading
import time
from collections.abc import AsyncIterator, Generator, Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.support.stores.postgres import PostgresServer, postgres_version, running_postgres
from tests.support.turns.runtime import Runtime

THREAD_GRACE_SECONDS = 2.0


def pytest_report_header() -> str:
    return f"pydantic-ai {version('pydantic-ai-slim')}, {postgres_version()}"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL server of its own for each test process, started when first asked for."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A new, empty PostgreSQL database."""
    with postgres_server.new_database() as url:
        yield url


@pytest.fixture(scope="session")
def migrated_postgres(postgres_server: PostgresServer) -> str:
    """The name of a database that has the schema: copied by tests that are not about migrating."""
    return postgres_server.migrated()


@pytest.fixture
def ready_postgres_url(postgres_server: PostgresServer, migrated_postgres: str) -> Generator[str]:
    """A PostgreSQL database with the schema and nothing in it."""
    with postgres_server.new_database(template=migrated_postgres) as url:
        yield url


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'outlast.db'}"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """A new database without anything in it; a test that asks for it runs once on each kind."""
    fixture = {"sqlite": "sqlite_url", "postgresql": "ready_postgres_url"}[request.param]
    return request.getfixturevalue(fixture)


@pytest.fixture(params=["sqlite", "postgresql"])
def runtime(request: pytest.FixtureRequest, tmp_path: Path) -> Runtime:
    """Opens runtimes on a database of this test's own, once on each engine; opening it again is a restart."""
    if request.param == "sqlite":
        return Runtime(tmp_path / "outlast.db")
    return Runtime(request.getfixturevalue("ready_postgres_url"), files=str(tmp_path / "files"))


@pytest.fixture
def embedded(tmp_path: Path) -> Runtime:
    """For what is only true of one process with its file: its clock can be set, and a child can be killed on it."""
    return Runtime(tmp_path / "outlast.db")


@pytest.fixture(autouse=True)
def no_thread_left_behind() -> Iterator[None]:
    """Set up first, so that it looks after every other fixture and the event loop have ended."""
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + THREAD_GRACE_SECONDS
    started = [thread for thread in threading.enumerate() if thread not in before and not thread.daemon]
    for thread in started:
        thread.join(max(0.0, deadline - time.monotonic()))
    left = [thread.name for thread in started if thread.is_alive()]
    assert not left, f"threads left behind: {left}"


@pytest.fixture(autouse=True)
async def no_asyncio_task_left_behind(no_thread_left_behind: None) -> AsyncIterator[None]:
    """Looks before the event loop closes, which would quietly cancel what is still running."""
    before = asyncio.all_tasks()
    yield
    await asyncio.sleep(0)  # lets a task that was just cancelled and awaited leave the loop
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    names = sorted(f"{task.get_name()}: {task.get_coro()!r}" for task in left)
    assert not left, f"asyncio tasks left behind: {names}"


def pytest_collection_finish() -> None:
    """What was loaded so far stays to the end: Python need not go through it again to find garbage."""
    gc.freeze()
