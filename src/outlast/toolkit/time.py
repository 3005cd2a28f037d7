"""What time it is: models do not know it."""

from typing import Any

from pydantic_ai import Tool
from pydantic_ai.exceptions import ToolFailed

from outlast.clock import SystemClock
from outlast.errors import InvalidInput
from outlast.timing.zones import shown, zone_of
from outlast.tool_hints import hints


def time_tool(*, zone: str = "UTC", name: str = "current_time") -> Tool[Any]:
    """A tool that tells the time, in `zone` unless the model asks for another one: an IANA name."""
    zone_of(zone)

    def current_time(zone: str = zone) -> dict[str, str]:
        """The date and time of now.

        Args:
            zone: An IANA name such as Europe/Berlin.
        """
        try:
            local = SystemClock().now().astimezone(zone_of(zone)).replace(microsecond=0)
        except InvalidInput as exc:
            raise ToolFailed(exc.message) from exc
        return {"time": local.isoformat(), "weekday": local.strftime("%A"), "zone": zone, "words": shown(local, zone)}

    return Tool(current_time, name=name, metadata=hints(read_only=True, narrate="Looking at the clock"))
