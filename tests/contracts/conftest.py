"""Every contract of the store is shown on SQLite and on PostgreSQL; what a program holds, over HTTP too."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from outlast.store.database import Database
from tests.support.stores.store import opened
from tests.support.turns.held import Hold, holding
from tests.support.turns.runtime import Runtime


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with opened(database_url) as database:
        yield database


@pytest.fixture(params=["sqlite", "postgresql", "client"])
def hold(request: pytest.FixtureRequest, tmp_path: Path) -> Hold:
    """The library on each engine, and the client of a server over a real socket."""
    runtime = Runtime(tmp_path / "outlast.db")
    if request.param == "postgresql":
        runtime = Runtime(request.getfixturevalue("ready_postgres_url"), files=str(tmp_path / "files"))
    return holding(runtime, over_http=request.param == "client")
