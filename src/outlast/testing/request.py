"""A request, as the model received it."""

from dataclasses import dataclass

from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition


@dataclass(frozen=True, kw_only=True)
class Request:
    """What was sent: the messages after pydantic-ai prepared them, and what came with them."""

    messages: list[ModelMessage]
    settings: ModelSettings
    parameters: ModelRequestParameters
    is_streamed: bool

    @property
    def tools(self) -> dict[str, ToolDefinition]:
        """Every tool offered, output tools included, by name."""
        return self.parameters.tool_defs

    @property
    def instructions(self) -> str:
        """The instructions of this request joined by blank lines; empty without any."""
        return "\n\n".join(part.content for part in self.parameters.instruction_parts or [])
