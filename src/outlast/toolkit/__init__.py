"""Tools to give to an agent, opt-in: `Agent(..., tools=[outlast.toolkit.shell_tool()])`."""

from outlast.toolkit.shell import shell_tool

__all__ = ["shell_tool"]
