"""Logs of ended turns and archived sessions may be kept for a time only."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"

_ARCHIVED = sa.text("is_archived")
_ENDED = sa.text("ended_at IS NOT NULL AND log_removed_at IS NULL")
_LEFT = sa.text("emptied_to < up_to")


def upgrade() -> None:
    op.add_column("turns", sa.Column("log_removed_at", sa.BigInteger(), nullable=True))
    op.create_index("ix_turns_ended", "turns", ["ended_at", "id"], sqlite_where=_ENDED, postgresql_where=_ENDED)
    op.create_index(
        "ix_sessions_archived", "sessions", ["updated_at"], sqlite_where=_ARCHIVED, postgresql_where=_ARCHIVED
    )
    op.create_table(
        "turn_folds",
        _session_id(),
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("events", sa.Text(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("session_id", "turn_id", "number", name=op.f("pk_turn_folds")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "removed_logs",
        _session_id(),
        sa.Column("up_to", sa.BigInteger(), nullable=False),
        sa.Column("emptied_to", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("session_id", name=op.f("pk_removed_logs")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_removed_logs_at", "removed_logs", ["at"], sqlite_where=_LEFT, postgresql_where=_LEFT)
    op.create_table(
        "removed_sessions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("setting", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_removed_sessions")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_removed_sessions_at", "removed_sessions", ["at"])


def _session_id() -> sa.Column[str]:
    return sa.Column("session_id", sa.Text(), sa.ForeignKey("sessions.id", ondelete="CASCADE"), nullable=False)
