"""What commits claim as they make it, between the transaction and the event loop."""

from types import SimpleNamespace
from typing import Any, cast

from outlast.ids import TurnId, WorkerId
from outlast.runs.expected import ExpectedClaims
from outlast.runs.worker_parts import WorkerParts
from outlast.store.outbox import Work


def worker(name: str) -> WorkerParts:
    return cast(WorkerParts, SimpleNamespace(worker_id=WorkerId(name)))


def work(id: str) -> Work:
    return Work(TurnId(id), "bob", "agent")


def test_what_is_claimed_is_begun_under_the_name_that_claimed_it() -> None:
    """P5: the worker may be given another name in between; what was not claimed as it was made has the present one."""
    parts = worker("wrk_old")
    claims, made = ExpectedClaims(lambda: parts), work("trn_1")
    assert claims.expect(made) == "wrk_old"
    parts = worker("wrk_new")
    assert claims.begin(made).worker_id == "wrk_old"
    assert claims.begin(work("trn_2")).worker_id == "wrk_new"


def test_a_place_is_kept_until_it_is_begun_or_was_not_made() -> None:
    """P1, P5"""
    claims, made, lost = ExpectedClaims(lambda: worker("wrk_me")), work("trn_1"), work("trn_2")
    claims.expect(made)
    claims.expect(lost)
    assert ("trn_1" in claims, "trn_2" in claims, len(claims)) == (True, True, 2)
    claims.forget(lost)
    claims.begin(made)
    assert ("trn_1" in claims, "trn_2" in claims, len(claims)) == (False, False, 0)


def test_a_transaction_may_claim_while_the_event_loop_looks() -> None:
    """P8: on SQLite a transaction is in another thread than whoever asks what runs here."""
    claims = ExpectedClaims(lambda: worker("wrk_me"))

    class Asked(str):
        """In the middle of a look, a transaction makes and claims another turn."""

        def __eq__(self, other: Any) -> bool:
            claims.expect(work(f"trn_{len(claims)}"))
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    for each in range(3):
        claims.expect(work(f"trn_a{each}"))
    assert Asked("trn_unknown") not in claims
    assert len(claims) == 6
