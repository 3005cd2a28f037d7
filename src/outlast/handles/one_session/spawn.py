"""A tool that a program or a person sets going in a session, without its model."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import sqlalchemy as sa
from pydantic_ai import ToolDefinition
from pydantic_ai.exceptions import ToolFailed
from pydantic_core import from_json

from outlast.calls.gates.offer import constrained_args
from outlast.calls.narration import Narration
from outlast.errors import Forbidden, InvalidInput
from outlast.handles import reading
from outlast.handles.services.services import Services
from outlast.ids import OwnerId, SessionId
from outlast.store.repositories.stored_task import WakePolicy
from outlast.tool_hints import Hints, Wake, hints_of
from outlast.transitions.sessions.constraints import Chain, chain_of
from outlast.transitions.sessions.profile import check_json, check_name
from outlast.transitions.tasks import spawning
from outlast.transitions.tasks.spawning import Spawn
from outlast.values import json_schema
from outlast.wire.task import Task


async def spawn(
    services: Services,
    session_id: SessionId,
    tool: str,
    args: Mapping[str, Any] | None,
    *,
    owner_id: OwnerId,
    title: str | None = None,
    group: str | None = None,
    wake: Wake | None = None,
    key: str | None = None,
) -> Task:
    """Accepted means kept. Arguments are judged by the tool's JSON Schema, also where its agent is not here.

    `wake` and `group` are what the tool says where they are not given; `key` makes one task, however often it is asked.
    """
    look = partial(_look, session_id=session_id, owner_id=owner_id)
    agent, chain = await services.database.read(look, is_single=True)
    title, group = services.shown.value(title), services.shown.value(group)
    spawning.check(title=title, group=group)
    if key is not None:
        check_name(key, "idempotency key")
    definition = await tool_of(services, agent, tool)
    plain = checked_args(services, definition, _bound(chain, definition, args or {}))
    said = hints_of(definition.metadata)
    wanted = Spawn(
        tool,
        plain,
        agent,
        title=title,
        group=group or said.group,
        wake=policy_of(wake, said),
        key=None if key is None else f"key:{key}",
        may_run_again=said.may_run_again,
        deadline=said.deadline or services.limits.call_deadline,
        progress_deadline=said.progress_deadline,
        max_attempts=said.max_attempts,
        narration=Narration(tool, said, plain, services.shown.value).phases,
    )
    accept = partial(spawning.spawn, session_id=session_id, wanted=wanted, owner_id=owner_id)
    return services.shown.task(await services.database.transaction(accept, name="spawn"))


def _look(connection: sa.Connection, session_id: SessionId, owner_id: OwnerId) -> tuple[str, Chain]:
    return reading.there(connection, session_id, owner_id).agent, chain_of(connection, session_id)


def _bound(chain: Chain, tool: ToolDefinition, args: Mapping[str, Any]) -> Mapping[str, Any]:
    """With those of the resource that the session is bound to."""
    try:
        return constrained_args(chain, tool, args)
    except ToolFailed as exc:
        raise Forbidden(str(exc), tool=tool.name) from exc


async def tool_of(services: Services, agent: str, name: str) -> ToolDefinition:
    assert services.tools is not None
    found = await services.tools.find(agent, name)
    if isinstance(found, ToolDefinition):
        return found
    raise InvalidInput(spawning.unknown_tool(name, found), agent=agent)


def policy_of(given: str | None, said: Hints) -> WakePolicy:
    try:
        return WakePolicy(given or said.wake or WakePolicy.ON_TERMINAL)
    except ValueError as exc:
        raise InvalidInput(f"wake={given!r} is not known: use on_terminal or silent.") from exc


def checked_args(services: Services, tool: ToolDefinition, args: Mapping[str, Any]) -> dict[str, Any]:
    """As they are stored. Raises `InvalidInput` that says what does not fit."""
    encoded = check_json(dict(args), "arguments")
    if len(encoded) > services.limits.max_text:
        raise InvalidInput(f"The arguments have {len(encoded)} bytes; at most {services.limits.max_text} are taken.")
    plain = from_json(encoded)
    if services.secrets.mask(plain) != plain:
        raise InvalidInput(
            "The arguments hold a registered secret, which is not stored: let the tool ask for it, as with "
            "outlast.connection(provider)."
        )
    faults = json_schema.faults(tool.parameters_json_schema, plain)
    if faults:
        raise InvalidInput(f"The arguments of {tool.name!r} do not fit: {'; '.join(faults)}", errors=faults)
    return plain
