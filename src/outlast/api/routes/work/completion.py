"""An operation elsewhere has ended: whoever did it says how."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from outlast.api.completing import Completer, CompletionRoute
from outlast.api.wiring import COMMON, DECIDED, Runtime
from outlast.wire.task import CompletionAnswer, CompletionBody

router = APIRouter(prefix="/tasks", tags=["tasks"], responses=COMMON, route_class=CompletionRoute)
Shown = Annotated[
    HTTPAuthorizationCredentials | None,
    Security(HTTPBearer(auto_error=False, description="An API key or a JWT, the server key, or a completion token.")),
]


@router.post("/{task_id}/complete", responses=DECIDED)
async def complete_task(
    request: Request,
    outlast: Runtime,
    task_id: str,
    body: CompletionBody,
    _: Shown,
    token: Annotated[
        str | None, Query(max_length=200, description="A token of this operation, as its completion URL has it.")
    ] = None,
) -> CompletionAnswer:
    """Say how an operation ended that is done elsewhere. It is recorded when this answers.

    The first completion counts. A repeat, and one of a task that has ended otherwise, gets the state that stands and
    `applied: false`. Send it again if no answer came.
    """
    completer: Completer = request.state.completer
    done = await outlast.completions.complete(
        task_id, success=body.success, result=body.result, error=body.error, owner_id=completer.owner_id
    )
    return CompletionAnswer.of(done)
