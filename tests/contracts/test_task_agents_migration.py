"""Tasks that are older than the column of their agent have it."""

from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from outlast.ids import TaskId
from outlast.store import migrations, schema
from outlast.store.migrations.versions import v0010_task_requests
from outlast.store.repositories import tasks
from outlast.store.sqlite.database import make_engine

_SESSION: dict[str, Any] = {
    **dict.fromkeys(("first_event", "last_event", "last_message", "last_input", "created_at", "updated_at"), 1),
    **{"id": "ses_1", "owner_id": "ada", "agent": "a", "metadata": "{}", "is_held": False, "woken_turns": 0},
}
_TASK: dict[str, Any] = {
    **{"session_id": "ses_1", "owner_id": "ada", "kind": "call", "title": "fly", "state": "queued", "wake": "silent"},
    **{"artifacts": "[]", "metadata": "{}", "may_run_again": False, "attempt": 0, "created_at": 1},
}


def test_old_tasks_get_the_agent_that_their_spec_named(tmp_path: Path, monkeypatch: Any) -> None:
    """P1: of as many as there are; a spec that nobody can read leaves it empty."""
    monkeypatch.setattr(v0010_task_requests, "_PAGE", 2)
    specs = ['{"agent":"pilot","args":{}}', "{not JSON", '{"agent":5}', "[]", '{"agent":"desk"}']
    engine = make_engine(tmp_path / "old.db", durability="normal")
    with engine.connect() as connection, connection.begin():
        config = Config()
        config.set_main_option("script_location", str(Path(migrations.__file__).parent))
        config.attributes["connection"] = connection
        command.upgrade(config, "0009")
        _insert(connection, "sessions", _SESSION)
        for at, spec in enumerate(specs):
            _insert(connection, "tasks", {**_TASK, "id": f"tsk_{at}", "spec": spec})
        schema.upgrade(connection)
        rows = [tasks.get(connection, TaskId(f"tsk_{at}")) for at in range(len(specs))]
    engine.dispose()
    assert [each and each.agent for each in rows] == ["pilot", "", "", "", "desk"]


def _insert(connection: sa.Connection, table: str, values: dict[str, Any]) -> None:
    connection.execute(sa.insert(sa.table(table, *map(sa.column, values))), values)
