"""What a person decided on a page: the approval responses in a client's last answer, and the stream that follows them.

That stream goes on with the answer that asked: the output of each call that was decided, once it has ended, and then
what the turn says that their ends wake. A page that is opened anew shows that turn as a message of its own.
"""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from functools import partial

from pydantic_ai.ui.vercel_ai.response_types import (
    BaseChunk,
    FinishChunk,
    StartChunk,
    ToolOutputAvailableChunk,
    ToolOutputDeniedChunk,
    ToolOutputErrorChunk,
)

from outlast.errors import NotFound
from outlast.events.event import Event
from outlast.events.shown import shown
from outlast.events.types import EventType
from outlast.handles.session import Session
from outlast.handles.tasks import Tasks
from outlast.protocols.ai_sdk.asked import Decision
from outlast.protocols.ai_sdk.encoder import DONE, TurnEncoder, frame
from outlast.store.database import retry_while_unavailable
from outlast.wire.task import Task


@dataclass(frozen=True, slots=True)
class Decided:
    """Committed. `after`: a position of the session's log before the decisions."""

    session: Session
    after: int
    message_id: str
    tasks: Sequence[Task]
    of_owner: Tasks


async def decide(
    session: Session, tasks: Tasks, decisions: Sequence[Decision], *, message_id: str, by: str | None
) -> Decided:
    """Approve or refuse each. One that is decided already is left as it is if it came to the same."""
    after = (await session.refresh()).last_event
    decided = [await _decide(session, tasks, each, by) for each in decisions]
    return Decided(session, after, message_id, decided, tasks)


async def _decide(session: Session, tasks: Tasks, decision: Decision, by: str | None) -> Task:
    task = await tasks.get(decision.task_id)
    if task.session_id != session.id:
        raise NotFound("There is no such task.", id=decision.task_id)
    closed = None if task.request is None else task.request.closed
    if closed is not None and closed.how == ("approved" if decision.is_approved else "refused"):
        return task
    if decision.is_approved:
        return await tasks.approve(task.id, by=by)
    return await tasks.refuse(task.id, by=by, reason=decision.reason)


async def frames(decided: Decided) -> AsyncGenerator[bytes]:
    """Replayed as far as it is, then followed until nothing is left of what the decisions led to, or it is held."""
    yield frame(StartChunk(message_id=decided.message_id)).encode()
    open_now = {each.id for each in decided.tasks if not each.is_over}
    for each in decided.tasks:
        if each.is_over:
            yield _ended(each)
    encoder: TurnEncoder | None = None
    has_finished = False
    async with decided.session.events(after=decided.after) as stream:
        while open_now or (encoder is not None and not encoder.is_over) or not await _is_idle(decided.session):
            batch = await retry_while_unavailable(stream.batch)
            if not batch:
                break
            for event in batch:
                if event.type == EventType.TASK_ENDED and event.data["task"]["id"] in open_now:
                    open_now.discard(event.data["task"]["id"])
                    ended = await retry_while_unavailable(partial(decided.of_owner.get, event.data["task"]["id"]))
                    yield _ended(ended)
                if event.type == EventType.TURN_QUEUED and event.turn_id is not None:
                    encoder = TurnEncoder(event.turn_id)
                for chunk in [] if encoder is None else _continued(encoder, event):
                    has_finished = isinstance(chunk, FinishChunk)
                    yield frame(chunk).encode()
            if any(event.type == EventType.SESSION_HELD for event in batch):
                break
    if not has_finished:
        yield frame(FinishChunk(finish_reason="stop")).encode()
    yield DONE.encode()


async def _is_idle(session: Session) -> bool:
    await retry_while_unavailable(session.refresh)
    return session.turn_id is None and (
        session.is_held or not await retry_while_unavailable(partial(session.inbox, is_whole=True))
    )


def _continued(encoder: TurnEncoder, event: Event) -> list[BaseChunk]:
    """Without a beginning of its own: it goes on with the message there is."""
    return [chunk for chunk in encoder.add(event) if not isinstance(chunk, StartChunk)]


def _ended(task: Task) -> bytes:
    call_id, error = task.call_id or "", task.error or {"message": "It was canceled."}
    if task.state == "succeeded":
        chunk: BaseChunk = ToolOutputAvailableChunk(tool_call_id=call_id, output=shown(task.result))
    elif error.get("kind") == "rejected":
        chunk = ToolOutputDeniedChunk(tool_call_id=call_id)
    else:
        chunk = ToolOutputErrorChunk(tool_call_id=call_id, error_text=str(error.get("message")))
    return frame(chunk).encode()
