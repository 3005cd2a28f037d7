"""The feed: states of all of an owner's sessions, as pages or as one stream that never loses its place."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from outlast import __version__ as version
from outlast.api import sse
from outlast.api.admission import AdmittedRoute
from outlast.api.auth import Caller
from outlast.api.routes.events import Types, filter_of
from outlast.api.wiring import COMMON, EVENT_STREAM, FOUND, Accept, LastEventId, Runtime, sees_money
from outlast.events.event import Event
from outlast.events.of_types import OfTypes
from outlast.events.types import EventType
from outlast.handles.feed import Fed, OwnerStream
from outlast.handles.following.place import without_known
from outlast.ids import SessionId
from outlast.store.database import retry_while_unavailable
from outlast.wire.event import EventAnswer, FeedPage

_PAGE = 250
"""Events of a replay that are encoded before others are let in between."""
router = APIRouter(tags=["events"], responses=COMMON, route_class=AdmittedRoute)


@router.get("/events", response_model=FeedPage, responses={**FOUND, **EVENT_STREAM})
async def owner_events(
    request: Request,
    outlast: Runtime,
    caller: Caller,
    after: Annotated[str | None, Query(max_length=2_000, description="The `id` of the last one seen.")] = None,
    sessions: Annotated[
        str | None,
        Query(
            max_length=2_000,
            description="Sessions of which everything is wanted, not only states: `ses_a:4013,ses_b:now,ses_c`. "
            "From after that event, from now on, or from where `after` has it, else from the beginning.",
        ),
    ] = None,
    outputs: Annotated[
        str | None,
        Query(
            max_length=2_000,
            description="Tasks whose output is wanted, in a stream only: `tsk_a:12518,tsk_b:end,tsk_c`.",
        ),
    ] = None,
    types: Types = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 1_000,
    last_event_id: LastEventId = None,
    accept: Accept = None,
) -> FeedPage | Response:
    """States, tasks, titles and inputs of all your sessions, in one stream that can be resumed.

    A stream begins with `stream.opened`; `stream.live` says that all that was there has been told. The output of
    tasks comes as `task.output`, at most four times a second of each. Of sessions that are not asked for, progress
    of a task is told at most once a second. With `Last-Event-ID`, what that knows of a session counts more than the
    position in `sessions`.
    """
    is_stream = sse.wants_events(accept)
    asked = [each for each in (sessions or "").split(",") if each]
    stream = outlast.events_of(
        caller.owner_id,
        after=last_event_id or after,
        sessions=without_known(asked, last_event_id),
        outputs=[each for each in (outputs or "").split(",") if each],
        follow=is_stream,
        with_money=sees_money(caller),
        says_live=True,
    )
    # Before the answer begins: what is not the caller's is told as a problem, not as a stream that ends.
    await stream.__aenter__()
    if is_stream:
        return sse.response(request, _frames(request, stream, types))
    wants, items, cursor, seen = filter_of(types), list[EventAnswer](), stream.cursor, 0
    async with stream:
        async for cursor, event in stream:  # noqa: B007 - where the next page begins
            seen += 1
            if wants(event):
                items.append(EventAnswer.of(event))
            if seen >= limit:
                break
    return FeedPage(items=items, next=cursor)


async def _frames(request: Request, stream: OwnerStream, types: str | None) -> AsyncIterator[bytes]:
    state, wants = request.app.state, filter_of(types)
    cache: sse.FrameCache = state.frames
    async with stream:
        now = datetime.now(UTC)
        opened = {
            "cursor": stream.cursor,
            "now": now.isoformat(),
            "version": version,
            "heartbeat_seconds": state.heartbeat,
            "outputs": stream.offsets,
        }
        yield sse.frame(Event(SessionId(""), None, EventType.STREAM_OPENED.value, now, opened), None)
        while not stream.is_live:
            async with stream.replays:
                frames = _joined(await retry_while_unavailable(partial(stream.batch, _PAGE)), wants, cache)
                await asyncio.sleep(0)  # others come in between
            if frames:
                yield frames
        while batch := await retry_while_unavailable(stream.batch):
            if frames := _joined(batch, wants, cache):
                yield frames


def _joined(batch: Sequence[Fed], wants: OfTypes, cache: sse.FrameCache) -> bytes:
    return b"".join([cache.fed(event, cursor) for cursor, event in batch if wants(event)])
