"""Sessions: made, found, changed, forked, exported, deleted."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import JsonValue, TypeAdapter, ValidationError

from outlast.api.admission import AdmittedRoute
from outlast.api.auth import Decider
from outlast.api.wiring import COMMON, DECIDED, FOUND, Cursor, IdempotencyKey, Limit, OwnSession, OwnSessions
from outlast.errors import InvalidInput
from outlast.wire.forms import ListOf
from outlast.wire.session import ForkBody, SessionAnswer, SessionBody, SessionChange, budget_of

_OBJECT = TypeAdapter(dict[str, JsonValue])

router = APIRouter(prefix="/sessions", tags=["sessions"], responses=COMMON, route_class=AdmittedRoute)


@router.post("", status_code=201, responses=DECIDED)
async def create_session(
    sessions: OwnSessions, body: SessionBody, idempotency_key: IdempotencyKey = None
) -> SessionAnswer:
    """Make a session, or find the one that already has this `external_id`, or that is bound to this resource."""
    made = await sessions.create(
        agent=body.agent,
        model=body.model,
        title=body.title,
        metadata=body.metadata,
        budget=budget_of(body.budget_seconds),
        external_id=body.external_id,
        permissions=body.permissions,
        is_dry_run=body.is_dry_run,
        binding=body.binding,
        idempotency_key=idempotency_key,
    )
    return SessionAnswer.of(made)


@router.get("")
async def list_sessions(
    sessions: OwnSessions,
    limit: Limit = 50,
    cursor: Cursor = None,
    search: Annotated[str | None, Query(max_length=500, description="In titles and messages.")] = None,
    metadata: Annotated[
        str | None, Query(max_length=2_000, description="A JSON object: sessions whose metadata has these values.")
    ] = None,
    archived: Annotated[bool | Literal["any"], Query(description="Only archived ones, none of them, or any.")] = False,
    external_id: Annotated[str | None, Query(max_length=500)] = None,
    agent: Annotated[str | None, Query(max_length=500)] = None,
    parent: Annotated[str | None, Query(max_length=500, description="The sub-sessions of this session.")] = None,
) -> ListOf[SessionAnswer]:
    """Your sessions, the one that changed last first."""
    page = await sessions.page(
        limit=limit,
        before=cursor,
        search=search,
        metadata=None if metadata is None else _object(metadata),
        archived=None if archived == "any" else archived,
        external_id=external_id,
        agent=agent,
        parent=parent,
    )
    return ListOf(items=[SessionAnswer.of(each) for each in page.items], next=page.next)


@router.post("/import", status_code=201, responses=DECIDED)
async def import_session(
    sessions: OwnSessions, document: dict[str, Any], idempotency_key: IdempotencyKey = None
) -> SessionAnswer:
    """Make a session of your own from an exported one."""
    # What it holds is checked as it is read, in slices: to check all of it as JSON before that holds the loop up.
    return SessionAnswer.of(await sessions.import_(document, idempotency_key=idempotency_key))


@router.get("/{session_id}", responses=FOUND)
async def get_session(session: OwnSession) -> SessionAnswer:
    """A session as it is now."""
    return SessionAnswer.of(session)


@router.patch("/{session_id}", responses=DECIDED)
async def change_session(session: OwnSession, body: SessionChange) -> SessionAnswer:
    """Change what is named in the body, and nothing else."""
    changes = {name: getattr(body, name) for name in body.model_fields_set}
    if changes:
        await session.update(**changes)
    return SessionAnswer.of(session)


@router.delete("/{session_id}/always/{rule_id}", status_code=204, responses=FOUND)
async def withdraw_always_rule(session: OwnSession, rule_id: str, caller: Decider) -> None:
    """Calls that this rule of the session's `permissions.always` is about need an approval again."""
    await session.withdraw_always(rule_id)


@router.delete("/{session_id}", status_code=204, responses=FOUND)
async def delete_session(sessions: OwnSessions, session_id: str) -> None:
    """Stop and cancel everything of it, end its readers, and remove it with its files."""
    await sessions.delete(session_id)


@router.post("/{session_id}/fork", status_code=201, responses=DECIDED)
async def fork_session(
    sessions: OwnSessions, session_id: str, body: ForkBody, idempotency_key: IdempotencyKey = None
) -> SessionAnswer:
    """A new session with the same history, up to a message; without its tasks."""
    made = await sessions.fork(session_id, at=body.at, title=body.title, idempotency_key=idempotency_key)
    return SessionAnswer.of(made)


@router.get("/{session_id}/export", responses=FOUND)
async def export_session(session: OwnSession) -> dict[str, JsonValue]:
    """The whole session as one document, without secrets."""
    return await session.export()


def _object(text: str) -> dict[str, JsonValue]:
    try:
        return _OBJECT.validate_json(text)
    except ValidationError as exc:
        raise InvalidInput('metadata is not a JSON object, such as {"team": "travel"}.') from exc
