"""How large an agent's tools are for the model."""

import structlog
from pydantic_ai import ToolDefinition

from outlast.agents.size import MOST, warn_if_large


def test_a_very_large_set_of_tools_is_warned_about_naming_the_largest() -> None:
    """A15."""
    large = ToolDefinition(name="catalogue", description="x" * MOST)
    with structlog.testing.capture_logs() as logs:
        warn_if_large([ToolDefinition(name="small"), large])
    assert "catalogue" in logs[0]["largest"]


def test_an_ordinary_set_of_tools_is_not_warned_about() -> None:
    """A15."""
    with structlog.testing.capture_logs() as logs:
        warn_if_large([ToolDefinition(name="small", description="looks things up")])
    assert logs == []
