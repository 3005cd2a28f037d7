"""Threads that owners share: one who has many jobs leaves as many threads free as it takes."""

from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any


class SharedThreads(ThreadPoolExecutor):
    """An owner gets a thread while fewer are its own than would be free: half of all, then half of the rest.

    So the first job of an owner hardly ever waits. Others wait in line, each owner in its own, and can be cancelled.
    """

    def __init__(self, most: int, *, thread_name_prefix: str = "") -> None:
        super().__init__(most, thread_name_prefix=thread_name_prefix)
        self._most = most
        self._lock = Lock()
        self._busy: Counter[str] = Counter()
        self._lines: dict[str, deque[tuple[Future[Any], Callable[[], Any]]]] = {}

    def submit_for(self, owner_id: str, job: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        with self._lock:
            self._lines.setdefault(owner_id, deque()).append((future, job))
            self._start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self._lock:
            lines, self._lines = self._lines, {}
        for line in lines.values():
            for future, _ in line:
                future.cancel()
        super().shutdown(wait, cancel_futures=cancel_futures)

    def _start(self) -> None:
        """Whatever may begin now, of those with the fewest threads first."""
        while self._lines:
            owner_id = min(self._lines, key=self._busy.__getitem__)
            if not self._has_room(owner_id):
                return
            line = self._lines[owner_id]
            future, job = line.popleft()
            if not line:
                del self._lines[owner_id]
            self._busy[owner_id] += 1
            super().submit(self._run, owner_id, future, job)

    def _has_room(self, owner_id: str) -> bool:
        return self._busy[owner_id] < self._most - self._busy.total()

    def _run(self, owner_id: str, future: Future[Any], job: Callable[[], Any]) -> None:
        try:
            if future.set_running_or_notify_cancel():
                try:
                    result = job()
                except BaseException as exc:
                    future.set_exception(exc)
                else:
                    future.set_result(result)
        finally:
            with self._lock:
                self._busy[owner_id] -= 1
                if not self._busy[owner_id]:
                    del self._busy[owner_id]
                self._start()
