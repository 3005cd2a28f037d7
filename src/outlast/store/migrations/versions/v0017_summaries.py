"""Summaries stand for the oldest messages of a session where its model is sent them."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.create_table(
        "summaries",
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("up_to", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("usage", sa.Text(), nullable=True),
        sa.Column("turn_id", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.id"], name=op.f("fk_summaries_session_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("session_id", "up_to", name=op.f("pk_summaries")),
        sqlite_with_rowid=False,
    )
