"""What is due again and again, and what became of each time."""

import sqlalchemy as sa

from outlast.store.tables.columns import instant, metadata, session_id

schedules = sa.Table(
    "schedules",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    session_id(),
    sa.Column("owner_id", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("title", sa.Text),
    sa.Column("text", sa.Text),
    sa.Column("tool", sa.Text),
    # How its tasks are made, and the condition of a monitor.
    sa.Column("spec", sa.Text, nullable=False),
    sa.Column("cron", sa.Text),
    instant("at", nullable=True),
    sa.Column("zone", sa.Text, nullable=False),
    sa.Column("missed", sa.Text, nullable=False),
    sa.Column("overlap", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("reason", sa.Text),
    # NULL unless it is active.
    instant("due_at", nullable=True),
    sa.Column("made_by", sa.Text, nullable=False),
    sa.Column("key", sa.Text),
    sa.Column("task_id", sa.Text),
    sa.Column("last_fire", sa.Integer, nullable=False),
    sa.Column("fired", sa.Integer, nullable=False),
    instant("last_fired_at", nullable=True),
    sa.Column("last_result", sa.Text),
    instant("created_at"),
    instant("updated_at"),
    sa.Index("ix_schedules_session_id", "session_id"),
    sa.Index("ix_schedules_owner_id", "owner_id"),
    sa.Index("uq_schedules_session_id_key", "session_id", "key", unique=True),
    sa.Index(
        "ix_schedules_due_at",
        "due_at",
        sqlite_where=sa.text("due_at IS NOT NULL"),
        postgresql_where=sa.text("due_at IS NOT NULL"),
    ),
)

fires = sa.Table(
    "fires",
    metadata,
    sa.Column("schedule_id", sa.Text, nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    session_id(),
    instant("due_at"),
    instant("at"),
    sa.Column("how", sa.Text, nullable=False),
    sa.Column("outcome", sa.Text, nullable=False),
    sa.Column("reason", sa.Text),
    sa.Column("detail", sa.Text),
    sa.Column("late_seconds", sa.Float, nullable=False),
    sa.Column("count", sa.Integer, nullable=False),
    sa.Column("input_id", sa.Text),
    sa.Column("task_id", sa.Text),
    sa.PrimaryKeyConstraint("schedule_id", "number"),
    sa.Index("ix_fires_session_id", "session_id"),
    sa.Index(
        "ix_fires_queued",
        "schedule_id",
        "number",
        sqlite_where=sa.text("outcome = 'queued'"),
        postgresql_where=sa.text("outcome = 'queued'"),
    ),
)
