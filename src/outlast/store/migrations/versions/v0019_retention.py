"""What was kept for its time is removed, and whoever asks for it is told so; models may make titles."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"

_ENDED = sa.text("ended_at IS NOT NULL AND output_removed_at IS NULL")


def upgrade() -> None:
    op.add_column("sessions", sa.Column("is_titled_by_model", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("tasks", sa.Column("output_removed_at", sa.BigInteger(), nullable=True))
    op.create_index("ix_tasks_ended", "tasks", ["ended_at"], sqlite_where=_ENDED, postgresql_where=_ENDED)
    op.create_table(
        "removals",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("up_to", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("kind", name=op.f("pk_removals")),
    )
