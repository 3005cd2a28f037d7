"""A deletion that was begun is finished, whoever dies: by a living worker's sweep, without a restart (D10, P1)."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic_ai.messages import ModelRequest, UserPromptPart

from outlast.duties import duty
from outlast.store.repositories import deleted
from outlast.transitions import deletion
from tests.support.crashes.deleting_child import LARGE
from tests.support.turns.runtime import Runtime


@pytest.mark.parametrize("has_removed_rows", [False, True], ids=["marked", "rows removed"])
async def test_a_living_worker_finishes_what_a_dead_process_began(
    ready_postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_removed_rows: bool
) -> None:
    """D10: a process ended after its mark, or between rows and files; a worker that is there removes the rest."""
    monkeypatch.setattr(duty, "EVERY", timedelta(seconds=0.1))
    files = tmp_path / "files"
    async with Runtime(ready_postgres_url, files=str(files))(lambda _: "Yes.") as outlast:
        said = [ModelRequest(parts=[UserPromptPart(content=LARGE)])]
        session = await outlast.sessions.create(external_id="one", history=said)
        other = await outlast.sessions.create(history=said)
        await session.ask("Hi")
        assert {each.name for each in files.iterdir()} == {session.id, other.id}
        await outlast.database.transaction(
            lambda unit: deletion.mark(unit, session.id, owner_id="local"), name="delete"
        )
        if has_removed_rows:
            await outlast.database.transaction(lambda unit: deleted.remove_some(unit, session.id), name="delete.rows")
        async with asyncio.timeout(60):
            while await outlast.database.read(deleted.marked) or (files / session.id).exists():  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert [each.id for each in await outlast.sessions.list(archived=None)] == [other.id]
        assert len(await other.history()) == 1
        assert (await outlast.sessions.create(external_id="one")).id != session.id
