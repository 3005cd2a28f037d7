"""Schedules, and what became of each time at which one was due."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"

_DUE = sa.text("due_at IS NOT NULL")
_QUEUED = sa.text("outcome = 'queued'")


def _session_id() -> sa.Column[str]:
    return sa.Column("session_id", sa.Text(), sa.ForeignKey("sessions.id", ondelete="CASCADE"), nullable=False)


def upgrade() -> None:
    op.create_table(
        "schedules",
        sa.Column("id", sa.Text(), primary_key=True),
        _session_id(),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("title", sa.Text()),
        sa.Column("text", sa.Text()),
        sa.Column("tool", sa.Text()),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("cron", sa.Text()),
        sa.Column("at", sa.BigInteger()),
        sa.Column("zone", sa.Text(), nullable=False),
        sa.Column("missed", sa.Text(), nullable=False),
        sa.Column("overlap", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("due_at", sa.BigInteger()),
        sa.Column("made_by", sa.Text(), nullable=False),
        sa.Column("key", sa.Text()),
        sa.Column("task_id", sa.Text()),
        sa.Column("last_fire", sa.Integer(), nullable=False),
        sa.Column("fired", sa.Integer(), nullable=False),
        sa.Column("last_fired_at", sa.BigInteger()),
        sa.Column("last_result", sa.Text()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
    )
    op.create_index("ix_schedules_session_id", "schedules", ["session_id"])
    op.create_index("ix_schedules_owner_id", "schedules", ["owner_id"])
    op.create_index("uq_schedules_session_id_key", "schedules", ["session_id", "key"], unique=True)
    op.create_index("ix_schedules_due_at", "schedules", ["due_at"], sqlite_where=_DUE, postgresql_where=_DUE)
    op.create_table(
        "fires",
        sa.Column("schedule_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        _session_id(),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("how", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("detail", sa.Text()),
        sa.Column("late_seconds", sa.Float(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("input_id", sa.Text()),
        sa.Column("task_id", sa.Text()),
        sa.PrimaryKeyConstraint("schedule_id", "number"),
    )
    op.create_index("ix_fires_session_id", "fires", ["session_id"])
    op.create_index(
        "ix_fires_queued", "fires", ["schedule_id", "number"], sqlite_where=_QUEUED, postgresql_where=_QUEUED
    )
