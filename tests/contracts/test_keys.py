"""API keys on both databases: the text opens, nothing else does, and the store cannot tell what it was."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from outlast.clock import Clock, ManualClock, SystemClock
from outlast.errors import InvalidInput, NotFound, StoreUnavailable, Unauthenticated
from outlast.events.signals import LocalSignals
from outlast.handles.keys import USED_EVERY, Keys
from outlast.limits import Limits
from outlast.store.database import CommitWatcher, Database
from outlast.store.repositories.keys import Key
from outlast.store.tables import keys as key_rows
from outlast.values.secrets import Secrets
from tests.support.stores.store import OWNER


class ShiftedClock:
    """The real time, and a while more: PostgreSQL writes its own."""

    def __init__(self) -> None:
        self.by = timedelta()

    def now(self) -> Any:
        return SystemClock().now() + self.by


@pytest.fixture
def clock() -> ShiftedClock:
    return ShiftedClock()


@pytest.fixture
def keys(database: Database, clock: Clock) -> Keys:
    return Keys(database, clock, LocalSignals())


async def test_the_text_of_a_key_finds_it_and_only_its_hash_is_stored(database: Database, keys: Keys) -> None:
    """G1, G6: whoever reads the table, a list or a key's repr cannot open anything with it."""
    made, text = await keys.make(OWNER, "laptop", role="admin", scope="read")
    assert text.startswith("olk_")
    found = await keys.find(text)
    assert found is not None
    assert (found.id, found.owner_id, found.name, found.role, found.scope) == (
        made.id,
        OWNER,
        "laptop",
        "admin",
        "read",
    )
    secret = text.rpartition("_")[2]
    stored = await database.read(lambda connection: connection.execute(sa.select(key_rows)).mappings().one())
    assert secret not in repr([*stored.values(), made, found])
    assert stored["hash"] not in repr([made, found])


def not_quite(text: str) -> list[str]:
    head, _, secret = text.rpartition("_")
    other = "0" if text[-1] != "0" else "1"
    return [
        "",
        "\x00",
        text[:-1],
        text[:-1] + other,
        text + "0",
        text.upper(),
        f"{text}\n",
        f"olk_{'0' * 26}_{secret}",
        f"{head}_{'é' * 64}",
    ]


async def test_anything_but_the_text_finds_nothing(keys: Keys) -> None:
    """G1."""
    _, text = await keys.make(OWNER, "laptop")
    assert [await keys.find(each) for each in not_quite(text)] == [None] * 9
    assert await keys.find(text) is not None


async def test_a_revoked_key_opens_nothing_and_stays_in_the_list(keys: Keys) -> None:
    """G1: to revoke it again changes nothing."""
    made, text = await keys.make(OWNER, "laptop")
    other, other_text = await keys.make("oskar", "phone")
    first = await keys.revoke(made.id)
    assert first.revoked_at is not None
    assert (await keys.revoke(made.id)).revoked_at == first.revoked_at
    assert await keys.find(text) is None
    assert await keys.find(other_text) is not None
    assert [(each.id, each.revoked_at is None) for each in await keys.list()] == [(other.id, True), (made.id, False)]
    assert [each.id for each in await keys.list(OWNER)] == [made.id]
    assert [each.id for each in await keys.list(limit=1, before=other.id)] == [made.id]


async def test_a_key_of_another_owner_cannot_be_revoked_by_an_owner(keys: Keys) -> None:
    """P7: another owner's key and an unknown one get the same answer."""
    made, text = await keys.make("oskar", "phone")
    with pytest.raises(NotFound) as foreign:
        await keys.revoke(made.id, owner_id=OWNER)
    with pytest.raises(NotFound) as unknown:
        await keys.revoke("key_0", owner_id=OWNER)
    assert foreign.value.message == unknown.value.message
    assert await keys.find(text) is not None


async def test_a_key_expires(keys: Keys, clock: ShiftedClock) -> None:
    """G1."""
    made, text = await keys.make(OWNER, "for a day", expires_in=timedelta(days=1))
    assert made.expires_at == made.created_at + timedelta(days=1)
    clock.by = timedelta(hours=23)
    assert await keys.find(text) is not None
    clock.by = timedelta(hours=24)
    assert await keys.find(text) is None


async def test_the_use_of_a_key_is_written_at_most_once_a_minute(
    database: Database, keys: Keys, clock: ShiftedClock
) -> None:
    """G1: a key that is used all the time costs next to nothing."""
    made, text = await keys.make(OWNER, "busy")
    assert made.used_at is None
    writes: list[str] = []
    database.watcher = lambda name, moment: writes.append(name) if moment == "after" else None
    for _ in range(3):
        await keys.find(text)
    assert writes == ["key.used"]
    clock.by = USED_EVERY
    await keys.find(text)
    assert writes == ["key.used", "key.used"]
    [listed] = await keys.list(OWNER)
    assert listed.used_at is not None
    assert listed.used_at >= listed.created_at


