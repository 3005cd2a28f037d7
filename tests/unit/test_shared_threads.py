"""Threads that owners share: nobody takes them all, nobody's jobs are lost."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future, wait

import pytest

from outlast.calls.running.threads import SharedThreads


@pytest.fixture
def threads() -> Iterator[SharedThreads]:
    with SharedThreads(8) as made:
        yield made


class Holding:
    """Jobs that run until they are let go."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.running = threading.Semaphore(0)

    def __call__(self) -> str:
        self.running.release()
        assert self.go.wait(20)
        return "held"

    def begun(self, count: int) -> bool:
        return all(self.running.acquire(timeout=20) for _ in range(count)) and not self.running.acquire(timeout=0.05)


def test_each_owner_leaves_as_many_as_it_takes(threads: SharedThreads) -> None:
    """G3: half of all, then half of the rest; the first job of another finds one."""
    jobs = [Holding() for _ in range(3)]
    held: list[Future[str]] = []
    try:
        for owner, job, begun in zip("abc", jobs, (4, 2, 1), strict=True):
            held += [threads.submit_for(owner, job) for _ in range(20)]
            assert job.begun(begun)
        assert threads.submit_for("d", lambda: "quick").result(20) == "quick"
    finally:
        for job in jobs:
            job.go.set()
    assert [each.result(20) for each in held] == ["held"] * 60


def test_what_waits_can_be_cancelled(threads: SharedThreads) -> None:
    job = Holding()
    running = [threads.submit_for("a", job) for _ in range(4)]
    assert job.begun(4)
    waiting, last = threads.submit_for("a", job), threads.submit_for("a", lambda: "last")
    assert waiting.cancel()
    job.go.set()
    assert last.result(20) == "last"
    assert all(each.result(20) == "held" for each in running)


def test_what_waits_at_the_end_is_cancelled() -> None:
    threads, job = SharedThreads(2), Holding()
    running, waiting = threads.submit_for("a", job), threads.submit_for("a", job)
    assert job.begun(1)
    threads.shutdown(wait=False, cancel_futures=True)
    assert waiting.cancelled()
    job.go.set()
    assert running.result(20) == "held"
    wait([running])


def test_what_a_job_raises_is_its_own(threads: SharedThreads) -> None:
    def fail() -> None:
        raise ValueError("no")

    failed = [threads.submit_for("a", fail) for _ in range(10)]
    assert {str(each.exception(20)) for each in failed} == {"no"}
