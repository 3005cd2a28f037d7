"""What is said of tasks beside their own rows: their places, how much they have put out, and the last line of that."""

from collections.abc import Sequence
from dataclasses import replace

import sqlalchemy as sa

from outlast.store.repositories.spawned import with_places
from outlast.store.repositories.stored_task import Task
from outlast.store.tables import outputs

_LONGEST = 300
_MOST = 8_000
"""Characters at the end of an output in which its last line is looked for."""
_CONTROLS = {code: None for code in range(32) if code != 9}


def with_facts(connection: sa.Connection, found: Sequence[Task]) -> list[Task]:
    return with_outputs(connection, with_places(connection, found))


def with_outputs(connection: sa.Connection, found: Sequence[Task]) -> list[Task]:
    """Those that have put out something say how much, and its last line."""
    if not found:
        return []
    owners = {(each.session_id, each.output_id) for each in found}
    key = sa.tuple_(outputs.c.session_id, outputs.c.call_id)
    last = (
        sa.select(outputs.c.session_id, outputs.c.call_id, sa.func.max(outputs.c.number).label("number"))
        .where(key.in_(owners))
        .group_by(outputs.c.session_id, outputs.c.call_id)
        .subquery()
    )
    is_last = sa.and_(
        outputs.c.session_id == last.c.session_id,
        outputs.c.call_id == last.c.call_id,
        outputs.c.number == last.c.number,
    )
    rows = connection.execute(sa.select(outputs).join(last, is_last)).mappings()
    ends = {(row["session_id"], row["call_id"]): (row["offset"] + len(row["text"]), row["text"]) for row in rows}
    return [_with_end(each, ends.get((each.session_id, each.output_id))) for each in found]


def _with_end(task: Task, end: tuple[int, str] | None) -> Task:
    return task if end is None else replace(task, output_size=end[0], last_line=last_line(end[1]))


def last_line(text: str) -> str | None:
    """The last line of a chunk that has words in it, as a terminal would show it."""
    for line in reversed(text[-_MOST:].splitlines()):
        shown = line.translate(_CONTROLS).strip()
        if shown:
            return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"
    return None
