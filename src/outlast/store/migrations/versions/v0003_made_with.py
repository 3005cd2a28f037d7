"""Keys that were made with another key, and end with it."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("keys", sa.Column("made_with", sa.Text(), nullable=True))
    op.create_index("ix_keys_made_with", "keys", ["made_with"])
