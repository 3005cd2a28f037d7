"""Agents that some worker had at some time, with their models and tools: kept when the worker is gone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import sqlalchemy as sa
from pydantic_core import to_json
from sqlalchemy.dialects import postgresql, sqlite

from outlast.store.tables import agent_tools, agents
from outlast.store.unit import Unit
from outlast.values import row_json
from outlast.values.shape import Shape, list_of, maybe, object_of, text

Tool: TypeAlias = Mapping[str, Any]
"""A tool definition as JSON. See `outlast.agents.stored_tool`."""
_TOOL: Shape = {
    "name": text,
    "description": maybe(text),
    "parameters": object_of(),
    "metadata": maybe(object_of()),
    "hints": maybe(object_of()),
}


@dataclass(frozen=True, slots=True)
class RecordedAgent:
    """`version` changes with its declared tools and models; of several workers, the one that started last."""

    name: str
    version: str
    models: Sequence[str]


def record(
    unit: Unit, name: str, *, version: str, models: Sequence[str], tools: Sequence[Tool], has_others: bool
) -> None:
    """In place of what was declared before. Tools that were listed stay, unless it has only what it declares.

    The agent's row is written first: of two workers that start at once, the second waits for the first.
    """
    row = {
        "name": name,
        "version": version,
        "models": to_json(sorted(models)).decode(),
        "recorded_at": unit.now_us,
    }
    unit.connection.execute(_upsert(unit, agents, ["name"], row))
    gone = sa.delete(agent_tools).where(agent_tools.c.agent == name)
    unit.connection.execute(gone.where(agent_tools.c.is_declared) if has_others else gone)
    _put(unit, name, tools, is_declared=True)


def add_listed(unit: Unit, agent: str, tools: Sequence[Tool]) -> None:
    """What a toolset has said to have. One that it no longer has stays as it was last listed."""
    unit.connection.execute(sa.update(agents).where(agents.c.name == agent).values(recorded_at=unit.now_us))
    _put(unit, agent, tools, is_declared=False)


def every(connection: sa.Connection) -> list[RecordedAgent]:
    return [_agent(row) for row in connection.execute(sa.select(agents).order_by(agents.c.name)).mappings()]


def find(connection: sa.Connection, name: str) -> RecordedAgent | None:
    row = connection.execute(sa.select(agents).where(agents.c.name == name)).mappings().one_or_none()
    return None if row is None else _agent(row)


def tools_of(connection: sa.Connection, agent: str) -> list[Tool]:
    """By name. One that cannot be read counts as not recorded."""
    query = sa.select(agent_tools.c.definition).where(agent_tools.c.agent == agent).order_by(agent_tools.c.name)
    found = [row_json.read_object(each, _TOOL) for each in connection.execute(query).scalars()]
    return [each for each in found if not row_json.is_unreadable(each)]


def _put(unit: Unit, agent: str, tools: Sequence[Tool], *, is_declared: bool) -> None:
    for name, each in sorted({each["name"]: each for each in tools}.items()):
        row = {
            "agent": agent,
            "name": name,
            "definition": to_json(each).decode(),
            "is_declared": is_declared,
        }
        unit.connection.execute(_upsert(unit, agent_tools, ["agent", "name"], row))


def _upsert(unit: Unit, table: sa.Table, key: Sequence[str], row: Mapping[str, Any]) -> sa.Insert:
    insert = (postgresql.insert if unit.dialect == "postgresql" else sqlite.insert)(table).values(row)
    return insert.on_conflict_do_update(
        index_elements=key, set_={name: value for name, value in row.items() if name not in key}
    )


def _agent(row: sa.RowMapping) -> RecordedAgent:
    """Models that cannot be read are not offered."""
    models = row_json.read(row["models"])
    return RecordedAgent(row["name"], row["version"], models if list_of(text)(models) else [])
