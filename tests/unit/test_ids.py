"""Ids begin with their noun, sort in the order in which they were made, and cannot be guessed."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from outlast import ids


def test_ids_sort_in_the_order_they_were_made() -> None:
    """D13: what waits in the order of ids waits in the order in which it came, also within a millisecond."""
    made = [ids.turn_id() for _ in range(5_000)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_ids_sort_also_when_the_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time_ns()
    first = ids.turn_id()
    monkeypatch.setattr(time, "time_ns", lambda: now - 3_600_000_000_000)
    assert ids.turn_id() > first


def _many(_: int) -> list[ids.InputId]:
    return [ids.input_id() for _ in range(500)]


def test_ids_of_many_threads_are_different() -> None:
    with ThreadPoolExecutor(8) as threads:
        batches = threads.map(_many, range(8))
        made = [each for batch in batches for each in batch]
    assert len(set(made)) == 4_000


def test_neighbours_are_far_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Knowing one id does not give the next, even within one millisecond."""
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now)
    made = [ids.session_id() for _ in range(200)]
    assert len({each[-8:] for each in made}) == 200, "the last digits of neighbours do not count up"


def test_ids_name_their_noun() -> None:
    made = [ids.session_id(), ids.input_id(), ids.turn_id(), ids.task_id(), ids.worker_id(), ids.reference_id()]
    assert [each[:4] for each in made] == ["ses_", "inp_", "trn_", "tsk_", "wrk_", "ref_"]
    assert {len(each) for each in made} == {30}
