"""Who may do what: keys, secrets and connections of owners."""

import sqlalchemy as sa

from outlast.store.tables.columns import instant, metadata

keys = sa.Table(
    "keys",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("owner_id", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("scope", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
    instant("created_at"),
    instant("expires_at", nullable=True),
    instant("used_at", nullable=True),
    instant("revoked_at", nullable=True),
    sa.Column("made_with", sa.Text, nullable=True),
    sa.Index("ix_keys_owner_id", "owner_id"),
    sa.Index("ix_keys_made_with", "made_with"),
)

kept_secrets = sa.Table(
    "kept_secrets",
    metadata,
    sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("mark", sa.Text, nullable=False),
    sa.Column("value", sa.Text, nullable=False),
    instant("created_at"),
    sa.Index("ix_kept_secrets_mark", "mark"),
    sqlite_autoincrement=True,
)

connections = sa.Table(
    "connections",
    metadata,
    sa.Column("owner_id", sa.Text, nullable=False),
    sa.Column("provider", sa.Text, nullable=False),
    sa.Column("sealed", sa.Text, nullable=False),
    sa.Column("key_mark", sa.Text, nullable=False),
    instant("created_at"),
    instant("updated_at"),
    instant("used_at", nullable=True),
    sa.PrimaryKeyConstraint("owner_id", "provider"),
)
