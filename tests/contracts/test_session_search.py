"""Sessions are searched by an index, which is kept with what it is about, on both databases."""

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from outlast import ids
from outlast.ids import SessionId
from outlast.store import migrations, schema
from outlast.store.database import Database
from outlast.store.repositories import deleted, searched, sessions
from outlast.store.repositories.sessions import Wanted
from outlast.store.sqlite.database import make_engine
from outlast.transitions.sessions import profile
from outlast.transitions.sessions.profile import Profile
from outlast.transitions.turns import inbox
from tests.support.stores.store import OWNER, new_session


async def found(database: Database, text: str, *, owner_id: str = OWNER) -> set[str]:
    wanted = Wanted(text, is_archived=None)
    page = await database.read(lambda connection: sessions.page(connection, owner_id, limit=100, wanted=wanted))
    return {row.id for row in page.items}


async def say(database: Database, session_id: SessionId, text: str, *, owner_id: str = OWNER) -> ids.InputId:
    kept = await database.transaction(
        lambda unit: inbox.accept(unit, session_id, text, owner_id=owner_id), name="accept"
    )
    return kept.input.id


async def called(database: Database, session_id: SessionId, title: str | None) -> None:
    new = Profile(title=title)
    await database.transaction(lambda unit: profile.change(unit, session_id, new, owner_id=OWNER), name="title")


async def test_a_search_uses_the_index(database: Database) -> None:
    """D10: the plan says so, on both databases."""

    def plan(connection: sa.Connection) -> str:
        dialect = connection.dialect
        query = str(
            searched.finding(dialect.name, OWNER, "harbour").compile(
                dialect=dialect, compile_kwargs={"literal_binds": True}
            )
        ).replace("%%", "%")
        if dialect.name == "postgresql":  # there is so little that reading all of it would be faster
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
            return "\n".join(row[0] for row in connection.exec_driver_sql(f"EXPLAIN {query}"))
        return "\n".join(row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}"))

    told = await database.transaction(lambda unit: plan(unit.connection), name="explain")
    assert "ix_searched_grams" in told or "searched_grams VIRTUAL TABLE INDEX" in told, told
    assert "SCAN searched\n" not in told
    assert "Seq Scan" not in told


@pytest.mark.parametrize(
    "text",
    [
        "hafen",
        "ÄLTESTE H",
        "älteste",
        "e\N{COMBINING ACUTE ACCENT}t",
        "straße",
        "STRASSE",
        "東京",
        "京",
        "a'b",
        '"',
        "\\",
    ],
)
async def test_parts_of_words_in_any_language(database: Database, text: str) -> None:
    """D10: in any case and any way to write an accent; marks are ordinary characters; short ones too."""
    session_id = await new_session(database)
    await new_session(database)
    await say(database, session_id, 'Der älteste Hafen, im Été, in der Straße von 東京タワー: "a\'b" und c\\d.')
    assert await found(database, text) == {session_id}


async def test_the_index_follows_what_it_is_about(database: Database) -> None:
    """D10, D3: titles that change or go, messages that are edited, taken back or deleted with their session."""
    session_id = await new_session(database)
    await called(database, session_id, "The old harbour")
    assert await found(database, "old harb") == {session_id}
    await called(database, session_id, "The new bridge")
    assert await found(database, "old harb") == set()
    assert await found(database, "new bridge") == {session_id}
    await called(database, session_id, None)
    assert await found(database, "new bridge") == set()
    await say(database, session_id, "Where is the lighthouse?")
    second = await say(database, session_id, "And the windmill?")
    await database.transaction(
        lambda unit: inbox.edit(unit, session_id, second, "And the sawmill?", owner_id=OWNER), name="edit"
    )
    assert await found(database, "windmill") == set()
    assert await found(database, "sawmill") == {session_id}
    await database.transaction(lambda unit: inbox.remove(unit, session_id, second, owner_id=OWNER), name="remove")
    assert await found(database, "sawmill") == set()
    assert await found(database, "lighthouse") == {session_id}
    while not await database.transaction(lambda unit: deleted.remove_some(unit, session_id), name="delete"):
        pass
    assert await database.read(lambda connection: _rows(connection, session_id)) == 0
    assert await found(database, "lighthouse") == set()


