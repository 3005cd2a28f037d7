"""A task keeps what agents used that its tool ran."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("tasks", sa.Column("usage", sa.Text(), nullable=True))
