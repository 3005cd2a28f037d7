"""A tool that is set going in a session on purpose."""

from fastapi import APIRouter

from outlast.api.admission import AdmittedRoute
from outlast.api.wiring import COMMON, DECIDED, IdempotencyKey, OwnSession
from outlast.wire.task import SpawnBody, Task

router = APIRouter(prefix="/sessions/{session_id}", tags=["tasks"], responses=COMMON, route_class=AdmittedRoute)


@router.post("/tasks", status_code=202, responses=DECIDED)
async def spawn_task(session: OwnSession, body: SpawnBody, idempotency_key: IdempotencyKey = None) -> Task:
    """Set a tool of the session's agent going as a background task: it is kept from the answer on.

    `place` is its number if it waits for a place; its end wakes the session.
    """
    return await session.spawn(
        body.tool,
        body.args,
        title=body.title,
        group=body.group,
        wake=body.wake,
        idempotency_key=idempotency_key,
    )
