"""What the tools of a session may do: permissions, dry run, and the resource that it is bound to."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    for column in (
        sa.Column("permissions", sa.Text(), nullable=True),
        sa.Column("is_dry_run", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("binding", sa.Text(), nullable=True),
        sa.Column("resource", sa.Text(), nullable=True),
    ):
        op.add_column("sessions", column)
    op.create_index("uq_sessions_owner_id_resource", "sessions", ["owner_id", "resource"], unique=True)
