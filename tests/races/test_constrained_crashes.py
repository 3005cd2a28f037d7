"""What holds in a session when its process comes back: a call that had begun is judged again, and told truthfully."""

import asyncio
from pathlib import Path

import pytest
import sqlalchemy as sa

from outlast.ids import SessionId
from outlast.store import tables
from outlast.transitions.sessions import constraints
from outlast.transitions.sessions.constraints import Constraints
from tests.support.crashes.crash import World, crash, session_of
from tests.support.stores.store import opened

pytestmark = pytest.mark.timeout(180)
"""Each test starts another interpreter, on a machine that may be busy."""
DENIED = Constraints({"allow": None, "deny": ["upsert"]})


@pytest.mark.parametrize("new", [Constraints(is_dry_run=True), DENIED], ids=["dry run", "denied"])
async def test_a_call_that_had_begun_is_not_run_again_where_it_may_not_be(tmp_path: Path, new: Constraints) -> None:
    """A7, A8, kill: nobody is told that nothing was changed, for the call may have taken effect before the crash."""
    await asyncio.to_thread(crash, tmp_path, "one upsert", "tool upsert")
    world = World(tmp_path)
    async with opened(f"sqlite:///{world.database}") as database:
        query = sa.select(tables.sessions.c.id)
        session_id = SessionId(await database.read(lambda connection: connection.execute(query).scalar_one()))
        names = ["permissions", "is_dry_run"]
        await database.transaction(
            lambda unit: constraints.change(unit, session_id, new, owner_id="local", names=names), name="update"
        )
    async with world.open("one upsert") as outlast:
        outcome = await (await session_of(outlast)).settled()
        assert outcome is not None
        (told,) = outcome.calls
        assert told.outcome == "interrupted"
        assert "may or may not have taken effect, and it was not run again" in str(told.result)
    assert len(world.effects) == 1
