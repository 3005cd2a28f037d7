"""The model says how far it is, for people who wait."""

from collections.abc import Mapping
from typing import Any, cast

from pydantic_ai import Tool

from outlast.calls.call import progress
from outlast.tool_hints import hints


def report_progress_tool(*, name: str = "report_progress") -> Tool[Any]:
    """A tool that shows people a line on what the agent is doing, with numbers if it has some."""

    async def report_progress(label: str, current: float | None = None, total: float | None = None) -> str:
        """Tell people in a few words what you are doing, during long work of several steps. It asks them nothing.

        Args:
            label: What you are doing, such as: Comparing the offers.
            current: How much is done.
            total: Of how much.
        """
        progress(current or 0, total, label=label)
        return "They were told."

    return Tool(report_progress, name=name, metadata=hints(read_only=True, narrate=_words))


def _words(args: Any) -> str:
    said = cast(Mapping[str, Any], args)
    current, total = said.get("current"), said.get("total")
    if current is None:
        return str(said["label"])
    return f"{said['label']} ({current:g}{'' if total is None else f' of {total:g}'})"
