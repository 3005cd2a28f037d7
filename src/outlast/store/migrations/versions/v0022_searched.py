"""Titles and messages of sessions are found by an index."""

import unicodedata
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0022"
down_revision = "0021"

_PIECE, _OVERLAP = 50_000, 2_000
_BATCH = 500
_SESSIONS = sa.table("sessions", *map(sa.column, ("id", "owner_id", "title")))
_INPUTS = sa.table("inputs", *map(sa.column, ("id", "session_id", "owner_id", "kind", "state", "text")))
_FTS5 = (
    "CREATE VIRTUAL TABLE searched_grams USING fts5(mark, text, content='searched', content_rowid='id', "
    "tokenize='trigram case_sensitive 1', detail='none', columnsize=0)"
)
_ADD = "INSERT INTO searched_grams(rowid, mark, text) VALUES (new.id, new.mark, new.text);"
_TAKE = "INSERT INTO searched_grams(searched_grams, rowid, mark, text) VALUES ('delete', old.id, old.mark, old.text);"


def upgrade() -> None:
    is_postgres = op.get_bind().dialect.name == "postgresql"
    op.create_table(
        "searched",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("session_id", sa.Text(), sa.ForeignKey("sessions.id", ondelete="CASCADE"), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("piece", sa.Integer(), nullable=False),
        sa.Column("mark", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("grams", postgresql.TSVECTOR().with_variant(sa.Text(), "sqlite"), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_searched")),
        sa.UniqueConstraint("session_id", "source", "piece", name=op.f("uq_searched_session_id_source_piece")),
    )
    if not is_postgres:
        op.execute(_FTS5)
        op.execute(f"CREATE TRIGGER searched_added AFTER INSERT ON searched BEGIN {_ADD} END")
        op.execute(f"CREATE TRIGGER searched_removed AFTER DELETE ON searched BEGIN {_TAKE} END")
        op.execute(f"CREATE TRIGGER searched_changed AFTER UPDATE ON searched BEGIN {_TAKE} {_ADD} END")
    _fill(is_postgres)
    if is_postgres:
        op.create_index("ix_searched_grams", "searched", ["grams"], postgresql_using="gin")


def _fill(is_postgres: bool) -> None:
    titles = sa.select(_SESSIONS.c.id, sa.literal("title"), _SESSIONS.c.owner_id, _SESSIONS.c.title)
    said = sa.select(_INPUTS.c.session_id, _INPUTS.c.id, _INPUTS.c.owner_id, _INPUTS.c.text)
    values: dict[str, Any] = {name: sa.bindparam(name) for name in ("session_id", "source", "piece", "mark", "text")}
    if is_postgres:
        grams = sa.bindparam("grams", type_=postgresql.ARRAY(sa.Text))
        values["grams"] = sa.func.array_to_tsvector(grams)
    insert = sa.insert(sa.table("searched", *map(sa.column, values))).values(values)
    for query, key in (
        (titles.where(_SESSIONS.c.title.is_not(None)), _SESSIONS.c.id),
        (said.where(_INPUTS.c.kind == "message", _INPUTS.c.state != "removed"), _INPUTS.c.id),
    ):
        last = ""
        while True:
            page = query.add_columns(key).where(key > last).order_by(key).limit(_BATCH)
            found = op.get_bind().execute(page).all()
            rows = [each for row in found for each in _rows(row, is_postgres)]
            if rows:
                op.get_bind().execute(insert, rows)
            if len(found) < _BATCH:
                break
            last = found[-1][-1]


def _rows(row: Any, is_postgres: bool) -> Iterator[dict[str, Any]]:
    """As `store/repositories/searched.py` makes them for this revision: a migration calls nothing that may change."""
    session_id, source, owner_id, given, _ = row
    number = int.from_bytes(sha256(owner_id.encode()).digest()[:8])
    mark = "".join(chr(0xE000 + number // 6_400**each % 6_400) for each in range(3))
    text = unicodedata.normalize("NFC", unicodedata.normalize("NFC", given).casefold())
    for piece, begin in enumerate(range(0, max(1, len(text)), _PIECE)):
        part = text[begin : begin + _PIECE + _OVERLAP]
        made: dict[str, Any] = {"session_id": session_id, "source": source, "piece": piece, "mark": mark, "text": part}
        if is_postgres:
            made["grams"] = [mark, *sorted({part[at : at + 3] for at in range(len(part) - 2)})]
        yield made
