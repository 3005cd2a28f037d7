"""What PostgreSQL says is known by its number, whatever language the server speaks."""

import pytest
from asyncpg.exceptions import (
    DeadlockDetectedError,
    LockNotAvailableError,
    PostgresError,
    ReadOnlySQLTransactionError,
    SerializationError,
)

from outlast.errors import StoreUnavailable
from outlast.store.postgres import database


@pytest.mark.parametrize("error", [DeadlockDetectedError, SerializationError])
def test_of_two_that_collided_the_one_that_gave_way_tries_again(error: type[PostgresError]) -> None:
    """P1"""
    assert database._may_repeat(error("Verklemmung entdeckt"))  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("error", [ReadOnlySQLTransactionError, LockNotAvailableError])
def test_what_may_work_later_is_no_end(error: type[PostgresError]) -> None:
    """P1: a turn waits for it, and a request is told to come again."""
    assert isinstance(database.unavailable(error("nicht jetzt")), StoreUnavailable)