def _rows(connection: sa.Connection, session_id: str) -> int:
    """In the index as well: what it has of a text that nobody has any more."""
    left = connection.execute(
        sa.text("SELECT count(*) FROM searched WHERE session_id = :id"), {"id": session_id}
    ).scalar_one()
    if connection.dialect.name == "sqlite":
        left += connection.exec_driver_sql(
            "SELECT count(*) FROM searched_grams WHERE searched_grams MATCH '\"lig\"'"
        ).scalar_one()
    return left


async def test_only_an_owners_own_are_found(database: Database) -> None:
    """P7, D10."""
    own, other = await new_session(database), await new_session(database, owner_id="eve")
    await say(database, own, "Where is the lighthouse?")
    await say(database, other, "Where is the lighthouse?", owner_id="eve")
    assert await found(database, "lighthouse") == {own}
    assert await found(database, "lighthouse", owner_id="eve") == {other}


async def test_words_that_most_sessions_have(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """D10: found without the index, newest first, and the same ones."""
    monkeypatch.setattr(searched, "_MOST_FOUND", 2)
    said = {await new_session(database) for _ in range(4)}
    for each in said:
        await say(database, SessionId(each), "Where is the lighthouse?")
    await new_session(database)
    assert await found(database, "lighthouse") == said
    assert await found(database, "li") == said


async def test_a_very_long_text_is_found_anywhere(database: Database) -> None:
    """D10: kept in pieces that overlap, however many different characters it has."""
    session_id = await new_session(database)
    many = "".join(chr(0x4E00 + n * 7 % 20_000) + chr(0x4E00 + n * 11 % 20_000) for n in range(70_000))
    await database.transaction(
        lambda unit: searched.keep(unit, session_id, "inp_1", f"{many}end", owner_id=OWNER), name="keep"
    )
    for at in (0, 49_900, 50_000, 99_980, len(many) - 100):
        assert await found(database, many[at : at + 103]) == {session_id}, at
    assert await found(database, many[-50:] + "end") == {session_id}
    assert await found(database, many[:50] + many[100:150]) == set()


def test_what_was_there_before_is_found(tmp_path: Path) -> None:
    """D10: a database that is brought to this schema; what was taken back is not."""
    engine = make_engine(tmp_path / "old.db", durability="normal")
    with engine.connect() as connection, connection.begin():
        config = Config()
        config.set_main_option("script_location", str(Path(migrations.__file__).parent))
        config.attributes["connection"] = connection
        command.upgrade(config, "0021")
        for name, title in (("ses_1", "Alter Hafen"), ("ses_2", None)):
            _insert(connection, "sessions", {**_SESSION, "id": name, "title": title})
        for at, (kind, state) in enumerate((("message", "delivered"), ("message", "removed"), ("wake", "delivered"))):
            words = f"Wort{at} ÜBERFAHRT"
            _insert(connection, "inputs", {**_INPUT, "id": f"inp_{at}", "kind": kind, "state": state, "text": words})
        schema.upgrade(connection)
        seen = {
            text: [row.id for row in sessions.page(connection, "ada", limit=9, wanted=Wanted(text)).items]
            for text in ("hafen", "wort0 überf", "wort1", "wort2")
        }
    engine.dispose()
    assert seen == {"hafen": ["ses_1"], "wort0 überf": ["ses_2"], "wort1": [], "wort2": []}


_SESSION: dict[str, Any] = {
    **dict.fromkeys(("first_event", "last_event", "last_message", "last_input", "created_at", "updated_at"), 1),
    **{"owner_id": "ada", "agent": "a", "metadata": "{}", "is_held": False, "woken_turns": 0},
}
_INPUT: dict[str, Any] = {
    **{"session_id": "ses_2", "owner_id": "ada", "mode": "steer", "body": "{}", "was_busy": False, "created_at": 1},
    "sequence": 1,
}


def _insert(connection: sa.Connection, table: str, values: dict[str, Any]) -> None:
    connection.execute(sa.insert(sa.table(table, *map(sa.column, values))), values)
