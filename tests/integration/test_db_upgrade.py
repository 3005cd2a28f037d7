"""`outlast db upgrade` on PostgreSQL: our tables and the queue's, before any process starts."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from outlast.errors import InvalidInput
from outlast.store import urls
from outlast.store.postgres.opening import open_postgres
from outlast.store.repositories import workers
from tests.support.processes.worker_process import APP, ROOT, Workers

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("way", ["url", "app"])
async def test_a_postgres_database_is_upgraded_without_starting_anything(
    postgres_url: str, tmp_path: Path, way: str
) -> None:
    """I5: once for each version; again changes nothing, and a URL is not repeated, for it may hold a password."""
    environment = Workers(postgres_url, tmp_path).environment
    for _ in range(2):
        said = upgrade(postgres_url if way == "url" else APP, environment)
        assert "has the schema of this version" in said
        assert postgres_url not in said
    database = await open_postgres(urls.parse(postgres_url))
    try:
        assert (await database.read(workers.roll)).sightings == []
        assert (await database.read(workers.forgotten)).turns == {}
    finally:
        await database.close()


async def test_a_database_that_cannot_be_used_is_told_with_what_to_do(postgres_url: str) -> None:
    """I5: none of that name, no such role, or no name at all: in words, not as an error of the driver."""
    there = urls.parse(postgres_url)
    for url, word in ((there.set(database="nothing"), "nothing"), (there.set(username="stranger"), "stranger")):
        with pytest.raises(InvalidInput, match=f"'{word}'.* does not exist.*Check the URL"):
            await open_postgres(url)
    with pytest.raises(InvalidInput, match="Name the database"):
        urls.parse("postgresql://ada@localhost")


def upgrade(target: str, environment: Mapping[str, str]) -> str:
    command = [sys.executable, "-m", "outlast", "db", "upgrade", target]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout
