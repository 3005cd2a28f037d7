"""Server-sent events: frames from events, and the response that carries them.

`id:` stands on every event of a log, never on what is said to one reader only. Little is queued for a reader:
the next page is read when the last one has gone out, so a slow client costs its own connection and hardly more.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

import structlog
from fastapi import Request
from pydantic_core import to_json
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.types import Message, Receive, Scope, Send

from outlast.api import auth
from outlast.errors import NotFound
from outlast.events.event import Event
from outlast.events.stream import EventStream
from outlast.events.views.blocks import previewed
from outlast.store.database import retry_while_unavailable
from outlast.values.redact import last_line

log = structlog.get_logger("outlast.api")

MEDIA_TYPE = "text/event-stream"
DESCRIBED: dict[str, Any] = {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}}
EVENTS: dict[str, Any] = {
    "content": {
        MEDIA_TYPE: {
            "schema": {"type": "string", "description": "Frames with `id`, `event` (its type) and `data`: an event."},
            "itemSchema": {"$ref": "#/components/schemas/EventAnswer"},
        }
    }
}
"""The same, of a stream of events: what each frame holds in `data`."""
"""How OpenAPI names a stream."""
_SMALL = 8 * 1024
_REFERENCE = b'"$file"'
_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


def wants_events(accept: str | None) -> bool:
    return accept is not None and MEDIA_TYPE in accept.lower()


def frame(event: Event, position: str | int | None) -> bytes:
    """One event; `position` is what a client sends back to go on after it."""
    return _framed(_body(event), position)


def _body(event: Event) -> bytes:
    body = _encoded(event, event.data)
    # How a large value is kept is nobody's business: its reader gets its beginning, and where the whole is.
    return _encoded(event, previewed(event.data)) if _REFERENCE in body else body


def _encoded(event: Event, data: dict[str, Any]) -> bytes:
    return to_json(
        {
            "number": event.number,
            "type": event.type,
            "at": event.at,
            "session_id": event.session_id or None,
            "turn_id": event.turn_id,
            "task_id": event.task_id,
            "data": data,
        }
    )


def _framed(body: bytes, position: str | int | None) -> bytes:
    if position is None:
        return b"data: %b\n\n" % body
    return b"id: %b\ndata: %b\n\n" % (str(position).encode(), body)


class FrameCache:
    """Events that many readers are sent: encoded once while they are fresh."""

    def __init__(self, most: int = 1_000) -> None:
        self._most = most
        self._known: OrderedDict[int, tuple[Event, bytes]] = OrderedDict()

    def frame(self, event: Event) -> bytes:
        return _framed(self._encoded(event), event.number)

    def fed(self, event: Event, cursor: str) -> bytes:
        """A frame of the feed."""
        return _framed(self._encoded(event), None if event.is_control else cursor)

    def _encoded(self, event: Event) -> bytes:
        found = self._known.get(id(event))
        if found is not None and found[0] is event:
            return found[1]
        made = _body(event)
        if len(made) <= _SMALL:
            self._known[id(event)] = (event, made)
            if len(self._known) > self._most:
                self._known.popitem(last=False)
        return made


def control_frame(value: Any) -> bytes:
    """Something that is not an event of the log."""
    return b"data: %b\n\n" % to_json(value)


async def log_frames(
    stream: EventStream,
    *,
    cache: FrameCache,
    wants: Callable[[Event], bool] = lambda event: True,
    until: Callable[[Event], bool] = lambda event: False,
) -> AsyncIterator[bytes]:
    """The frames of a stream, page by page; ends after the event that `until` names, or with the session.

    While the store is unavailable it waits, as the turns do: a stream that has begun has no other way to say so.
    """
    async with stream:
        while True:
            batch = await retry_while_unavailable(stream.batch)
            if not batch:
                return
            frames: list[bytes] = []
            for event in batch:
                if wants(event):
                    frames.append(cache.frame(event))
                if until(event):
                    yield b"".join(frames)
                    return
            if frames:
                yield b"".join(frames)


async def _until_gone(frames: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """A session that is deleted while it is read ends its readers."""
    try:
        async for each in frames:
            yield each
    except NotFound:
        return
    finally:
        if isinstance(frames, AsyncGenerator):
            await frames.aclose()


class _Answer(EventSourceResponse):
    """Lasts no longer than what let its reader in."""

    lapse: Callable[[], Coroutine[Any, Any, None]]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        lapse = asyncio.create_task(self.lapse(), name="right of a reader")
        limit = asyncio.timeout(None)
        try:
            async with limit:
                lapse.add_done_callback(partial(_end, limit))
                await super().__call__(scope, receive, send)
        except TimeoutError:
            if not limit.expired():
                raise
            await send({"type": "http.response.body"})
        finally:
            lapse.cancel()

    async def _send_with_timeout(self, send: Send, message: Message) -> None:
        """Without a limit, a scope around each frame would be for nothing."""
        await send(message)


def _end(limit: asyncio.Timeout, lapse: asyncio.Task[None]) -> None:
    if lapse.cancelled():
        return
    if (exc := lapse.exception()) is not None:  # nobody looks any more: who still has the right comes again
        log.warning("a stream ends because nobody can tell whether its reader may read on", error=last_line(exc))
    with suppress(RuntimeError):  # it has just ended by itself
        limit.reschedule(asyncio.get_running_loop().time())


def response(request: Request, frames: AsyncIterator[bytes], *, status_code: int = 200) -> EventSourceResponse:
    """Streams until `frames` end, the client goes, or what the caller showed opens nothing any more."""
    state = request.app.state
    answer = _Answer(
        _until_gone(frames),
        status_code=status_code,
        headers=_HEADERS,
        ping=state.heartbeat,
        ping_message_factory=lambda: ServerSentEvent(comment="keep-alive", sep="\n"),
        sep="\n",
    )
    answer.lapse = partial(auth.lapsed, state.outlast.keys, request.state.principal)
    return answer
