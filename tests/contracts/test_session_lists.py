"""Finding sessions, and making each once, the same on both databases."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from outlast import ids
from outlast.errors import InvalidInput
from outlast.ids import SessionId
from outlast.store.database import Database
from outlast.store.repositories import creations, sessions
from outlast.store.repositories.sessions import Wanted
from outlast.store.unit import Unit
from outlast.transitions.turns import inbox
from tests.support.stores.store import OWNER


async def made(database: Database, *, title: str | None = None, metadata: Mapping[str, Any] | None = None) -> SessionId:
    session_id = ids.session_id()

    def create(unit: Unit) -> None:
        sessions.insert(
            unit, session_id, owner_id=OWNER, agent="agent", model=None, title=title, metadata=metadata or {}
        )

    await database.transaction(create, name="create")
    return session_id


async def found(database: Database, **wanted: Any) -> set[str]:
    page = await database.read(
        lambda connection: sessions.page(connection, OWNER, limit=100, wanted=Wanted(is_archived=None, **wanted))
    )
    return {row.id for row in page.items}


async def test_a_search_looks_into_titles_and_messages_in_any_case(database: Database) -> None:
    """D10: people's own words only; wildcards are ordinary characters."""
    titled = await made(database, title="Die ÜBERFAHRT: 100%")
    said = await made(database, metadata={"hidden": "needle"})
    await database.transaction(
        lambda unit: inbox.accept(unit, said, "Wo ist der Älteste_Hafen?", owner_id=OWNER),
        name="accept",
    )
    assert await found(database, search="überfahrt") == {titled}
    assert await found(database, search="älteste_h") == {said}
    assert await found(database, search="e_e") == set()
    assert await found(database, search="00%") == {titled}
    assert await found(database, search="needle") == set()


async def test_the_first_message_tells_sessions_apart(database: Database) -> None:
    """D10: its first words stand in the session's own row."""
    session_id = await made(database)
    for text in ("Wo ist der\nÄlteste Hafen?", "Und jetzt?"):
        await database.transaction(
            lambda unit, text=text: inbox.accept(unit, session_id, text, owner_id=OWNER),
            name="accept",
        )
    page = await database.read(lambda connection: sessions.page(connection, OWNER, limit=1))
    assert [each.preview for each in page.items] == ["Wo ist der Älteste Hafen?"]


async def test_metadata_is_compared_by_type_and_value(database: Database) -> None:
    """D10: top-level keys; any key is a key, whatever it is made of."""
    odd = 'a "b" $.c\\'
    one = await made(database, metadata={"n": 1, "is_on": True, "none": None, odd: "x", "list": ["x"]})
    other = await made(database, metadata={"n": "1", "is_on": 1, "half": 0.5})
    assert await found(database, metadata={"n": 1}) == {one}
    assert await found(database, metadata={"n": 1.0}) == {one}
    assert await found(database, metadata={"n": "1"}) == {other}
    assert await found(database, metadata={"is_on": True}) == {one}
    assert await found(database, metadata={"is_on": 1}) == {other}
    assert await found(database, metadata={"none": None}) == {one}
    assert await found(database, metadata={"half": 0.5}) == {other}
    assert await found(database, metadata={odd: "x"}) == {one}
    assert await found(database, metadata={"list": "x"}) == set()
    assert await found(database, metadata={"n": 1, "half": 0.5}) == set()


async def test_a_page_goes_on_where_the_last_one_ended(database: Database) -> None:
    """D10: also when all changed in the same instant, and when one changes in between."""

    def create(unit: Unit) -> list[SessionId]:
        new = [ids.session_id() for _ in range(5)]
        for each in new:
            sessions.insert(unit, each, owner_id=OWNER, agent="agent", model=None, title=None, metadata={})
        return new

    new = await database.transaction(create, name="create")
    first = await database.read(lambda connection: sessions.page(connection, OWNER, limit=2))
    await database.transaction(lambda unit: unit.lock(new[0]).set(title="newer"), name="change")
    second = await database.read(lambda connection: sessions.page(connection, OWNER, limit=5, before=first.next))
    assert [row.id for row in [*first.items, *second.items]] == new[:0:-1]
    with pytest.raises(InvalidInput):
        await database.read(lambda connection: sessions.page(connection, OWNER, limit=5, before="bm90IG91cnM"))


async def test_an_external_id_is_taken_once(database: Database) -> None:
    """D10: of many who make it at once, one does; the others find it."""

    def create(unit: Unit) -> tuple[bool, SessionId | None]:
        is_new = sessions.insert(
            unit,
            ids.session_id(),
            owner_id=OWNER,
            agent="agent",
            model=None,
            title=None,
            metadata={},
            external_id="ticket",
        )
        return is_new, sessions.named(unit.connection, OWNER, "ticket")

    answers = await asyncio.gather(*(database.transaction(create, name="create") for _ in range(5)))
    assert sorted(is_new for is_new, _ in answers) == [False] * 4 + [True]
    assert len({named for _, named in answers}) == 1


async def test_an_idempotency_key_is_taken_once(database: Database) -> None:
    """D2: of many who come at once, one makes the session; the others get its id."""

    def begin(unit: Unit) -> SessionId | None:
        session_id = ids.session_id()
        known = creations.begin(unit, OWNER, "key", fingerprint="f", session_id=session_id)
        return session_id if known is None else known.session_id

    answers = await asyncio.gather(*(database.transaction(begin, name="create") for _ in range(5)))
    assert len(set(answers)) == 1
