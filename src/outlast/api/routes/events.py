"""The log of a session: as pages, or as a stream that never loses its place."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from outlast.api import sse
from outlast.api.admission import AdmittedRoute
from outlast.api.wiring import COMMON, EVENT_STREAM, FOUND, Accept, LastEventId, OwnSession, place_of
from outlast.errors import InvalidInput
from outlast.events.event import Event
from outlast.events.of_types import OfTypes
from outlast.wire.event import EventAnswer, EventPage

router = APIRouter(tags=["events"], responses=COMMON, route_class=AdmittedRoute)

Types = Annotated[str | None, Query(max_length=1_000, description="Only these types, separated by commas.")]


@router.get("/sessions/{session_id}/events", response_model=EventPage, responses={**FOUND, **EVENT_STREAM})
async def session_events(
    request: Request,
    session: OwnSession,
    after: Annotated[int, Query(ge=0, lt=2**63)] = 0,
    before: Annotated[int | None, Query(ge=0, lt=2**63, description="The last events before this one.")] = None,
    turn: Annotated[str | None, Query(max_length=100, description="Of this turn only.")] = None,
    task: Annotated[str | None, Query(max_length=100, description="Of this task only.")] = None,
    types: Types = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 1_000,
    last_event_id: LastEventId = None,
    accept: Accept = None,
) -> EventPage | Response:
    """The log after a position. With `Accept: text/event-stream`: replay, then follow, also after the end."""
    if before is not None or turn is not None or task is not None:
        if sse.wants_events(accept):
            raise InvalidInput(
                "A stream has no before, turn or task: ask for a page, and then for what comes after it."
            )
        named = [each.strip() for each in (types or "").split(",") if each.strip()]
        some = await session.log(after=after, before=before, turn_id=turn, task_id=task, types=named, limit=limit)
        return EventPage(items=list(some), next=max([after, *(each.number or 0 for each in some)]))
    position = after if last_event_id is None else place_of(last_event_id)
    if sse.wants_events(accept):
        cache: sse.FrameCache = request.app.state.frames
        frames = sse.log_frames(session.events(after=position), cache=cache, wants=filter_of(types))
        return sse.response(request, frames)
    found: list[Event] = []
    async with session.events(after=position, follow=False) as stream:
        while len(found) < limit and (batch := await stream.batch(limit - len(found))):
            found.extend(batch)
    wants = filter_of(types)
    items = [EventAnswer.of(each) for each in found if wants(each)]
    return EventPage(items=items, next=max([position, *(each.number or 0 for each in found)]))


def filter_of(types: str | None) -> OfTypes:
    return OfTypes(each.strip() for each in (types or "").split(",") if each.strip())
