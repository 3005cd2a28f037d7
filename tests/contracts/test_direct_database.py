"""PostgreSQL behind a pooler: a direct URL for what needs a session of its own, checked at start."""

from collections.abc import Generator

import pytest

from outlast.errors import InvalidInput
from outlast.store import urls
from outlast.store.postgres import opening
from outlast.store.postgres.opening import open_postgres
from tests.support.stores.postgres import PostgresServer
from tests.support.stores.store import append, new_session, note, stored_notes


async def test_a_direct_url_to_the_same_database_is_taken(postgres_url: str) -> None:
    """DESIGN 8: statements are not prepared for, so that a pooler may give each transaction another session."""
    url = urls.parse(postgres_url)
    database = await open_postgres(url, direct=url, connections=2)
    try:
        session_id = await new_session(database)
        await append(database, session_id, note("one"), note("two"))
        assert await stored_notes(database, session_id) == ["one", "two"]
    finally:
        await database.close()


@pytest.fixture
def other_url(postgres_server: PostgresServer) -> Generator[str]:
    with postgres_server.new_database() as url:
        yield url


async def test_a_direct_url_to_another_database_is_refused(
    postgres_url: str, other_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what to do, and leaves nothing behind."""
    monkeypatch.setattr(opening, "_HEARS_WITHIN", 0.2)
    await (await open_postgres(urls.parse(postgres_url))).close()
    with pytest.raises(InvalidInput, match="straight to the PostgreSQL server"):
        await open_postgres(urls.parse(postgres_url), direct=urls.parse(other_url))
