"""What an agent's turn comes to: kept as JSON, and given to programs as what the agent declares."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple, Union

from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic_ai import Agent
from pydantic_ai._output import types_from_output_spec  # pyright: ignore[reportPrivateUsage]  # nothing public tells
from pydantic_core import PydanticSerializationError, to_json

from outlast.tools import clean

_ANY_OF: Any = Union
"""For types that are only known when an agent is: checkers read `Union[...]` as a declaration."""


class StoredOutput(NamedTuple):
    """`type_name`: which of several declared types it has; two of them may look alike as JSON."""

    value: Any
    type_name: str | None = None


class OutputTypes:
    """The types that an agent declares for its output, whatever it uses to ask the model for them."""

    def __init__(self, agent: Agent[Any, Any]) -> None:
        self._agent = agent
        self._adapters: dict[str | None, TypeAdapter[Any] | None] = {}

    def dump(self, output: Any) -> StoredOutput:
        """As JSON, by the rules of its type; what has none is told in words rather than not at all."""
        if output is None or type(output) in (str, bool, int):
            return StoredOutput(output)
        name = self._name_of(output)
        return StoredOutput(clean.value(self._plain(output, name)), name)

    def load(self, stored: StoredOutput) -> Any:
        """The object again. JSON if that is no longer what the agent declares, or cannot be read back."""
        if self._types == (str,):
            return stored.value
        adapter = self._adapter(stored.type_name)
        if adapter is None:
            return stored.value
        try:
            return adapter.validate_json(to_json(stored.value), by_alias=True, by_name=True)
        except ValidationError:
            return stored.value

    def _plain(self, output: Any, name: str | None) -> Any:
        adapter = self._adapter(name)
        if adapter is not None:
            try:
                return adapter.dump_python(output, mode="json", by_alias=True, warnings="error")
            except PydanticSerializationError:
                pass  # it is not of the type that was declared
        return output

    @cached_property
    def _types(self) -> Sequence[Any]:
        return tuple(types_from_output_spec(self._agent.output_type))

    def _name_of(self, output: Any) -> str | None:
        return type(output).__name__ if len(self._types) > 1 and type(output) in self._types else None

    def _adapter(self, name: str | None) -> TypeAdapter[Any] | None:
        if name not in self._adapters:
            self._adapters[name] = self._made(name)
        return self._adapters[name]

    def _made(self, name: str | None) -> TypeAdapter[Any] | None:
        named = [each for each in self._types if getattr(each, "__name__", None) == name]
        try:
            return TypeAdapter[Any](_ANY_OF[tuple(named) or self._types])
        except (PydanticUserError, TypeError):
            return None  # no type that anything could be read as
