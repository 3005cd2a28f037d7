"""The tasks of an owner are listed, and those that wait for somebody counted, without reading those of others."""

from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.create_index("ix_tasks_owner_id_id", "tasks", ["owner_id", "id"])
    op.create_index("ix_tasks_owner_id_state", "tasks", ["owner_id", "state"])
