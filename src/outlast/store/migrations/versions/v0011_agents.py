"""Agents are recorded with their models and tools, for processes that have not got them."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.create_table(
        "agents",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("models", sa.Text(), nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "agent_tools",
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("is_declared", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("agent", "name"),
    )
