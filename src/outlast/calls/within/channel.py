"""A call's side channel: raw output, progress and files, durable while the call runs.

Output is written at most every 100 ms, head and tail are kept; progress is told at most four times a second.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import structlog

from outlast.errors import StoreUnavailable
from outlast.events.foreign import PROGRESS
from outlast.ids import SessionId, file_id
from outlast.store.database import Database, retry_while_unavailable
from outlast.store.files.file_store import FileStore, key_of
from outlast.store.repositories import files, outputs
from outlast.store.repositories.files import NewFile
from outlast.store.repositories.outputs import HEAD, TAIL, Chunk
from outlast.store.unit import Unit
from outlast.values import clean, file_name
from outlast.values.secrets import MaskedStream, Secrets

log = structlog.get_logger("outlast.calls")

_PIECE = 32 * 1024
_FLUSH_SECONDS = 0.1
_PROGRESS_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class ChannelHome:
    """What channels of a worker share."""

    database: Database
    files: FileStore
    secrets: Secrets


class OutputBuffer:
    """Text that waits to be written, bounded: between head and tail the oldest is let go. Thread-safe."""

    def __init__(self, offset: int = 0) -> None:
        self._lock = threading.Lock()
        self._pieces: deque[Chunk] = deque()
        self._offset = offset
        self._size = 0

    def add(self, text: str, attempt: int) -> None:
        with self._lock:
            for start in range(0, len(text), _PIECE):
                piece = Chunk(self._offset, text[start : start + _PIECE], attempt=attempt)
                self._pieces.append(piece)
                self._offset = piece.end
                self._size += len(piece.text)
                self._let_go()

    def take(self) -> list[Chunk]:
        with self._lock:
            taken, self._pieces, self._size = list(self._pieces), deque(), 0
        return _joined(taken)

    @property
    def is_empty(self) -> bool:
        return not self._pieces

    def put_back(self, chunks: list[Chunk]) -> None:
        with self._lock:
            self._pieces.extendleft(reversed(chunks))
            self._size += sum(len(chunk.text) for chunk in chunks)

    def _let_go(self) -> None:
        while self._size > HEAD + 2 * TAIL:
            for at, piece in enumerate(self._pieces):
                if piece.offset >= HEAD:
                    del self._pieces[at]
                    self._size -= len(piece.text)
                    break
            else:
                return


class CallChannel:
    """One per call. What it writes is behind `may_write`: a superseded attempt writes nothing."""

    is_used = False

    def __init__(
        self,
        home: ChannelHome,
        session_id: SessionId,
        call_id: str,
        *,
        may_write: Callable[[Unit], bool],
        tell_progress: Callable[[dict[str, Any]], None],
        attempt: int = 1,
        offset: int = 0,
    ) -> None:
        self.may_write = may_write
        self.tell_progress = tell_progress
        self.artifacts: list[dict[str, Any]] = []
        self.last_progress: dict[str, Any] | None = None
        self.progressed_at: float | None = None
        self._home = home
        self._session_id = session_id
        self._call_id = call_id
        self._attempt = attempt
        self._loop = asyncio.get_running_loop()
        self._buffer = OutputBuffer(offset)
        self._speaking = threading.Lock()
        self._masked = MaskedStream(home.secrets)
        self._is_closed = False
        self._is_resting = False
        self._flushing: asyncio.Task[None] | None = None
        self._progress_timer: asyncio.TimerHandle | None = None
        self._puts: set[asyncio.Task[Any]] = set()

    def bind(self, *, may_write: Callable[[Unit], bool], tell_progress: Callable[[dict[str, Any]], None]) -> None:
        """From now on it belongs to something else: its call became a task."""
        self.may_write = may_write
        self.tell_progress = tell_progress

    def progress(self, progress: dict[str, Any]) -> None:
        self.is_used = True
        self._loop.call_soon_threadsafe(self._take_progress, PROGRESS(self._home.secrets, _plain(progress)))

    def output(self, text: str) -> None:
        if not text or self._is_closed:
            return
        self.is_used = True
        with self._speaking:
            self._buffer.add(self._masked.feed(clean.text(text)), self._attempt)
        if self._flushing is None:
            self._loop.call_soon_threadsafe(self._begin_flush)

    def artifact(self, name: str, data: bytes, media_type: str) -> str:
        self.is_used = True
        key = key_of(self._session_id, data)
        entry = {
            "id": file_id(key),
            "name": self._home.secrets.mask(clean.words_of(name)),
            "media_type": clean.words_of(media_type),
            "bytes": len(data),
        }
        self._loop.call_soon_threadsafe(self._put, entry, bytes(data))
        return file_id(key)

    async def close(self) -> None:
        """Everything that was said is durable when this returns; what code says after its end is not taken."""
        if not self.is_used:
            return
        await asyncio.sleep(0)  # what it said last is still on its way into this loop
        self._is_closed = True
        with self._speaking:
            self._buffer.add(self._masked.close(), self._attempt)
        if self._progress_timer is not None:
            self._progress_timer.cancel()
            self._progress_timer = None
        if self._puts:
            await asyncio.wait(self._puts)
        if self._flushing is not None:
            if self._is_resting:
                self._flushing.cancel()
            await asyncio.wait({self._flushing})
        while await self._flush():
            continue

    def _take_progress(self, progress: dict[str, Any]) -> None:
        if self._is_closed:
            return
        now = self._loop.time()
        self.last_progress = progress
        wait = 0.0 if self.progressed_at is None else self.progressed_at + _PROGRESS_SECONDS - now
        self.progressed_at = now if wait <= 0 else self.progressed_at
        if wait <= 0:
            self.tell_progress(progress)
        elif self._progress_timer is None:
            self._progress_timer = self._loop.call_later(wait, self._tell_last)

    def _tell_last(self) -> None:
        self._progress_timer = None
        if self.last_progress is not None:
            self.progressed_at = self._loop.time()
            self.tell_progress(self.last_progress)

    def _begin_flush(self) -> None:
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush_until_quiet(), name=f"output {self._call_id}")

    async def _flush_until_quiet(self) -> None:
        try:
            while True:
                if not await self._flush() or self._is_closed:
                    break
                self._is_resting = True
                await asyncio.sleep(_FLUSH_SECONDS)
                self._is_resting = False
        finally:
            self._is_resting = False
            self._flushing = None
        # A thread may have said something in the moment in which it still saw this at work.
        if not self._buffer.is_empty and not self._is_closed:
            self._begin_flush()

    async def _flush(self) -> bool:
        """Write what waits; False when nothing does."""
        chunks = self._buffer.take()
        if not chunks:
            return False

        def write(unit: Unit) -> None:
            if self.may_write(unit):
                outputs.append(unit, self._session_id, self._call_id, chunks)

        try:
            await self._home.database.transaction(write, name="output")
        except StoreUnavailable as exc:
            self._buffer.put_back(chunks)
            if exc.is_closed:
                self._is_closed = True
                return False
            log.warning("output waits for the database", call_id=self._call_id, error=str(exc))
            await asyncio.sleep(_FLUSH_SECONDS)
        return True

    def _put(self, entry: dict[str, Any], data: bytes) -> None:
        putting = retry_while_unavailable(lambda: self._keep(entry, data))
        put = asyncio.create_task(putting, name=f"artifact {entry['name']}")
        self._puts.add(put)
        self.artifacts.append(entry)
        put.add_done_callback(self._puts.discard)

    async def _keep(self, entry: dict[str, Any], data: bytes) -> None:
        """The bytes, then the row that lists them; with what a superseded attempt made nothing is listed."""
        key = await self._home.files.put(self._session_id, data)
        name, kind = file_name.fitting(entry["name"]), file_name.fitting_type(entry["media_type"])
        new = NewFile(name, key, kind, len(data), "artifact", self._call_id)

        def write(unit: Unit) -> None:
            if unit.try_lock(self._session_id) and self.may_write(unit):
                files.add(unit, self._session_id, new)

        await self._home.database.transaction(write, name="artifact")


def _joined(chunks: list[Chunk]) -> list[Chunk]:
    """Few long chunks instead of many short ones: each becomes a row."""
    joined: list[Chunk] = []
    run: list[Chunk] = []
    size = 0
    for chunk in chunks:
        if run and (chunk.offset != run[-1].end or size + len(chunk.text) > _PIECE):
            joined.append(_one(run))
            run, size = [], 0
        run.append(chunk)
        size += len(chunk.text)
    return [*joined, _one(run)] if run else joined


def _one(run: list[Chunk]) -> Chunk:
    return Chunk(run[0].offset, "".join(each.text for each in run), attempt=run[0].attempt)


def _plain(progress: dict[str, Any]) -> dict[str, Any]:
    """Whatever a tool says: two numbers and a few words, or nothing."""
    words = {name: None if progress[name] is None else clean.words_of(progress[name]) for name in ("unit", "label")}
    current, total = clean.number(progress["current"]), clean.number(progress["total"])
    return {"current": current or 0, "total": total, **words}
