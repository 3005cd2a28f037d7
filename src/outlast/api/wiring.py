"""What routes ask for: the runtime, the caller's own things, and numbers within their bounds."""

import asyncio
from collections.abc import Coroutine
from typing import Annotated, Any, TypeAlias, TypeVar

from fastapi import Depends, Header, Query, Request
from pydantic import AfterValidator
from starlette.exceptions import HTTPException

from outlast.api import auth, blank, problems, sse
from outlast.api.auth import Caller, Principal
from outlast.errors import InvalidInput, Unauthenticated
from outlast.handles.connections import Connections
from outlast.handles.files import Files
from outlast.handles.schedules import Schedules
from outlast.handles.session import Session
from outlast.handles.sessions import Sessions
from outlast.handles.tasks import Tasks
from outlast.runtime import LOCAL_OWNER, Outlast

T = TypeVar("T")
AnyOutlast: TypeAlias = Outlast[Any, Any]

COMMON = problems.responses(400, 401, 403, 408, 413, 422, 429, 503)
FOUND = problems.responses(404)
DECIDED = problems.responses(404, 409)
STREAM: dict[int | str, dict[str, Any]] = {200: sse.DESCRIBED}
EVENT_STREAM: dict[int | str, dict[str, Any]] = {200: sse.EVENTS}


# What is asked for stands in coroutines although nothing is awaited: FastAPI takes each plain function to a thread.
async def _outlast(request: Request) -> AnyOutlast:
    return request.app.state.outlast


Runtime = Annotated[AnyOutlast, Depends(_outlast)]


def sees_money(caller: Principal) -> bool:
    """Tenants are told how much of their limit is used, not what it costs; on one machine there are none."""
    return caller.role == "admin" or caller.owner_id == LOCAL_OWNER


async def _sessions(outlast: Runtime, caller: Caller) -> Sessions:
    return outlast.owned_by(caller.owner_id, as_json=True, with_money=sees_money(caller))


async def _tasks(outlast: Runtime, caller: Caller) -> Tasks:
    return outlast.tasks_of(caller.owner_id, with_money=sees_money(caller))


async def _schedules(outlast: Runtime, caller: Caller) -> Schedules:
    return outlast.schedules_of(caller.owner_id)


async def _connections(outlast: Runtime, caller: Caller) -> Connections:
    return outlast.connections_of(caller.owner_id)


async def _files(outlast: Runtime, caller: Caller) -> Files:
    return outlast.files_of(caller.owner_id)


OwnFiles = Annotated[Files, Depends(_files)]
OwnConnections = Annotated[Connections, Depends(_connections)]
OwnSchedules = Annotated[Schedules, Depends(_schedules)]
OwnSessions = Annotated[Sessions, Depends(_sessions)]
OwnTasks = Annotated[Tasks, Depends(_tasks)]


async def _session(sessions: OwnSessions, session_id: str) -> Session:
    return await sessions.get(session_id)


OwnSession = Annotated[Session, Depends(_session)]


async def _wait(
    outlast: Runtime, wait: Annotated[float, Query(ge=0, description="Seconds; at most 300 are waited.")] = 0
) -> float:
    return min(wait, outlast.settings.max_wait.total_seconds())


Wait = Annotated[float, Depends(_wait)]


async def while_there(request: Request, waiting: Coroutine[Any, Any, T]) -> T:
    """What is waited for, unless the client goes away meanwhile, or what let it in ends."""
    asked, gone = asyncio.ensure_future(waiting), asyncio.ensure_future(_left(request))
    lapse = asyncio.ensure_future(auth.lapsed(request.app.state.outlast.keys, request.state.principal))
    try:
        await asyncio.wait({asked, gone, lapse}, return_when=asyncio.FIRST_COMPLETED)
        if lapse.done():
            raise Unauthenticated("The key that this was asked with was revoked or has expired.")
        if asked.done():
            return asked.result()
        raise HTTPException(400, "The client has gone.")
    finally:
        for each in (asked, gone, lapse):
            each.cancel()
        await asyncio.wait({asked, gone, lapse})


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


Accept = Annotated[str | None, Header(alias="accept", include_in_schema=False)]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="Send the same again with the same key, and it is done once (24 hours).",
    ),
]
LastEventId = Annotated[
    str | None,
    Header(alias="Last-Event-ID", max_length=2_000, description="Go on after this; wins over `after`."),
    AfterValidator(blank.or_none),
]
Limit = Annotated[int, Query(ge=1, le=500)]
Cursor = Annotated[str | None, Query(max_length=500, description="`next` of the page before.")]


def place_of(last_event_id: str) -> int:
    """The number that a client of a stream got last: of an event, or of characters."""
    if not last_event_id.isascii() or not last_event_id.isdigit() or int(last_event_id) >= 2**63:
        raise InvalidInput("Last-Event-ID is not an id that came with this stream.")
    return int(last_event_id)
