"""What a person said of a task has a column of its own; tasks have links, sessions the calls that nobody settled."""

import sqlalchemy as sa
from alembic import op
from pydantic_core import from_json, to_json

revision = "0004"
down_revision = "0003"

_TASKS = sa.table("tasks", sa.column("id"), sa.column("metadata"), sa.column("settled"))


def upgrade() -> None:
    op.add_column("tasks", sa.Column("settled", sa.Text(), nullable=True))
    op.add_column("tasks", sa.Column("links", sa.Text(), nullable=False, server_default="{}"))
    op.add_column("sessions", sa.Column("interrupted_calls", sa.Text(), nullable=False, server_default="[]"))
    _move_settled()


def _move_settled() -> None:
    """It stood among the metadata, without its time."""
    connection = op.get_bind()
    marked = sa.select(_TASKS.c.id, _TASKS.c.metadata).where(_TASKS.c.metadata.contains('"settled":', autoescape=True))
    for task_id, stored in connection.execute(marked).all():
        metadata = from_json(stored)
        said = metadata.pop("settled", None)
        if isinstance(said, dict):
            settled = to_json({**said, "at": None}).decode()
            values = {"metadata": to_json(metadata).decode(), "settled": settled}
            connection.execute(sa.update(_TASKS).where(_TASKS.c.id == task_id).values(values))
