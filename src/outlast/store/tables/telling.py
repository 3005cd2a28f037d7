"""What owners are told of: the feed, and webhooks."""

import sqlalchemy as sa

from outlast.store.tables.columns import instant, metadata

feed = sa.Table(
    "feed",
    metadata,
    sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, nullable=False),
    sa.Column("owner_id", sa.Text, nullable=False),
    sa.Column("session_id", sa.Text, nullable=False),
    sa.Column("event", sa.BigInteger, nullable=False),
    sa.Column("type", sa.Text, nullable=False),
    instant("at"),
    sa.Index("ix_feed_owner_id_number", "owner_id", "number"),
    sqlite_autoincrement=True,
)

removals = sa.Table(
    "removals",
    metadata,
    # Up to where a list no longer has what it had.
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("up_to", sa.BigInteger, nullable=False),
    instant("at"),
)

webhooks = sa.Table(
    "webhooks",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("owner_id", sa.Text, nullable=False),
    sa.Column("is_for_all", sa.Boolean, nullable=False),
    sa.Column("url", sa.Text, nullable=False),
    # A JSON list of what it is told of; NULL: of everything.
    sa.Column("types", sa.Text, nullable=True),
    sa.Column("sealed", sa.Text, nullable=False),
    # The secret before the last one, as long as both sign.
    sa.Column("sealed_before", sa.Text, nullable=True),
    instant("before_until", nullable=True),
    sa.Column("key_mark", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("off_reason", sa.Text, nullable=True),
    instant("failing_since", nullable=True),
    instant("created_at"),
    instant("updated_at"),
    sa.Index("ix_webhooks_owner_id", "owner_id"),
)

webhook_deliveries = sa.Table(
    "webhook_deliveries",
    metadata,
    sa.Column("webhook_id", sa.Text, nullable=False),
    sa.Column("session_id", sa.Text, nullable=False),
    sa.Column("event", sa.BigInteger, nullable=False),
    sa.Column("owner_id", sa.Text, nullable=False),
    sa.Column("type", sa.Text, nullable=False),
    sa.Column("told", sa.Text, nullable=False),
    instant("at"),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    # When it is sent next; while it is sent, when somebody else may send it again.
    instant("due_at"),
    # Retries end then: 24 hours after it happened, or after somebody asked for it again.
    instant("until"),
    instant("ended_at", nullable=True),
    sa.Column("status", sa.Integer, nullable=True),
    sa.Column("error", sa.Text, nullable=True),
    sa.Column("log", sa.Text, nullable=False),
    sa.PrimaryKeyConstraint("webhook_id", "session_id", "event"),
    sa.Index("ix_webhook_deliveries_session_id", "session_id"),
    sa.Index("ix_webhook_deliveries_at", "webhook_id", "at"),
    sa.Index(
        "ix_webhook_deliveries_due",
        "webhook_id",
        "due_at",
        sqlite_where=sa.text("state = 'pending'"),
        postgresql_where=sa.text("state = 'pending'"),
    ),
)
