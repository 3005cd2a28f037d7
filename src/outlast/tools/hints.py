"""What a tool says about itself. The defaults are the careful ones: it changes things, and not twice the same."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

KEY = "outlast"


@dataclass(frozen=True, slots=True)
class Hints:
    """`read_only` or `idempotent` work may run again after a crash; anything else is never run twice."""

    read_only: bool = False
    idempotent: bool = False

    @property
    def may_run_again(self) -> bool:
        return self.read_only or self.idempotent


def hints(*, read_only: bool = False, idempotent: bool = False) -> dict[str, Any]:
    """Metadata for a pydantic-ai tool: `@agent.tool_plain(metadata=outlast.hints(idempotent=True))`."""
    return {KEY: {"read_only": read_only, "idempotent": idempotent}}


def hints_of(metadata: Mapping[str, Any] | None) -> Hints:
    """A tool's own hints, else what an MCP server annotated, else the careful defaults."""
    given: Any = (metadata or {}).get(KEY)
    if isinstance(given, dict):
        own = cast(dict[str, Any], given)
        return Hints(read_only=bool(own.get("read_only")), idempotent=bool(own.get("idempotent")))
    annotations: Any = (metadata or {}).get("annotations")
    if isinstance(annotations, dict):
        said = cast(dict[str, Any], annotations)
        return Hints(read_only=said.get("readOnlyHint") is True, idempotent=said.get("idempotentHint") is True)
    return Hints()
