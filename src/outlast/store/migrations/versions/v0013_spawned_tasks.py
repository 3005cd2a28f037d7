"""Tasks that were set going on purpose have places, and wait for them in order."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

_SPAWNED = sa.text("ended_at IS NULL AND origin = 'spawn'")


def upgrade() -> None:
    op.add_column("tasks", sa.Column("origin", sa.Text(), nullable=False, server_default="call"))
    op.add_column("tasks", sa.Column("admitted_at", sa.BigInteger(), nullable=True))
    op.create_index(
        "ix_tasks_spawned",
        "tasks",
        ["owner_id", "created_at"],
        sqlite_where=_SPAWNED,
        postgresql_where=_SPAWNED,
    )
