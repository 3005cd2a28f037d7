"""What stands around a runtime when it starts: context variables for its turns, and what its agent depends on."""

from contextvars import Context, ContextVar, copy_context
from types import NoneType
from typing import Any, get_args

from opentelemetry import context as telemetry
from pydantic_ai import Agent

from outlast.calls.call import current_call
from outlast.errors import InvalidInput

_OVERRIDE = "_override_"


def surrounding_context() -> Context:
    """The caller's context variables, as with `agent.override(...)`, but for the call and the trace it may be in."""
    found = copy_context()
    found.run(current_call.set, None)
    found.run(telemetry.attach, telemetry.Context())
    return found


def check_needs_no_deps(called: str, agent: Agent[Any, Any]) -> None:
    """Refuse an agent that declares dependencies where nobody gives any: its first tool would fail."""
    declared: Any = agent.deps_type
    is_optional = declared in (object, Any, None, NoneType) or NoneType in get_args(declared)
    if is_optional or vars(agent)["_override_deps"].get() is not None:
        return
    name = getattr(declared, "__name__", str(declared))
    raise InvalidInput(
        f"The agent {called!r} needs dependencies (deps_type={name}), and nobody gives any. Write "
        f"Outlast(agent, deps=make_deps), "
        f"where make_deps is an async context manager that takes a TurnContext and yields a {name}."
    )


class Overrides:
    """What `agent.override(...)` had set when the runtime started: its turns run with that, whoever sends to them."""

    def __init__(self, agent: Agent[Any, Any]) -> None:
        found = [(name, each) for name, each in vars(agent).items() if name.startswith(_OVERRIDE)]
        self._variables: list[tuple[str, ContextVar[Any]]] = [
            (name.removeprefix(_OVERRIDE), each) for name, each in found if isinstance(each, ContextVar)
        ]
        self._at_start = [each.get(None) for _, each in self._variables]

    def check(self) -> None:
        """Refuse one that was set since: a test would else talk to the model that it means to replace."""
        for (name, each), before in zip(self._variables, self._at_start, strict=True):
            now = each.get(None)
            if now is not None and now is not before:
                raise InvalidInput(
                    f"agent.override(...) has set the {name.replace('_', ' ')} here, and turns would not hear of it: "
                    "they run with what was set when Outlast started. Write `with agent.override(...):` around "
                    "`async with Outlast(...)`."
                )
