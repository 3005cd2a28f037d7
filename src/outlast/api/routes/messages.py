"""Messages to a session, its history, and its inbox."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from outlast.api import sse
from outlast.api.admission import AdmittedRoute
from outlast.api.wiring import COMMON, DECIDED, FOUND, Accept, Caller, IdempotencyKey, Limit, OwnSession, OwnSessions
from outlast.events.event import Event
from outlast.events.types import EventType
from outlast.handles.turn import Sent
from outlast.ids import InputId
from outlast.wire.forms import ListOf
from outlast.wire.message import AcceptedAnswer, InputAnswer, InputChange, MessageBody, StoredMessage

router = APIRouter(prefix="/sessions/{session_id}", tags=["messages"], responses=COMMON, route_class=AdmittedRoute)


@router.post(
    "/messages",
    status_code=202,
    response_model=AcceptedAnswer,
    responses={**DECIDED, 202: sse.DESCRIBED},
)
async def send_message(
    request: Request,
    sessions: OwnSessions,
    session_id: str,
    body: MessageBody,
    caller: Caller,
    idempotency_key: IdempotencyKey = None,
    accept: Accept = None,
) -> AcceptedAnswer | Response:
    """Accept a message: it is kept from the answer on, and starts or steers a turn.

    With `Accept: text/event-stream` the answer is the first frame, and the events follow until the turn has ended.
    """
    sent = await sessions.send(
        session_id,
        body.text,
        when_busy=body.when_busy,
        context=body.page,
        files=body.attachments,
        model=body.model,
        by=body.said_by(caller.label),
        idempotency_key=idempotency_key,
    )
    accepted = AcceptedAnswer.of(sent)
    if not sse.wants_events(accept):
        return accepted
    frames = _answer(sent, accepted, request.app.state.frames)
    return sse.response(request, frames, status_code=202)


@router.get("/messages", responses=FOUND)
async def list_messages(
    session: OwnSession, after: Annotated[int, Query(ge=0, lt=2**31)] = 0, limit: Limit = 100
) -> ListOf[StoredMessage]:
    """The history, oldest first; read on with `after=next`. Answers that were made again are marked."""
    page = await session.messages(after=after, limit=limit)
    return ListOf(items=[StoredMessage.of(each) for each in page.items], next=page.next)


@router.get("/inbox", responses=FOUND)
async def list_inbox(
    session: OwnSession,
    whole: Annotated[bool, Query(description="Also results of tasks, and what was settled.")] = False,
) -> ListOf[InputAnswer]:
    """The messages that wait, in the order in which they came."""
    return ListOf(items=[InputAnswer.of(each) for each in await session.inbox(is_whole=whole)])


@router.get("/inbox/{input_id}", responses=FOUND)
async def get_input(session: OwnSession, input_id: str) -> InputAnswer:
    """A message and what became of it."""
    return InputAnswer.of(await session.input(InputId(input_id)))


@router.patch("/inbox/{input_id}", responses=DECIDED)
async def edit_input(session: OwnSession, input_id: str, body: InputChange) -> InputAnswer:
    """Change a message that waits."""
    return InputAnswer.of(await session.edit_input(InputId(input_id), body.text))


@router.delete("/inbox/{input_id}", status_code=204, responses=DECIDED)
async def remove_input(session: OwnSession, input_id: str) -> None:
    """Take back a message that waits."""
    await session.remove_input(InputId(input_id))


async def _answer(sent: Sent, accepted: AcceptedAnswer, cache: sse.FrameCache) -> AsyncIterator[bytes]:
    """The acceptance, then the log until the turn that was given this message has ended."""
    yield sse.control_frame({"type": "accepted", **accepted.model_dump()})
    turn_id = sent.input.turn_id

    def is_end(event: Event) -> bool:
        nonlocal turn_id
        if event.type == EventType.INPUT_DELIVERED and event.data["input_id"] == sent.input.id:
            turn_id = event.turn_id
        is_removed = event.type == EventType.INPUT_REMOVED and event.data["input_id"] == sent.input.id
        return is_removed or (event.is_terminal and turn_id is not None and event.turn_id == turn_id)

    async for each in sse.log_frames(await sent.events(), cache=cache, until=is_end):
        yield each
