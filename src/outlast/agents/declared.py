"""The agents of a runtime as a program gives them: each with its name, its models and what its turns depend on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar, cast

from pydantic_ai import Agent
from pydantic_ai.models import Model

from outlast.agents.host import DepsFactory
from outlast.errors import InvalidInput
from outlast.transitions.sessions.profile import check_name

Models: TypeAlias = Mapping[str, Model | str]
"""The models that sessions and messages of an agent may ask for, by name."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DeclaredAgent:
    agent: Agent[Any, Any]
    models: Models
    deps: DepsFactory | None


def declare(
    agents: Agent[Any, Any] | Mapping[str, Agent[Any, Any]],
    *,
    name: str | None,
    models: Models | Mapping[str, Models] | None,
    deps: DepsFactory | Mapping[str, DepsFactory] | None,
) -> Mapping[str, DeclaredAgent]:
    """The agents by name, in the order given. One alone is called `name`, else as it calls itself, else `agent`."""
    found = _named(agents, name)
    for each in found:
        check_name(each, "name of an agent")
    by_agent = _models(models or {}, found)
    factories = _factories(deps, found)
    return {each: DeclaredAgent(agent, by_agent.get(each) or {}, factories.get(each)) for each, agent in found.items()}


def _factories(
    deps: DepsFactory | Mapping[str, DepsFactory] | None, agents: Mapping[str, Agent[Any, Any]]
) -> Mapping[str, DepsFactory]:
    if isinstance(deps, Mapping):
        return _of_each(cast(Mapping[str, DepsFactory], deps), agents, "deps")
    return {} if deps is None else dict.fromkeys(agents, deps)


def _named(agents: Agent[Any, Any] | Mapping[str, Agent[Any, Any]], name: str | None) -> Mapping[str, Agent[Any, Any]]:
    if not isinstance(agents, Mapping):
        return {name or _is_agent(agents).name or "agent": agents}
    if name is not None:
        raise InvalidInput("name= is for one agent alone: of several, each is called by its key.")
    if not agents:
        raise InvalidInput('There is no agent in the mapping: write Outlast({"desk": desk}).')
    for each in agents.values():
        _is_agent(each)
    return dict(agents)


def _is_agent(value: object) -> Agent[Any, Any]:
    if not isinstance(value, Agent):
        raise InvalidInput(f"Outlast runs a pydantic_ai.Agent, or a mapping of them by name; not {type(value)!r}.")
    return cast(Agent[Any, Any], value)


def _models(models: Models | Mapping[str, Models], agents: Mapping[str, Agent[Any, Any]]) -> Mapping[str, Models]:
    """Models by name are for every agent; mappings of them are by agent."""
    are_by_agent = {isinstance(each, Mapping) for each in models.values()}
    if are_by_agent == {True}:
        return _of_each(cast(Mapping[str, Models], models), agents, "models")
    if are_by_agent == {True, False}:
        raise InvalidInput('models= has models and agents in one mapping: write models={"desk": {"fast": model}}.')
    return dict.fromkeys(agents, cast(Models, models))


def _of_each(given: Mapping[str, T], agents: Mapping[str, Agent[Any, Any]], what: str) -> Mapping[str, T]:
    unknown = sorted(given.keys() - agents.keys())
    if unknown:
        raise InvalidInput(f"{what}= names {', '.join(map(repr, unknown))}, and the agents are {sorted(agents)}.")
    return given
