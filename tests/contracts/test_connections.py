"""Connections at rest: sealed, bound to their owner and provider, moved to a new key, never a fault (A17, G6)."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
import sqlalchemy as sa
from cryptography.fernet import Fernet

from outlast.errors import InvalidInput, NoEncryptionKey, NotFound, TooManyRequests
from outlast.events.signals import connection_topic
from outlast.handles import connections as handles
from outlast.handles.connections import MOST_BYTES, Connections, rekey
from outlast.ids import OwnerId
from outlast.store.database import Database
from outlast.store.outbox import Committed, SilentOutbox
from outlast.store.repositories import connections as rows
from outlast.store.tables import connections as table
from outlast.transitions.tasks import connections as transitions
from outlast.values.sealing import Sealing, Unreadable

ADA, BEN = OwnerId("ada"), OwnerId("ben")
VALUE = "ghp_4711-wörd"


def a_key() -> str:
    return Fernet.generate_key().decode()


def of(database: Database, sealing: Sealing | None, owner: OwnerId = ADA) -> Connections:
    return Connections(database, sealing, owner)


async def stored(database: Database) -> Sequence[Any]:
    return await database.read(lambda connection: connection.execute(sa.select(table)).all())


async def value(database: Database, sealing: Sealing | None, provider: str, owner: OwnerId = ADA) -> str | None:
    row = await database.read(lambda connection: rows.find(connection, owner, provider))
    return None if row is None else transitions.value_of(row, sealing)


async def test_it_is_kept_sealed_and_listed_by_name(database: Database) -> None:
    """A17: the row has neither the value nor the key."""
    key = a_key()
    sealing = Sealing([key])
    mine = of(database, sealing)
    made = await mine.set("github", VALUE)
    assert (made.provider, made.state, made.used_at) == ("github", "ready", None)
    await mine.set("a.b-c_9", VALUE)
    assert [each.provider for each in await mine.list()] == ["a.b-c_9", "github"]
    assert await value(database, sealing, "github") == VALUE
    kept = repr(await stored(database))
    assert VALUE not in kept
    assert key not in kept
    assert "4711" not in repr(made)
    await mine.remove("github")
    with pytest.raises(NotFound):
        await mine.get("github")
    with pytest.raises(NotFound):
        await mine.remove("github")


async def test_a_new_value_takes_the_place_of_the_old(database: Database) -> None:
    sealing = Sealing([a_key()])
    mine = of(database, sealing)
    first = await mine.set("github", VALUE)
    again = await mine.set("github", "another value")
    assert again.created_at == first.created_at
    assert again.updated_at >= first.updated_at
    assert await value(database, sealing, "github") == "another value"


async def test_two_that_are_set_at_once_leave_one_whole_value(database: Database) -> None:
    """A17, race: the last commit counts; nothing fails and nothing is mixed."""
    sealing = Sealing([a_key()])
    mine = of(database, sealing)
    await asyncio.gather(*(mine.set("github", f"value number {each}") for each in range(8)))
    assert await value(database, sealing, "github") in {f"value number {each}" for each in range(8)}
    assert len(await stored(database)) == 1


async def test_a_row_that_was_copied_to_another_place_does_not_open_there(database: Database) -> None:
    """A17: owner and provider are bound into the ciphertext."""
    sealing = Sealing([a_key()])
    await of(database, sealing).set("github", VALUE)
    [row] = await stored(database)

    def copy(unit: Any) -> None:
        for owner, provider in (("ben", "github"), ("ada", "gitlab")):
            rows.put(unit, owner, provider, sealed=row.sealed, key_mark=row.key_mark)

    await database.transaction(copy, name="copy")
    assert await value(database, sealing, "github", BEN) is None
    assert await value(database, sealing, "gitlab") is None
    assert (await of(database, sealing, BEN).get("github")).state == "unreadable"
    assert await value(database, sealing, "github") == VALUE


async def test_another_owners_is_another_one(database: Database) -> None:
    """P7: the same provider of two owners."""
    sealing = Sealing([a_key()])
    await of(database, sealing).set("github", VALUE)
    with pytest.raises(NotFound):
        await of(database, sealing, BEN).remove("github")
    await of(database, sealing, BEN).set("github", "that of Ben")
    await of(database, sealing, BEN).remove("github")
    assert await of(database, sealing, BEN).list() == []
    assert await value(database, sealing, "github") == VALUE


async def test_what_no_key_opens_is_unreadable_and_can_be_set_again(database: Database) -> None:
    """A17: a lost key, no key, a damaged row: never a fault."""
    await of(database, Sealing([a_key()])).set("github", VALUE)
    now = Sealing([a_key()])
    assert [each.state for each in await of(database, now).list()] == ["unreadable"]
    assert [each.state for each in await of(database, None).list()] == ["unreadable"]
    assert (await of(database, now).set("github", VALUE)).state == "ready"
    for damaged in ("", "s1.", "s1.é", "s1.AAAA", "gAAAAAB", "s1." + "A" * 400):
        await database.transaction(
            lambda unit, text=damaged: rows.put(unit, ADA, "github", sealed=text, key_mark="x"), name="damage"
        )
        assert (await of(database, now).get("github")).state == "unreadable"


async def test_without_a_key_it_is_refused_with_the_command_that_makes_one(database: Database) -> None:
    """A17: nothing is stored, and nothing waits for ever."""
    with pytest.raises(NoEncryptionKey, match="outlast keys generate-encryption"):
        await of(database, None).set("github", VALUE)
    with pytest.raises(NoEncryptionKey, match="outlast keys generate-encryption"):
        await rekey(database, None)
    assert await stored(database) == []


@pytest.mark.parametrize("name", ["", " ", "Git", "a" * 65, "..", ".git", "-x", "a/b", "a b", "gît", "a\n", "a\x00b"])
async def test_odd_names_are_refused(database: Database, name: str) -> None:
    mine = of(database, Sealing([a_key()]))
    for ask in (mine.set(name, VALUE), mine.get(name), mine.remove(name)):
        with pytest.raises(InvalidInput):
            await ask


async def test_values_have_bounds(database: Database) -> None:
    """One that could not be masked is not taken, nor one beyond the limit; the largest is."""
    sealing = Sealing([a_key()])
    mine = of(database, sealing)
    largest = "é" * (MOST_BYTES // 2)
    for refused in ("", "short", largest + "x"):
        with pytest.raises(InvalidInput):
            await mine.set("github", refused)
    await mine.set("a" * 64, largest)
    assert await value(database, sealing, "a" * 64) == largest
    odd = "half of \ud83d one\x00\n"
    await mine.set("odd", odd)
    assert await value(database, sealing, "odd") == odd


async def test_an_owner_has_only_so_many(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transitions, "MOST_PER_OWNER", 2)
    mine = of(database, Sealing([a_key()]))
    for each in ("one", "two"):
        await mine.set(each, VALUE)
    with pytest.raises(TooManyRequests, match="remove one"):
        await mine.set("three", VALUE)
    await mine.set("two", VALUE)


async def test_a_new_key_takes_over_and_a_killed_move_is_repeated(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A17: in small batches; each repeat moves the rest, and afterwards the old key is not needed."""
    monkeypatch.setattr(handles, "_BATCH", 2)
    old, new, lost = a_key(), a_key(), a_key()
    for owner in (ADA, BEN):
        for each in range(3):
            await of(database, Sealing([old]), owner).set(f"provider{each}", f"value {owner} {each}")
    await of(database, Sealing([lost])).set("forgotten", VALUE)
    both = Sealing([new, old])
    transaction, commits = database.transaction, 0

    async def killed(*given: Any, **named: Any) -> Any:
        nonlocal commits
        commits += 1
        if commits == 2:
            raise asyncio.CancelledError
        return await transaction(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(database, "transaction", killed)
        with pytest.raises(asyncio.CancelledError):
            await rekey(database, both)
    first = sum(row.key_mark == both.key_mark for row in await stored(database))
    assert 0 < first < 6
    assert await rekey(database, both) == (6 - first, 1)
    assert await rekey(database, both) == (0, 1)
    only = Sealing([new])
    for owner in (ADA, BEN):
        for each in range(3):
            assert await value(database, only, f"provider{each}", owner) == f"value {owner} {each}"
    assert await value(database, only, "forgotten") is None


async def test_what_is_set_while_keys_change_stays_as_it_was_set(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A17, race: the move does not bring back an old value, nor one that was removed."""
    old, new = a_key(), a_key()
    before, both = Sealing([old]), Sealing([new, old])
    mine = of(database, before)
    await mine.set("github", VALUE)
    await mine.set("gone", VALUE)
    move = handles._move  # pyright: ignore[reportPrivateUsage]
    seen: list[int] = []

    def late(unit: Any, **given: Any) -> int:
        transitions.set_value(
            unit, ADA, "github", sealed=before.seal("newer value", ADA, "github"), key_mark=before.key_mark
        )
        transitions.remove(unit, ADA, "gone")
        seen.append(move(unit, **given))
        return seen[-1]

    with monkeypatch.context() as patch:
        patch.setattr(handles, "_move", late)
        await rekey(database, both)
    assert seen == [0]
    assert await value(database, both, "github") == "newer value"
    assert [each.provider for each in await mine.list()] == ["github"]


async def test_whoever_waits_for_one_is_told_with_the_commit(database: Database) -> None:
    told: list[str] = []

    class Heard(SilentOutbox):
        def deliver(self, committed: Committed) -> None:
            told.extend(committed.signals)

    database.attach(Heard())
    mine = of(database, Sealing([a_key()]))
    await mine.set("github", VALUE)
    await mine.remove("github")
    assert told.count(connection_topic(ADA)) == 2


def test_sealing_needs_a_key_and_opens_only_what_it_sealed() -> None:
    with pytest.raises(NoEncryptionKey):
        Sealing([])
    for wrong in ("not-a-key", Fernet.generate_key().decode()[:-4], "é"):
        with pytest.raises(InvalidInput):
            Sealing([wrong])
    sealing = Sealing([a_key()])
    sealed = sealing.seal(VALUE, "a", "b")
    assert sealing.seal(VALUE, "a", "b") != sealed
    assert sealing.open(sealed, "a", "b") == VALUE
    for place in (("a",), ("ab",), ("a", "b", ""), ("b", "a"), ('a", "b',)):
        with pytest.raises(Unreadable):
            sealing.open(sealed, *place)