async def test_a_key_opens_also_when_its_use_cannot_be_written(database: Database, clock: ShiftedClock) -> None:
    """G1: a store that only reads keeps nobody out."""

    class ReadOnly:
        watcher: CommitWatcher | None = None
        limits = Limits()
        secrets = Secrets()

        async def transaction(self, fn: Any, *, name: str) -> Any:
            raise StoreUnavailable("The disk is full.")

        read = staticmethod(database.read)
        glance = staticmethod(database.glance)
        begin_shutdown = staticmethod(database.begin_shutdown)
        attach = staticmethod(database.attach)
        close = staticmethod(database.close)

    made, text = await Keys(database, clock, LocalSignals()).make(OWNER, "laptop")
    found = await Keys(ReadOnly(), clock, LocalSignals()).find(text)
    assert found is not None
    assert found.id == made.id


@pytest.mark.parametrize(
    ("owner_id", "name", "options"),
    [
        ("", "laptop", {}),
        (OWNER, " ", {}),
        (OWNER, "a\x00b", {}),
        (OWNER, "\ud800", {}),
        (OWNER, "x" * 201, {}),
        (OWNER, "laptop", {"role": "root"}),
        (OWNER, "laptop", {"scope": "all"}),
        (OWNER, "laptop", {"expires_in": timedelta()}),
    ],
)
async def test_a_key_that_makes_no_sense_is_refused(
    keys: Keys, owner_id: str, name: str, options: dict[str, Any]
) -> None:
    """G1: nothing is stored."""
    with pytest.raises(InvalidInput):
        await keys.make(owner_id, name, **options)
    assert await keys.list() == []


def test_a_key_says_by_itself_whether_it_is_valid() -> None:
    now = ManualClock().now()

    def key(**values: Any) -> Key:
        whole: dict[str, Any] = {
            "id": "key_1",
            "owner_id": OWNER,
            "name": "n",
            "role": "user",
            "scope": "write",
            "created_at": now,
            "expires_at": None,
            "used_at": None,
            "revoked_at": None,
        }
        return Key(**{**whole, **values})

    assert key().is_valid(now)
    assert not key(expires_at=now).is_valid(now)
    assert not key(revoked_at=now).is_valid(now)


async def test_what_was_made_with_a_key_ends_with_it(keys: Keys) -> None:
    """G1: at any remove; what was made with another key goes on, and so does the key that was there before."""
    first, _ = await keys.make(OWNER, "laptop")
    cookie, cookie_text = await keys.make(OWNER, "browser", made_with=first.id)
    _, second_text = await keys.make(OWNER, "browser", made_with=cookie.id)
    _, other_text = await keys.make(OWNER, "other")
    await keys.revoke(first.id)
    assert [await keys.find(each) for each in (cookie_text, second_text)] == [None, None]
    assert await keys.find(other_text) is not None


async def test_to_end_what_was_made_with_a_key_leaves_the_key(keys: Keys) -> None:
    """G1: who logs out of one browser is still there in the others."""
    first, first_text = await keys.make(OWNER, "laptop")
    cookie, _ = await keys.make(OWNER, "browser", made_with=first.id)
    _, sister_text = await keys.make(OWNER, "browser", made_with=first.id)
    await keys.revoke(cookie.id)
    assert await keys.find(first_text) is not None
    assert await keys.find(sister_text) is not None


async def test_nothing_is_made_with_a_key_that_has_ended(keys: Keys) -> None:
    """G1: revoked or expired; and nothing lasts longer than what it was made with."""
    short, _ = await keys.make(OWNER, "short", expires_in=timedelta(hours=1))
    longer, _ = await keys.make(OWNER, "browser", expires_in=timedelta(days=30), made_with=short.id)
    assert longer.expires_at == short.expires_at
    for key in (short, longer):
        await keys.revoke(key.id)
        with pytest.raises(Unauthenticated):
            await keys.make(OWNER, "browser", made_with=key.id)
    over, _ = await keys.make(OWNER, "over", expires_in=timedelta(microseconds=1))
    with pytest.raises(Unauthenticated):
        await keys.make(OWNER, "browser", made_with=over.id)
    assert sum(each.revoked_at is None for each in await keys.list()) == 1


async def test_a_cookie_made_while_its_key_is_revoked_opens_nothing(keys: Keys) -> None:
    """G1: whoever is first, no key stays that was made with one that ended."""
    for _ in range(10):
        root, _ = await keys.make(OWNER, "laptop")
        cookie, _ = await keys.make(OWNER, "browser", made_with=root.id)
        making = [keys.make(OWNER, "browser", made_with=each) for each in (root.id, cookie.id, root.id, cookie.id)]
        await asyncio.gather(*making[:2], keys.revoke(root.id), *making[2:], return_exceptions=True)
    assert [each for each in await keys.list(limit=500) if each.revoked_at is None] == []
