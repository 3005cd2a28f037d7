"""Sessions that are older than previews are told apart in lists too."""

from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from outlast.ids import SessionId
from outlast.store import migrations, schema
from outlast.store.repositories import sessions
from outlast.store.sqlite.database import make_engine

_SESSION: dict[str, Any] = {
    **dict.fromkeys(("first_event", "last_event", "last_message", "last_input", "created_at", "updated_at"), 1),
    **{"owner_id": "ada", "agent": "a", "metadata": "{}", "is_held": False, "woken_turns": 0},
}
_INPUT: dict[str, Any] = {
    **{"session_id": "ses_1", "owner_id": "ada", "mode": "steer", "body": "{}", "was_busy": False, "created_at": 1},
}


def test_old_sessions_get_the_first_words_of_their_first_message(tmp_path: Path) -> None:
    """D10: not of one that was removed, and not of what the runtime said."""
    engine = make_engine(tmp_path / "old.db", durability="normal")
    with engine.connect() as connection, connection.begin():
        config = Config()
        config.set_main_option("script_location", str(Path(migrations.__file__).parent))
        config.attributes["connection"] = connection
        command.upgrade(config, "0006")
        for name in ("ses_1", "ses_2"):
            _insert(connection, "sessions", {**_SESSION, "id": name})
        said = [("message", "removed", "No."), ("wake", "delivered", "Done."), ("message", "delivered", "Yes. " * 50)]
        for at, (kind, state, text) in enumerate([*said, ("message", "waiting", "More.")]):
            values = {"id": f"inp_{at}", "sequence": at, "kind": kind, "state": state, "text": text}
            _insert(connection, "inputs", {**_INPUT, **values})
        schema.upgrade(connection)
        rows = [sessions.get(connection, SessionId(each), "ada") for each in ("ses_1", "ses_2")]
    engine.dispose()
    assert [each and each.preview for each in rows] == [("Yes. " * 50)[:80], None]


def _insert(connection: sa.Connection, table: str, values: dict[str, Any]) -> None:
    connection.execute(sa.insert(sa.table(table, *map(sa.column, values))), values)
