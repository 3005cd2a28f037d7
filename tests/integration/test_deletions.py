"""A deletion that was begun is finished, whoever dies: by a living worker's sweep, without a restart (D10, P1)."""

import asyncio
from pathlib import Path

import pytest

from outlast.engines import sweep
from outlast.store.deleted import marked
from tests.support.deleting_child import delete_until
from tests.support.runtime import Runtime

ROOT = Path(__file__).parents[2]


async def test_a_living_worker_finishes_what_a_dead_process_began(
    ready_postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D10: a process is killed after its first rows; a worker beside it removes the rest."""
    place = "commit delete.rows after 1"
    monkeypatch.setattr(sweep, "_TIDY_SECONDS", 0.2)
    async with Runtime(ready_postgres_url, files=str(tmp_path / "files"))(lambda _: "Yes.") as outlast:
        await asyncio.to_thread(delete_until, tmp_path, place, ready_postgres_url)
        async with asyncio.timeout(30):
            while await outlast.database.read(marked):  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.05)
        (left,) = await outlast.sessions.list(archived=None)
        assert left.title == "Other"
        async with asyncio.timeout(30):
            while (kept := [each.name for each in (tmp_path / "files").iterdir()]) != [left.id]:
                assert left.id in kept
                await asyncio.sleep(0.05)
        assert len(await left.history()) == 1
        assert (await outlast.sessions.create(external_id="one")).title is None
