"""What a server needs: owners' keys, spending and feed; sessions that are named, archived, read and deleted."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    for column in (
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("is_archived", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("answered_event", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("read_event", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("deleted_at", sa.BigInteger(), nullable=True),
    ):
        op.add_column("sessions", column)
    op.add_column("workers", sa.Column("agents", sa.Text(), nullable=False, server_default="[]"))
    op.add_column("messages", sa.Column("superseded_by", sa.Text(), nullable=True))
    op.create_index("uq_sessions_owner_id_external_id", "sessions", ["owner_id", "external_id"], unique=True)
    is_deleted = sa.text("deleted_at IS NOT NULL")
    op.create_index(
        "ix_sessions_deleted_at", "sessions", ["deleted_at"], sqlite_where=is_deleted, postgresql_where=is_deleted
    )
    op.create_table(
        "creations",
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("owner_id", "idempotency_key", name=op.f("pk_creations")),
    )
    op.create_table(
        "feed",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("event", sa.BigInteger(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_feed")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_feed_owner_id_number", "feed", ["owner_id", "number"])
    op.create_table(
        "keys",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("used_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_keys")),
    )
    op.create_index("ix_keys_owner_id", "keys", ["owner_id"])
    op.create_table(
        "spending",
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("day", sa.Text(), nullable=False),
        sa.Column("requests", sa.BigInteger(), nullable=False),
        sa.Column("unpriced_requests", sa.BigInteger(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cache_read_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cache_write_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cost_microdollars", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("owner_id", "day", name=op.f("pk_spending")),
    )
    op.create_table(
        "pauses",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pauses")),
    )
