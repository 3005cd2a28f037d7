"""What an agent's turn comes to: kept as JSON, and given to programs as what the agent declares."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeVar, Union

from pydantic import TypeAdapter
from pydantic_ai import Agent
from pydantic_ai._output import types_from_output_spec  # pyright: ignore[reportPrivateUsage]  # nothing public tells
from pydantic_core import to_json

from outlast.values import clean

_ANY_OF: Any = Union
"""For types that are only known when an agent is: checkers read `Union[...]` as a declaration."""
T = TypeVar("T")


class StoredOutput(NamedTuple):
    """`value` is what clients are given. `type_name`: which of several declared types it has; two may look alike.

    `fields`: the same by the names of its fields, and without what is computed from them; only where the object cannot
    be made of `value`.
    """

    value: Any
    type_name: str | None = None
    fields: Any = None


class OutputTypes:
    """The types that an agent declares for its output, whatever it uses to ask the model for them.

    Their code is somebody else's (validators, serialisers, computed fields): nothing that it raises leaves here.
    """

    def __init__(self, agent: Agent[Any, Any]) -> None:
        self._agent = agent
        self._adapters: dict[str | None, TypeAdapter[Any] | None] = {}

    def dump(self, output: Any) -> StoredOutput:
        """As JSON, by the rules of its type; what has none is told in words rather than not at all."""
        if output is None or type(output) in (str, bool, int):
            return StoredOutput(output)
        name = self._name_of(output)
        adapter = self._adapter(name)
        fields = None if adapter is None else _tried(lambda: _fields(adapter, output))
        value = None if adapter is None else _tried(lambda: _for_clients(adapter, output, is_computed=True))
        if adapter is not None and value is None:
            # Something that is computed cannot be: the rest can be told.
            value = _tried(lambda: _for_clients(adapter, output, is_computed=False))
        if adapter is None or value is None:
            return StoredOutput(clean.value(output), name)  # it is not of the type that was declared
        stored = StoredOutput(clean.value(value), name)
        if fields is None or fields == value or self._is_same(adapter, stored, fields):
            return stored
        whole = stored._replace(fields=clean.value(fields))
        return whole if self._is_same(adapter, whole, fields) else stored

    def load(self, stored: StoredOutput) -> Any:
        """The object again. JSON if that is no longer what the agent declares, or cannot be read back."""
        if self._types == (str,):
            return stored.value
        adapter = self._adapter(stored.type_name)
        read = None if adapter is None else _tried(lambda: _read(adapter, stored))
        return stored.value if read is None else read

    def _is_same(self, adapter: TypeAdapter[Any], stored: StoredOutput, fields: Any) -> bool:
        """Whether the object that is read back is the one that was stored, and not just one of its type."""
        return _tried(lambda: _fields(adapter, _read(adapter, stored)) == fields) or False

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
        """None: no type that anything could be read as."""
        named = [each for each in self._types if getattr(each, "__name__", None) == name]
        return _tried(lambda: TypeAdapter[Any](_ANY_OF[tuple(named) or self._types]))


def _for_clients(adapter: TypeAdapter[Any], output: Any, *, is_computed: bool) -> Any:
    return adapter.dump_python(output, mode="json", by_alias=True, round_trip=not is_computed, warnings="error")


def _fields(adapter: TypeAdapter[Any], output: Any) -> Any:
    return adapter.dump_python(output, mode="json", by_alias=False, round_trip=True, warnings="error")


def _read(adapter: TypeAdapter[Any], stored: StoredOutput) -> Any:
    if stored.fields is not None:
        return adapter.validate_json(to_json(stored.fields), by_alias=False, by_name=True)
    return adapter.validate_json(to_json(stored.value), by_alias=True, by_name=True)


def _tried(work: Callable[[], T]) -> T | None:
    """What foreign code gives, or None if it raises."""
    try:
        return work()
    except BaseException:  # the code of somebody else, called from ours: nothing it raises may end us
        return None
