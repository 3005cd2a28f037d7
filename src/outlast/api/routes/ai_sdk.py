"""`/api/chat`: the three requests of an AI SDK chat, with the transport that comes with `ai` 5, 6 and 7."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Body, Query, Request, Response

from outlast.api import sse
from outlast.api.admission import AdmittedRoute
from outlast.api.auth import Caller, check_decider
from outlast.api.wiring import COMMON, DECIDED, FOUND, Limit, OwnSessions, OwnTasks, Wait, while_there
from outlast.errors import NotFound
from outlast.protocols.ai_sdk import asked, conversation, decisions, encoder, messages
from outlast.wire.forms import ListOf, Said
from outlast.wire.turn import TurnAnswer

router = APIRouter(prefix="/api/chat", tags=["AI SDK"], responses=COMMON, route_class=AdmittedRoute)

_STREAM: dict[int | str, dict[str, Any]] = {200: {"description": "A UI message stream (v1).", **sse.DESCRIBED}}


@router.post("", responses={**DECIDED, **_STREAM}, response_class=Response)
async def chat(
    request: Request,
    sessions: OwnSessions,
    tasks: OwnTasks,
    caller: Caller,
    body: Annotated[
        dict[str, Any],
        Body(
            description="As `DefaultChatTransport` sends it: `id`, `messages`, `trigger`, `messageId`. Only the last "
            "message counts, and its id is its idempotency key. `when_busy`, `model` and, for a new chat, `agent` "
            "may be added, and `approvals: false` for clients of version 5, which know no requests for approvals. An "
            "answer with approval responses is the decision of these calls."
        ),
    ],
) -> Response:
    """Accept the last message of a chat, or make its last answer again; the answer is streamed as it is made.

    A chat is a session: the one with the chat's id, or the one of that external id, made when it is first used.
    Closing the connection does not stop the turn.
    """
    said = asked.parse(body)
    if not said.decisions:
        return _response(request, await conversation.answer(sessions, said, by=caller.label))
    check_decider(caller)
    session = await conversation.find(sessions, said.chat_id)
    decided = await decisions.decide(
        session, tasks, said.decisions, message_id=said.message_id, by=Said().said_by(caller.label)
    )
    return _response(request, decisions.frames(decided))


@router.get(
    "/{chat_id}/stream", responses={**FOUND, **_STREAM, 204: {"description": "Nothing runs."}}, response_class=Response
)
async def resume_chat(
    request: Request,
    sessions: OwnSessions,
    chat_id: str,
    wait: Wait,
    after: Annotated[
        str | None,
        Query(
            max_length=100,
            description="The id of the page's last answer: the one after it, even if it is over. `start`: the first. "
            "What is no answer of this chat counts as not given.",
        ),
    ] = None,
    approvals: Annotated[bool, Query(description="False for clients of version 5.")] = True,
) -> Response:
    """The answer that is being made, from its beginning; 204 when there is none, also for a chat that is not there."""
    try:
        session = await conversation.find(sessions, chat_id)
    except NotFound:
        return Response(status_code=204)
    turn_id = await while_there(request, conversation.turn_to_follow(session, after=after, wait=wait))
    if turn_id is None:
        return Response(status_code=204)
    return _response(request, conversation.turn_frames(session, turn_id, has_approvals=approvals))


@router.get("/{chat_id}/messages", responses=FOUND)
async def list_chat_messages(
    sessions: OwnSessions,
    chat_id: str,
    limit: Limit = 50,
    before: Annotated[str | None, Query(max_length=100, description="`next` of the page before.")] = None,
) -> ListOf[dict[str, Any]]:
    """What a page shows when it is opened: the UI messages of the last turns, oldest first; none for a new chat.

    `limit` counts turns. An answer that is still being made is not among them: its stream brings it. What was sent and
    nobody heard yet stands at the end, unless it waits for such an answer.
    """
    try:
        session = await conversation.find(sessions, chat_id)
    except NotFound:
        return ListOf(items=[], next=None)
    # Read first: what is heard meanwhile stands in the log then.
    waiting = await session.inbox() if before is None else []
    turns = await session.turns(before=before, limit=limit)
    return ListOf(items=await messages.ui_messages(session, turns.items, waiting=waiting), next=turns.next)


@router.post("/{chat_id}/stop", responses=FOUND)
async def stop_chat(sessions: OwnSessions, chat_id: str, caller: Caller) -> TurnAnswer:
    """Stop the running turn: a client's own `stop()` only closes its connection."""
    session = await conversation.find(sessions, chat_id)
    outcome = await session.stop(by=caller.label)
    if outcome is None:
        return TurnAnswer(turn_id=None, state=(await session.refresh()).state)
    return TurnAnswer.of(outcome)


def _response(request: Request, frames: AsyncIterator[bytes]) -> Response:
    answer = sse.response(request, frames)
    answer.headers.update(encoder.HEADERS)
    return answer
