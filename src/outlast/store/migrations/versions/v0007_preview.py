"""A session keeps the first words of its first message, for lists."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

_SESSIONS = sa.table("sessions", sa.column("id"), sa.column("preview"))
_INPUTS = sa.table("inputs", *map(sa.column, ("session_id", "kind", "state", "sequence", "text")))
_LONGEST = 80


def upgrade() -> None:
    op.add_column("sessions", sa.Column("preview", sa.Text(), nullable=True))
    first = (
        sa.select(sa.func.substr(_INPUTS.c.text, 1, _LONGEST))
        .where(_INPUTS.c.session_id == _SESSIONS.c.id, _INPUTS.c.kind == "message", _INPUTS.c.state != "removed")
        .order_by(_INPUTS.c.sequence)
        .limit(1)
    )
    op.execute(sa.update(_SESSIONS).values(preview=first.scalar_subquery()))
