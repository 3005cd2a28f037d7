"""What stays of what was kept for a time only: the folds of turns whose log is gone, and when what was removed."""

import sqlalchemy as sa

from outlast.store.tables.columns import instant, metadata, session_id

turn_folds = sa.Table(
    "turn_folds",
    metadata,
    session_id(),
    sa.Column("turn_id", sa.Text, nullable=False),
    # Of the last event that it stands for.
    sa.Column("number", sa.BigInteger, nullable=False),
    # JSON, one entry an event: number, type, instant, turn, task, length of its data.
    sa.Column("events", sa.Text, nullable=False),
    # Their data, one after the other.
    sa.Column("data", sa.Text, nullable=False),
    sa.PrimaryKeyConstraint("session_id", "turn_id", "number"),
    sqlite_with_rowid=False,
)

removed_logs = sa.Table(
    "removed_logs",
    metadata,
    session_id(),
    # The last event that is no longer read.
    sa.Column("up_to", sa.BigInteger, nullable=False),
    # The last event whose row is gone: for a while, who was reading may read on.
    sa.Column("emptied_to", sa.BigInteger, nullable=False),
    instant("at"),
    sa.PrimaryKeyConstraint("session_id"),
    sa.Index(
        "ix_removed_logs_at",
        "at",
        sqlite_where=sa.text("emptied_to < up_to"),
        postgresql_where=sa.text("emptied_to < up_to"),
    ),
    sqlite_with_rowid=False,
)

removed_sessions = sa.Table(
    "removed_sessions",
    metadata,
    sa.Column("id", sa.Text, nullable=False),
    sa.Column("owner_id", sa.Text, nullable=False),
    # The setting by which it was removed.
    sa.Column("setting", sa.Text, nullable=False),
    instant("at"),
    sa.PrimaryKeyConstraint("id"),
    sa.Index("ix_removed_sessions_at", "at"),
    sqlite_with_rowid=False,
)
