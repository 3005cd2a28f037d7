"""The last turn of a session is found without reading the others."""

from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.drop_index("ix_turns_session_id", table_name="turns")
    op.create_index("ix_turns_session_id_first_event", "turns", ["session_id", "first_event"])
