"""A chat of the AI SDK on a session: which session it is, what a request does, and the frames that answer it.

A client's stream holds one message, so each stream follows one turn. A message to a busy session is answered with the
turn that delivers it; a turn that a finished task starts is a new message, fetched with the next reconnect. The turn
belongs to the session: a client that goes away stops nothing.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from pydantic_ai.ui.vercel_ai.response_types import AbortChunk, StartChunk

from outlast.errors import Conflict, InvalidInput, NotFound
from outlast.events.stream import EventStream
from outlast.events.types import EventType
from outlast.handles.session import Session
from outlast.handles.sessions import Sessions
from outlast.ids import InputId, TurnId
from outlast.protocols.ai_sdk.asked import ChatRequest
from outlast.protocols.ai_sdk.encoder import DONE, TurnEncoder, frame
from outlast.protocols.ai_sdk.messages import ui_messages
from outlast.store.database import retry_while_unavailable
from outlast.store.repositories.inputs import InputState
from outlast.transitions.sessions import profile

START = "start"
"""What a client that has no answer yet names as its last one."""
_DECIDING = frozenset({EventType.INPUT_DELIVERED, EventType.INPUT_REMOVED, EventType.SESSION_HELD})
"""After one of these a message that waits is delivered, or will not be soon."""
_STARTING = frozenset({EventType.TURN_QUEUED})
_LOOK_BACK = 100
"""So many turns are looked at for the message of an answer that is to be made again."""


async def find(sessions: Sessions, chat_id: str) -> Session:
    """The session of a chat: the one with this id, or the one that a client made under its own name."""
    if chat_id.startswith("ses_"):
        return await sessions.get(chat_id)
    profile.check_name(chat_id, "id of the chat")
    named = await sessions.list(external_id=chat_id, archived=None, limit=1)
    if not named:
        raise NotFound("There is no such chat.", id=chat_id)
    return named[0]


async def answer(sessions: Sessions, request: ChatRequest, *, by: str | None = None) -> AsyncGenerator[bytes]:
    """Do what the client asks for. When this returns it is committed; what it gives are the frames of the answer."""
    if request.chat_id.startswith("ses_") or not request.is_said:
        session = await find(sessions, request.chat_id)
    else:
        session = await sessions.create(agent=request.agent, external_id=request.chat_id)
    if request.is_regenerate and await _is_answered(session, request):
        regenerated = await session.regenerate(model=request.model)
        return turn_frames(session, regenerated.id, has_approvals=request.has_approvals)
    sent = await session.send(
        request.text,
        when_busy=request.when_busy,
        files=request.files,
        model=request.model,
        by=by,
        idempotency_key=request.message_id,
    )
    if sent.turn_id is not None:
        return turn_frames(session, sent.turn_id, has_approvals=request.has_approvals)
    return _later_frames(session, sent.input.id, has_approvals=request.has_approvals)


async def _is_answered(session: Session, request: ChatRequest) -> bool:
    """Whether the client's last message stands right before the last answer, so that this can be made again.

    False for a message that is not known, or waits: its sending had failed, or is not over, and it is sent (again).
    """
    turns = await session.turns(limit=_LOOK_BACK)
    shown = await ui_messages(session, turns.items)
    if shown and shown[-1]["role"] == "assistant":
        shown.pop()
    if shown and shown[-1]["id"] == request.message_id:
        return True
    if not request.is_said or any(each["id"] == request.message_id for each in shown):
        raise Conflict("Only the last answer can be made again: fork the session to go on from an earlier one.")
    return False


async def turn_to_follow(session: Session, *, after: str | None, wait: float) -> TurnId | None:
    """The turn that runs, or, for a client that names the last it has, the one that came next, even if it is over.

    None if there is none within `wait` seconds.
    """
    found = await _next(session, after)
    if found is not None or not wait:
        return found
    try:
        async with asyncio.timeout(wait), session.events(after=session.last_event) as stream:
            # What began since the session was looked at stands in the stream too.
            while await _comes(stream, _STARTING):
                found = await _next(session, after)
                if found is not None:
                    return found
    except TimeoutError:
        return None
    return None


async def turn_frames(session: Session, turn_id: TurnId, *, has_approvals: bool = True) -> AsyncGenerator[bytes]:
    """One turn from its beginning to its end: replayed as far as it is, then followed."""
    encoder = TurnEncoder(turn_id, has_approvals=has_approvals)
    lead = await retry_while_unavailable(session.turn(turn_id).lead)
    if lead.kept is not None:
        yield "".join(frame(chunk) for event in lead.kept for chunk in encoder.add(event)).encode()
        yield DONE.encode()
        return
    # The end of a turn that is over may be no longer kept: then there is nothing to wait for.
    async with session.events(after=lead.after, follow=not lead.is_over) as stream:
        while not encoder.is_over and (batch := await retry_while_unavailable(stream.batch)):
            frames = [frame(chunk) for event in batch for chunk in encoder.add(event)]
            if frames:
                yield "".join(frames).encode()
    yield DONE.encode()


async def _later_frames(session: Session, input_id: InputId, *, has_approvals: bool) -> AsyncGenerator[bytes]:
    """The turn that delivers a message which waits. If it will not be delivered soon, an end without a message."""
    turn_id = await retry_while_unavailable(lambda: _delivering(session, input_id))
    if turn_id is None:
        yield (frame(StartChunk()) + frame(AbortChunk(reason="held")) + DONE).encode()
        return
    async with aclosing(turn_frames(session, turn_id, has_approvals=has_approvals)) as frames:
        async for each in frames:
            yield each


async def _delivering(session: Session, input_id: InputId) -> TurnId | None:
    await session.refresh()
    async with session.events(after=session.last_event) as stream:
        while True:
            found = await session.input(input_id)
            if found.turn_id is not None:
                return found.turn_id
            if found.state is InputState.REMOVED or (await session.refresh()).is_held:
                return None
            if not await _comes(stream, _DECIDING):
                return None


async def _comes(stream: EventStream, types: frozenset[EventType]) -> bool:
    """Wait for an event of one of the types; False when the stream has ended."""
    while batch := await stream.batch():
        if any(event.type in types for event in batch):
            return True
    return False


async def _next(session: Session, after: str | None) -> TurnId | None:
    await session.refresh()
    if after is None:
        return session.turn_id
    try:
        found = await (session.first_turn() if after == START else session.turn_after(after))
    except (InvalidInput, NotFound):  # a greeting that the page made up, or an answer of a chat that was deleted
        return session.turn_id
    return None if found is None else found.id
