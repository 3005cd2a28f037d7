"""The writing side of one attempt: events and messages, batched, in order, each write behind the fence.

The first text of a part is written as soon as the writer is free, so that a reader sees at once that there is
an answer. Later text and call ends wait a few milliseconds to share a commit; whoever commits takes along what
waits. A database that is gone is waited for: nothing is dropped, and the turn goes on where it was.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import structlog
from pydantic_ai.messages import ModelMessage

from outlast.agents.messages import history
from outlast.clock import monotonic
from outlast.errors import AttemptLost
from outlast.events import foreign
from outlast.events.event import Draft
from outlast.events.types import EventType
from outlast.store.database import Database, decided, retry_while_unavailable
from outlast.store.files.file_store import FileStore
from outlast.store.files.spill import pack_object
from outlast.store.locked_session import LockedSession
from outlast.store.repositories import messages, turns
from outlast.store.unit import Unit
from outlast.transitions.turn import Fence
from outlast.values.redact import last_line
from outlast.values.secrets import Secrets

T = TypeVar("T")
log = structlog.get_logger("outlast.turns")

_DELTA_CHARACTERS = 32 * 1024
_LONGEST_COALESCE = 0.25


@dataclass(slots=True)
class _Delta:
    """Text of one part that goes out as one event."""

    part: str
    offset: int
    texts: list[str]
    size: int = 0


@dataclass(slots=True)
class _Message:
    message: ModelMessage
    body: str
    drafts: Callable[[int], list[Draft]]


_Action = Callable[[Unit], object]
_Item = Draft | _Delta | _Message | _Action


@dataclass(slots=True)
class TurnLog:
    """One per attempt. `when_lost` is called once if the attempt turns out to be superseded."""

    database: Database
    files: FileStore
    fence: Fence
    secrets: Secrets
    coalesce: timedelta
    when_lost: Callable[[], None]
    deltas: int = 0
    stop_reason: str | None = None
    """Why the turn was asked to stop, as the running or last commit sees it."""
    is_constrained: bool = True
    """Whether anything may constrain the session's calls, likewise."""
    written: list[ModelMessage] = field(default_factory=list[ModelMessage])
    _commit_seconds: float = 0.0
    _pending: list[_Item] = field(default_factory=list[_Item])
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _timer: asyncio.TimerHandle | None = None
    _has_first: bool = False
    """The first text of a part waits: it is not held back."""
    _flushing: asyncio.Task[None] | None = None

    def add(self, type_: EventType, data: dict[str, Any]) -> None:
        self._pending.append(Draft(type_, data, self.fence.turn_id))
        self._schedule()

    def add_delta(self, part: str, offset: int, text: str, *, is_read: bool = True) -> None:
        """Join the text to what waits for the same part. Of a part that `is_read` the first is not held back."""
        last = self._pending[-1] if self._pending else None
        if isinstance(last, _Delta) and last.part == part and last.size + len(text) <= _DELTA_CHARACTERS:
            last.texts.append(text)
            last.size += len(text)
            return
        for start in range(0, len(text), _DELTA_CHARACTERS):
            piece = text[start : start + _DELTA_CHARACTERS]
            self._pending.append(_Delta(part, offset + start, [piece], len(piece)))
        if is_read and offset == 0:
            self._hurry()
        else:
            self._schedule()

    def also(self, action: Callable[[Unit], object]) -> None:
        """Do something more in the commit that writes what was added just before."""
        self._pending.append(action)
        self._schedule()

    async def add_large(self, type_: EventType, data: dict[str, Any]) -> None:
        """For data that may not fit a row."""
        self.add(type_, await self.pack(type_, data))

    async def pack(self, type_: EventType, data: dict[str, Any]) -> dict[str, Any]:
        """What is large goes to the file store first, without secrets; the rest stays in place."""
        masked = foreign.masked(type_, data, self.secrets)
        return await retry_while_unavailable(lambda: pack_object(self.files, self.fence.session_id, masked))

    async def add_message(
        self, message: ModelMessage, drafts: Callable[[int], list[Draft]] = lambda position: []
    ) -> None:
        """Append a message to history with the next commit, followed by the events that tell of it."""
        message = history.masked(message, self.secrets)
        body = await retry_while_unavailable(lambda: history.encode(self.files, self.fence.session_id, message))
        self._pending.append(_Message(message, body, drafts))
        self._schedule()

    async def commit(self, name: str, fn: Callable[[Unit], T]) -> T:
        """Write what waits, then `fn`, in one transaction. Raises `AttemptLost` if this attempt was superseded."""
        async with self._lock:
            return await decided(self._commit(name, fn))

    def discard_parts(self) -> None:
        """Forget what waits of a response that will not be completed: nobody has seen it yet."""
        self._has_first = False
        parts = (EventType.PART_STARTED, EventType.PART_ENDED)
        self._pending = [
            item
            for item in self._pending
            if not isinstance(item, _Delta) and not (isinstance(item, Draft) and item.type in parts)
        ]

    async def discard(self) -> None:
        """Forget all that waits: it cannot be written."""
        async with self._lock:
            self._pending.clear()
            self._has_first = False

    async def flush(self) -> None:
        await self.commit("flush", lambda unit: None)

    async def close(self) -> None:
        """Stop writing; what waits is left unwritten (a lost attempt may not write)."""
        self._pending.clear()
        self._has_first = False
        if self._timer is not None:
            self._timer.cancel()
        if self._flushing is not None:
            await asyncio.wait({self._flushing})

    async def _commit(self, name: str, fn: Callable[[Unit], T]) -> T:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batch, self._pending = self._pending, []
        self._has_first = False

        def write(unit: Unit) -> T:
            is_there = unit.try_lock(self.fence.session_id)
            found = turns.may_write(unit, self.fence.turn_id, self.fence.attempt) if is_there else None
            if found is None:
                raise AttemptLost("Another attempt of this turn has taken over, or its session was deleted.")
            session = unit.lock(self.fence.session_id)
            self.stop_reason, self.is_constrained = found.stop_reason, session.is_constrained
            self._write(unit, session, batch)
            return fn(unit)

        began = monotonic()
        try:
            result = await retry_while_unavailable(lambda: self.database.transaction(write, name=name))
        except AttemptLost:
            self.when_lost()
            raise
        except BaseException:
            self._pending = batch + self._pending
            raise
        self._commit_seconds = monotonic() - began
        self.deltas += sum(isinstance(item, _Delta) for item in batch)
        self.written += [item.message for item in batch if isinstance(item, _Message)]
        return result

    def _write(self, unit: Unit, session: LockedSession, batch: list[_Item]) -> None:
        drafts: list[Draft] = []
        for item in batch:
            if isinstance(item, _Delta):
                data = {"part": item.part, "offset": item.offset, "text": "".join(item.texts)}
                drafts.append(Draft(EventType.PART_DELTA, data, self.fence.turn_id))
            elif isinstance(item, Draft):
                drafts.append(item)
            elif not isinstance(item, _Message):
                if drafts:  # what it tells of comes after what was told before it
                    unit.append(session.id, drafts)
                    drafts = []
                item(unit)
            else:
                following = item.drafts(session.last_message + 1)
                number = unit.append(session.id, [*drafts, *following])
                drafts = []
                messages.append(
                    unit,
                    session,
                    turn_id=self.fence.turn_id,
                    kind=item.message.kind,
                    body=item.body,
                    event=number,
                )
        if drafts:
            unit.append(session.id, drafts)

    def _schedule(self) -> None:
        if self._timer is None:
            # A busy store gets fewer, larger commits: text waits twice as long as the last commit took.
            self._flush_in(max(self.coalesce.total_seconds(), min(2 * self._commit_seconds, _LONGEST_COALESCE)))

    def _hurry(self) -> None:
        """Flush in the next round of the event loop: a response that is whole by then goes with its own commit.

        Where the last commit took longer than text is held back, the writer has a queue to work off first.
        """
        if self._has_first:
            return
        self._has_first = True
        if self._timer is not None:
            self._timer.cancel()
        is_busy = self._commit_seconds > self.coalesce.total_seconds()
        self._flush_in(min(self._commit_seconds, _LONGEST_COALESCE) if is_busy else 0)

    def _flush_in(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._begin_flush)

    def _begin_flush(self) -> None:
        self._timer = None
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self._flush_quietly(), name=f"flush {self.fence.turn_id}")
        else:
            self._schedule()

    async def _flush_quietly(self) -> None:
        try:
            async with self._lock:
                # Whoever held the lock may have taken along what waited, and ended the turn with it.
                is_due = bool(self._pending)
                while is_due:
                    await decided(self._commit("flush", lambda unit: None))
                    is_due = self._has_first  # of a part that began meanwhile
        except AttemptLost:
            return
        except Exception as exc:
            log.warning("flush failed; the next commit tries again", turn_id=self.fence.turn_id, error=last_line(exc))
