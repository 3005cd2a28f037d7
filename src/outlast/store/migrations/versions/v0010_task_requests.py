"""A task names its agent, its key, what it asks a person for, and how often it may be tried."""

from typing import Any, cast

import sqlalchemy as sa
from alembic import op
from pydantic_core import from_json

revision = "0010"
down_revision = "0009"

_TASKS = sa.table("tasks", sa.column("id"), sa.column("spec"), sa.column("agent"))
_PAGE = 500


def upgrade() -> None:
    op.add_column("tasks", sa.Column("agent", sa.Text(), nullable=False, server_default=sa.text("''")))
    op.add_column("tasks", sa.Column("key", sa.Text(), nullable=True))
    op.add_column("tasks", sa.Column("request", sa.Text(), nullable=True))
    op.add_column("tasks", sa.Column("max_attempts", sa.Integer(), nullable=True))
    op.create_index("uq_tasks_session_id_key", "tasks", ["session_id", "key"], unique=True)
    _fill_agents()


def _fill_agents() -> None:
    """It stood in the spec. A spec that cannot be read leaves it empty: nobody could run such a task before either."""
    connection, after = op.get_bind(), ""
    while True:
        page = sa.select(_TASKS.c.id, _TASKS.c.spec).where(_TASKS.c.id > after).order_by(_TASKS.c.id).limit(_PAGE)
        found = connection.execute(page).all()
        named = [{"task": task_id, "name": agent} for task_id, spec in found if (agent := _agent_in(spec))]
        if named:
            update = sa.update(_TASKS).where(_TASKS.c.id == sa.bindparam("task"))
            connection.execute(update.values(agent=sa.bindparam("name")), named)
        if len(found) < _PAGE:
            return
        after = found[-1][0]


def _agent_in(spec: str) -> str | None:
    try:
        held = from_json(spec)
    except ValueError:
        return None
    agent = cast(dict[str, Any], held).get("agent") if isinstance(held, dict) else None
    return agent if isinstance(agent, str) else None
