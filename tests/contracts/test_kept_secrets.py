"""Registered secrets for all processes: encrypted in the database, known to others and after a restart (A11, G6)."""

import asyncio
from functools import partial

import pytest
import sqlalchemy as sa
from cryptography.fernet import Fernet

from outlast.engines.kept_secrets import KeptSecrets
from outlast.errors import InvalidInput
from outlast.events.signals import LocalSignals
from outlast.settings import Settings
from outlast.store.database import Database
from outlast.store.repositories import kept_secrets as store
from outlast.store.tables import kept_secrets
from outlast.store.unit import Unit
from outlast.values.sealing import Sealing
from outlast.values.secrets import Secrets

VALUE = "sk-live-4711-wörd"


def a_key() -> str:
    return Fernet.generate_key().decode()


async def known(database: Database, *keys: str) -> Secrets:
    """What a process that starts now knows."""
    secrets = Secrets()
    kept = KeptSecrets(database, LocalSignals(), secrets, Sealing(keys))
    await kept.start()
    await kept.close()
    return secrets


async def test_a_process_that_starts_knows_what_others_registered(database: Database) -> None:
    """A11: before they had a key, while they run, from a thread; and the store does not show it."""
    key, secrets = a_key(), Secrets()
    secrets.add("registered before")
    kept = KeptSecrets(database, LocalSignals(), secrets, Sealing([key]))
    await kept.start()
    await asyncio.to_thread(secrets.add, VALUE)
    secrets.add(VALUE)
    await kept.close()
    rows = await database.read(lambda connection: connection.execute(sa.select(kept_secrets)).all())
    assert len(rows) == 2
    assert VALUE not in repr(rows)
    other = await known(database, key)
    assert other.mask(f"{VALUE} registered before") == "*" * len(VALUE) + " " + "*" * len("registered before")


async def test_a_process_that_runs_learns_what_others_register(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A11: also when no signal reaches it."""
    monkeypatch.setattr("outlast.engines.kept_secrets.LOOK_EVERY", 0.02)
    key, here, there = a_key(), Secrets(), Secrets()
    learned = asyncio.Event()
    both = [KeptSecrets(database, LocalSignals(), each, Sealing([key])) for each in (here, there)]
    for each in both:
        await each.start()
    learn, loop = there.learn, asyncio.get_running_loop()

    def heard(value: str) -> bool:
        is_new = learn(value)
        loop.call_soon_threadsafe(learned.set)
        return is_new

    monkeypatch.setattr(there, "learn", heard)
    here.add(VALUE)
    async with asyncio.timeout(60):
        await learned.wait()
    assert there.mask(VALUE) == "*" * len(VALUE)
    for each in both:
        await each.close()


async def test_what_is_registered_at_once_is_numbered_in_the_order_of_commits(database: Database) -> None:
    """A11: readers go on after the highest number that they saw, so none below it may come later."""
    numbers: list[list[int]] = []

    def register(unit: Unit, name: str) -> None:
        store.add(unit, [(f"{name} {each}", "encrypted") for each in range(20)], most=1_000)
        found = sa.select(kept_secrets.c.number).where(kept_secrets.c.mark.startswith(name))
        numbers.append(list(unit.connection.execute(found).scalars()))

    names = ("this", "that", "third")
    await asyncio.gather(*(database.transaction(partial(register, name=each), name="add") for each in names))
    assert [max(each) - min(each) for each in numbers] == [19, 19, 19]


async def test_what_cannot_be_sent_as_text_is_kept_too_and_harms_no_other(database: Database) -> None:
    """A11: a tool may register anything; half a character has no UTF-8."""
    key, secrets = a_key(), Secrets()
    kept = KeptSecrets(database, LocalSignals(), secrets, Sealing([key]))
    await kept.start()
    secrets.add("half of \ud83d one")
    secrets.add(VALUE)
    await kept.close()
    assert (await known(database, key)).values() == ["half of \ud83d one", VALUE]


async def test_a_key_can_be_changed(database: Database) -> None:
    """The first encrypts, all decrypt; what no key opens is passed over."""
    old, new = a_key(), a_key()
    secrets = Secrets()
    secrets.add(VALUE)
    kept = KeptSecrets(database, LocalSignals(), secrets, Sealing([old]))
    await kept.start()
    await kept.close()
    assert not (await known(database, new, old)).is_empty
    assert (await known(database, a_key())).is_empty


async def test_a_key_that_is_none_is_refused_without_being_shown(database: Database) -> None:
    """G6."""
    with pytest.raises(InvalidInput) as refused:
        KeptSecrets(database, LocalSignals(), Secrets(), Sealing(["not-a-key"]))
    assert "not-a-key" not in str(refused.value)
    assert "not-a-key" not in repr(Settings(encryption_keys=("not-a-key",)))  # pyright: ignore[reportArgumentType]


async def test_rows_in_the_fernet_form_are_still_read(database: Database) -> None:
    """A11: databases hold them that were written before values were sealed for a place."""
    key = a_key()
    row = ("a mark", Fernet(key).encrypt(VALUE.encode()).decode())
    await database.transaction(lambda unit: store.add(unit, [row], most=1_000), name="add")
    assert (await known(database, key)).values() == [VALUE]
