"""What was settled before it had a column of its own is found in it."""

from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from pydantic_core import to_json

from outlast.ids import TaskId
from outlast.store import migrations, schema
from outlast.store.repositories import tasks
from outlast.store.sqlite.database import make_engine

_SESSION: dict[str, Any] = {
    **dict.fromkeys(("first_event", "last_event", "last_message", "last_input", "created_at", "updated_at"), 1),
    **{"id": "ses_1", "owner_id": "ada", "agent": "a", "metadata": "{}", "is_held": False, "woken_turns": 0},
}
_TASK: dict[str, Any] = {
    **{"id": "tsk_1", "session_id": "ses_1", "owner_id": "ada", "kind": "call", "title": "dig", "spec": "{}"},
    **{"state": "failed", "artifacts": "[]", "wake": "on_terminal", "may_run_again": False, "attempt": 1},
    "created_at": 1,
}


def test_a_word_that_stood_among_the_metadata_is_moved(tmp_path: Path) -> None:
    """A2, DESIGN 4: its time was not kept then; metadata that only looks like it stays."""
    engine = make_engine(tmp_path / "old.db", durability="normal")
    said = {"team": "dig", "settled": {"verdict": "worked", "by": "olga", "note": "seen"}}
    with engine.connect() as connection, connection.begin():
        config = Config()
        config.set_main_option("script_location", str(Path(migrations.__file__).parent))
        config.attributes["connection"] = connection
        command.upgrade(config, "0003")
        _insert(connection, "sessions", _SESSION)
        _insert(connection, "tasks", {**_TASK, "metadata": to_json(said).decode()})
        _insert(connection, "tasks", {**_TASK, "id": "tsk_2", "metadata": '{"settled":"soon"}'})
        schema.upgrade(connection)
        moved, other = (tasks.get(connection, TaskId(each)) for each in ("tsk_1", "tsk_2"))
    engine.dispose()
    assert moved is not None
    assert moved.settled == {"verdict": "worked", "by": "olga", "note": "seen", "at": None}
    assert (moved.metadata, moved.links) == ({"team": "dig"}, {})
    assert other is not None
    assert (other.settled, other.metadata) == (None, {"settled": "soon"})


def _insert(connection: sa.Connection, table: str, values: dict[str, Any]) -> None:
    connection.execute(sa.insert(sa.table(table, *map(sa.column, values))), values)
