"""Output of calls: text in numbered chunks, head and tail kept, with true offsets so that a gap is visible."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from outlast.events.signals import output_topic
from outlast.ids import SessionId
from outlast.store.tables import outputs, results
from outlast.store.unit import Unit

HEAD = 256 * 1024
TAIL = 256 * 1024


@dataclass(frozen=True, slots=True)
class Chunk:
    """`offset` counts the characters before it since the call began, also those that were cut."""

    offset: int
    text: str
    number: int = 0
    attempt: int = 1

    @property
    def end(self) -> int:
        return self.offset + len(self.text)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an output. `cut` characters before it are no longer kept; `next_offset` is where to read on."""

    text: str
    offset: int
    next_offset: int
    total: int
    cut: int = 0
    removed_at: datetime | None = None
    """When what was kept for a time was removed: only how long it was is known still."""


def append(unit: Unit, session_id: SessionId, call_id: str, chunks: Sequence[Chunk]) -> None:
    """Add chunks and let go of what lies between head and tail."""
    last = _last_number(unit.connection, session_id, call_id)
    rows = [
        {
            "session_id": session_id,
            "call_id": call_id,
            "number": last + at,
            "attempt": chunk.attempt,
            "offset": chunk.offset,
            "text": chunk.text,
        }
        for at, chunk in enumerate(chunks, 1)
    ]
    unit.connection.execute(sa.insert(outputs), rows)
    unit.signal(output_topic(session_id, call_id))
    number, offset = last + len(chunks), chunks[-1].offset
    unit.prove(lambda connection: _is_there(connection, session_id, call_id, number, offset))
    tail_from = chunks[-1].end - TAIL
    if tail_from > HEAD:
        unit.connection.execute(
            sa.delete(outputs).where(
                outputs.c.session_id == session_id,
                outputs.c.call_id == call_id,
                outputs.c.offset >= HEAD,
                outputs.c.offset + sa.func.length(outputs.c.text) <= tail_from,
            )
        )


def _is_there(connection: sa.Connection, session_id: SessionId, call_id: str, number: int, offset: int) -> bool:
    chunk = sa.select(outputs.c.number).where(
        outputs.c.session_id == session_id,
        outputs.c.call_id == call_id,
        outputs.c.number == number,
        outputs.c.offset == offset,
    )
    return connection.execute(chunk).first() is not None


def total(connection: sa.Connection, session_id: SessionId, call_id: str) -> int:
    """Characters written so far, kept or not."""
    found = connection.execute(
        sa.select(sa.func.max(outputs.c.offset + sa.func.length(outputs.c.text))).where(
            outputs.c.session_id == session_id, outputs.c.call_id == call_id
        )
    ).scalar_one()
    return found or 0


def read(
    connection: sa.Connection, session_id: SessionId, call_id: str, *, offset: int = 0, length: int = HEAD
) -> Piece:
    """What is kept from an offset on, up to a gap: one piece is always contiguous."""
    everything = total(connection, session_id, call_id)
    rows = connection.execute(
        sa.select(outputs.c.offset, outputs.c.text)
        .where(
            outputs.c.session_id == session_id,
            outputs.c.call_id == call_id,
            outputs.c.offset + sa.func.length(outputs.c.text) > offset,
        )
        .order_by(outputs.c.number)
    )
    texts: list[str] = []
    start = at = None
    for row_offset, text in rows:
        begin = max(row_offset, offset)
        if at is not None and begin > at:
            break
        if start is None or at is None:
            start = at = begin
        piece = text[begin - row_offset :][: length - (at - start)]
        texts.append(piece)
        at += len(piece)
        if at - start >= length:
            break
    if start is None or at is None:
        return Piece("", min(offset, everything), everything, everything)
    return Piece("".join(texts), start, at, everything, cut=start - offset)


def _last_number(connection: sa.Connection, session_id: SessionId, call_id: str) -> int:
    found = connection.execute(
        sa.select(sa.func.max(outputs.c.number)).where(outputs.c.session_id == session_id, outputs.c.call_id == call_id)
    ).scalar_one()
    return found or 0


def keep_result(unit: Unit, session_id: SessionId, call_id: str, *, file: str, characters: int) -> None:
    """Remember where the whole of a large result is."""
    values = {"session_id": session_id, "call_id": call_id, "file": file, "characters": characters}
    known = (results.c.session_id == session_id, results.c.call_id == call_id)
    if unit.connection.execute(sa.update(results).where(*known).values(values)).rowcount == 0:
        unit.connection.execute(sa.insert(results), values)


@dataclass(frozen=True, slots=True)
class KeptResult:
    """Where the whole of a large result is."""

    call_id: str
    file: str
    characters: int


def results_of(connection: sa.Connection, session_id: SessionId) -> list[KeptResult]:
    found = connection.execute(
        sa.select(results.c.call_id, results.c.file, results.c.characters).where(results.c.session_id == session_id)
    )
    return [KeptResult(*row) for row in found]


def result_file(connection: sa.Connection, session_id: SessionId, call_id: str) -> str | None:
    return connection.execute(
        sa.select(results.c.file).where(results.c.session_id == session_id, results.c.call_id == call_id)
    ).scalar_one_or_none()
