"""Every contract of the store is shown on SQLite and on PostgreSQL."""

from collections.abc import AsyncIterator

import pytest

from outlast.store.database import Database
from tests.support.stores.store import opened


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with opened(database_url) as database:
        yield database
