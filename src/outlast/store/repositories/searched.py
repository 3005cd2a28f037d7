"""What a search of sessions looks into, and how it finds them: by an index over each three characters of a text.

The index says where something may stand; the text itself says whether it does. So a search finds parts of words in
any language, and means the same on both databases. Case makes no difference, nor how an accent is written. What has
only one or two characters is looked for in all texts.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from outlast.ids import SessionId
from outlast.store.sql.statement import Statement
from outlast.store.tables import searched, sessions
from outlast.store.unit import Unit

TITLE = "title"
_GRAM = 3
_PIECE = 50_000
"""Characters of a text in one row: PostgreSQL takes so many grams, whatever they are."""
_OVERLAP = 2_000
"""Of two pieces: longer than anything that is looked for."""
_MOST_GRAMS = 16
"""Of what is looked for: the text decides, these only have to be rare."""
_MOST_FOUND = 1_000
"""What is in more sessions than these is soon found in the newest ones, without the index."""
_PRIVATE, _PRIVATE_COUNT = 0xE000, 6_400

_COLUMNS = ("session_id", "source", "piece", "mark", "text")
_GRAMS = sa.func.array_to_tsvector(sa.bindparam("grams", type_=postgresql.ARRAY(sa.Text)))
_INSERT = {
    "sqlite": Statement(sa.insert(searched).inline(), _COLUMNS),
    "postgresql": Statement(
        sa.insert(searched).values({**{name: sa.bindparam(name) for name in _COLUMNS}, "grams": _GRAMS}).inline()
    ),
}


def keep(unit: Unit, session_id: SessionId, source: str, text: str, *, owner_id: str) -> None:
    """Of a session of this owner. Nothing is kept of this source yet."""
    mark = mark_of(owner_id)
    for number, piece in enumerate(_pieces(folded(text))):
        values: dict[str, Any] = {
            "session_id": session_id,
            "source": source,
            "piece": number,
            "mark": mark,
            "text": piece,
        }
        if unit.dialect == "postgresql":
            values["grams"] = [mark, *sorted(set(grams_of(piece)))]
        unit.write(_INSERT[unit.dialect], **values)


def forget(unit: Unit, session_id: SessionId, source: str) -> None:
    gone = sa.delete(searched).where(searched.c.session_id == session_id, searched.c.source == source)
    unit.connection.execute(gone)


def change(unit: Unit, session_id: SessionId, source: str, text: str | None, *, owner_id: str) -> None:
    """None: there is none any more."""
    forget(unit, session_id, source)
    if text is not None:
        keep(unit, session_id, source, text, owner_id=owner_id)


def found(connection: sa.Connection, owner_id: str, text: str) -> Sequence[str] | None:
    """The sessions of this owner that have it in their title or in what a person wrote. None: very many have it."""
    rows = connection.execute(finding(connection.dialect.name, owner_id, folded(text))).scalars().all()
    return rows if len(rows) <= _MOST_FOUND else None


def mentions(text: str) -> sa.ColumnElement[bool]:
    """The same of one session after the other."""
    return sa.exists().where(searched.c.session_id == sessions.c.id, _stands_in(folded(text)))


def finding(dialect: str, owner_id: str, sought: str) -> sa.Select[str]:
    """Sessions that have it, by the index; what is shorter than a gram, by looking at the texts."""
    mark, grams = mark_of(owner_id), _chosen([*grams_of(sought)])
    found = sa.select(searched.c.session_id).distinct()
    found = found.where(searched.c.mark == mark, _stands_in(sought)).limit(_MOST_FOUND + 1)
    if not grams:
        return found
    if dialect == "postgresql":
        wanted = " & ".join(_lexeme(each) for each in (mark, *grams))
        return found.where(searched.c.grams.op("@@")(sa.cast(sa.literal(wanted, sa.Text), postgresql.TSQUERY)))
    index = sa.table("searched_grams", sa.column("rowid", sa.Integer))
    wanted = " AND ".join('"' + each.replace('"', '""') + '"' for each in (mark, *grams))
    is_there = sa.literal_column("searched_grams").op("MATCH")(sa.literal(wanted, sa.Text))
    return found.join_from(index, searched, searched.c.id == index.c.rowid).where(is_there)


def folded(text: str) -> str:
    """As it is looked for, and in: all ways to write a letter are one."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def mark_of(owner_id: str) -> str:
    """Of characters that no language has. That two owners share one costs time, and nothing else."""
    number = int.from_bytes(sha256(owner_id.encode()).digest()[:8])
    return "".join(chr(_PRIVATE + number // _PRIVATE_COUNT**each % _PRIVATE_COUNT) for each in range(_GRAM))


def grams_of(text: str) -> Iterator[str]:
    return (text[at : at + _GRAM] for at in range(len(text) - _GRAM + 1))


def _pieces(text: str) -> Iterator[str]:
    for begin in range(0, max(1, len(text)), _PIECE):
        yield text[begin : begin + _PIECE + _OVERLAP]


def _chosen(grams: Sequence[str]) -> Sequence[str]:
    """From all over the text."""
    step = max(1, len(grams) // _MOST_GRAMS)
    return [*dict.fromkeys(grams[::step])]


def _stands_in(sought: str) -> sa.ColumnElement[bool]:
    return searched.c.text.contains(sought, autoescape=True)


def _lexeme(gram: str) -> str:
    return "'" + gram.replace("\\", "\\\\").replace("'", "''") + "'"
