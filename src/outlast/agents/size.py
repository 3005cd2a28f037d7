"""How much of every request an agent's tools take up."""

from collections.abc import Sequence

import structlog
from pydantic_ai import ToolDefinition
from pydantic_core import to_json

log = structlog.get_logger("outlast.tools")

MOST = 32_000
_NAMED = 3


def schema_size(tool: ToolDefinition) -> int:
    """Characters of name, description and parameters, as a provider is sent them."""
    return len(tool.name) + len(tool.description or "") + len(to_json(tool.parameters_json_schema))


def warn_if_large(tools: Sequence[ToolDefinition]) -> int:
    """Name the largest when the whole set passes the limit; gives its size."""
    sizes = sorted(((schema_size(tool), tool.name) for tool in tools), reverse=True)
    total = sum(size for size, _ in sizes)
    if total > MOST:
        largest = ", ".join(f"{name} ({size})" for size, name in sizes[:_NAMED])
        log.warning("the agent's tools are large", characters=total, limit=MOST, largest=largest)
    return total
