"""Turns that only wait take no place, and sub-sessions are found by their parent."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column("turns", sa.Column("is_waiting", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_index("ix_sessions_parent_id", "sessions", ["parent_id"])
