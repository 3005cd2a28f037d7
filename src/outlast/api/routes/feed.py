"""The feed: states of all of an owner's sessions, as pages or as one stream that never loses its place."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from outlast.api import sse
from outlast.api.admission import AdmittedRoute
from outlast.api.auth import Caller
from outlast.api.routes.events import Types, filter_of
from outlast.api.wiring import COMMON, EVENT_STREAM, FOUND, Accept, LastEventId, Runtime, sees_money
from outlast.handles.feed import OwnerStream
from outlast.store.database import retry_while_unavailable
from outlast.wire.event import EventAnswer, FeedPage

router = APIRouter(tags=["events"], responses=COMMON, route_class=AdmittedRoute)


@router.get("/events", response_model=FeedPage, responses={**FOUND, **EVENT_STREAM})
async def owner_events(
    request: Request,
    outlast: Runtime,
    caller: Caller,
    after: Annotated[str | None, Query(max_length=2_000, description="The `id` of the last one seen.")] = None,
    sessions: Annotated[
        str | None, Query(max_length=1_000, description="Sessions of which everything is wanted, not only states.")
    ] = None,
    types: Types = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 1_000,
    last_event_id: LastEventId = None,
    accept: Accept = None,
) -> FeedPage | Response:
    """States, tasks, titles and inputs of all your sessions, in one stream that can be resumed."""
    is_stream = sse.wants_events(accept)
    asked = [each for each in (sessions or "").split(",") if each]
    stream = outlast.events_of(
        caller.owner_id,
        after=last_event_id or after,
        sessions=asked,
        follow=is_stream,
        with_money=sees_money(caller),
    )
    # Before the answer begins: what is not the caller's is told as a problem, not as a stream that ends.
    await stream.__aenter__()
    if is_stream:
        return sse.response(request, _frames(stream, types))
    wants, items, cursor, seen = filter_of(types), list[EventAnswer](), stream.cursor, 0
    async with stream:
        async for cursor, event in stream:  # noqa: B007 - where the next page begins
            seen += 1
            if wants(event):
                items.append(EventAnswer.of(event))
            if seen >= limit:
                break
    return FeedPage(items=items, next=cursor)


async def _frames(stream: OwnerStream, types: str | None) -> AsyncIterator[bytes]:
    wants = filter_of(types)
    async with stream:
        while True:
            try:
                cursor, event = await retry_while_unavailable(lambda: anext(stream))
            except StopAsyncIteration:
                return
            if wants(event):
                yield sse.frame(event, None if event.is_control else cursor)
