"""What stands around a runtime when it starts: context variables for its turns, and what its agent depends on."""

from contextvars import Context, copy_context
from types import NoneType
from typing import Any, get_args

from opentelemetry import context as telemetry
from pydantic_ai import Agent

from outlast.calls.call import current_call
from outlast.errors import InvalidInput


def surrounding_context() -> Context:
    """The caller's context variables, as with `agent.override(...)`, but for the call and the trace it may be in."""
    found = copy_context()
    found.run(current_call.set, None)
    found.run(telemetry.attach, telemetry.Context())
    return found


def check_needs_no_deps(agent: Agent[Any, Any]) -> None:
    """Refuse an agent that declares dependencies where nobody gives any: its first tool would fail."""
    declared: Any = agent.deps_type
    is_optional = declared in (object, Any, None, NoneType) or NoneType in get_args(declared)
    if is_optional or vars(agent)["_override_deps"].get() is not None:
        return
    name = getattr(declared, "__name__", str(declared))
    raise InvalidInput(
        f"The agent needs dependencies (deps_type={name}), and nobody gives any. Write Outlast(agent, deps=make_deps), "
        f"where make_deps is an async context manager that takes a TurnContext and yields a {name}."
    )
