"""What a session's turn comes to, and how it is stopped, resumed, retried and made again."""

from typing import Annotated

from fastapi import APIRouter, Query, Request

from outlast.api.admission import AdmittedRoute
from outlast.api.auth import Caller
from outlast.api.wiring import COMMON, DECIDED, FOUND, Limit, OwnSession, Wait, while_there
from outlast.errors import NotFound
from outlast.ids import TurnId
from outlast.wire.forms import ListOf
from outlast.wire.message import InputAnswer
from outlast.wire.turn import IDLE, OutcomeAnswer, RegenerateBody, SettleBody, StopBody, TurnAnswer, TurnSummary, Until

router = APIRouter(prefix="/sessions/{session_id}", tags=["turns"], responses=COMMON, route_class=AdmittedRoute)


@router.get("/turns", responses=FOUND)
async def list_turns(
    session: OwnSession,
    before: Annotated[str | None, Query(max_length=100, description="`next` of the page of later turns.")] = None,
    limit: Limit = 50,
) -> ListOf[TurnSummary]:
    """The last turns, oldest first; `next` is the `before` of the page of those before them."""
    page = await session.turn_list(before=before, limit=limit)
    return ListOf(items=list(page.items), next=page.next)


@router.get("/result", responses=FOUND)
async def get_result(
    request: Request,
    session: OwnSession,
    wait: Wait,
    until: Annotated[Until, Query(description="The end of the turn, or until nothing will wake the session.")] = "turn",
    turn_id: Annotated[str | None, Query(max_length=100, description="Another turn than the last one.")] = None,
) -> OutcomeAnswer:
    """What the last turn came to; at the time limit, what is there so far."""
    if turn_id is not None:
        return OutcomeAnswer.of(await while_there(request, session.turn(TurnId(turn_id)).outcome(wait=wait)))
    outcome = await while_there(request, session.result(wait=wait, until=until))
    if outcome is None:
        raise NotFound("The session had no turn yet: send a message first.")
    return OutcomeAnswer.of(outcome)


@router.post("/stop", responses=FOUND)
async def stop(session: OwnSession, body: StopBody, caller: Caller) -> TurnAnswer:
    """Stop the running turn and hold the session: nothing starts until a message or `resume`.

    Without a turn it is held if background tasks are open, and `state` says so.
    """
    outcome = await session.stop(cascade=body.cascade, by=body.said_by(caller.label))
    if outcome is None:
        return TurnAnswer(turn_id=None, state=(await session.refresh()).state)
    return TurnAnswer.of(outcome)


@router.post("/resume", responses=FOUND)
async def resume(session: OwnSession) -> TurnAnswer:
    """End a hold; what waited starts a turn."""
    turn = await session.resume()
    return IDLE if turn is None else TurnAnswer(turn_id=turn.id, state="queued")


@router.post("/retry", status_code=202, responses=DECIDED)
async def retry(session: OwnSession) -> TurnAnswer:
    """Go on from the last message that was kept, after a turn that failed or was stopped."""
    return TurnAnswer(turn_id=(await session.retry()).id, state="queued")


@router.post("/regenerate", status_code=202, responses=DECIDED)
async def regenerate(session: OwnSession, body: RegenerateBody | None = None) -> TurnAnswer:
    """Answer the last message once more; the model does not see the answer before."""
    return TurnAnswer(turn_id=(await session.regenerate(model=None if body is None else body.model)).id, state="queued")


@router.post("/calls/{call_id}/settle", responses=DECIDED)
async def settle_call(session: OwnSession, call_id: str, body: SettleBody, caller: Caller) -> InputAnswer:
    """Say what became of a call that may or may not have taken effect; the model is told who said so."""
    told = await session.settle_call(call_id, body.verdict, by=body.said_by(caller.label), note=body.note)
    return InputAnswer.of(told)
