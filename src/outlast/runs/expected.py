"""Work that is claimed in the commit that makes it: it has a place here before that commit, until it is begun."""

from collections.abc import Callable

from outlast.ids import WorkerId
from outlast.runs.worker_parts import WorkerParts
from outlast.store.outbox import Work


class ExpectedClaims:
    """Of one worker, turns or tasks. Each stays until it is begun, or forgotten because it was not made.

    `expect` is called inside the transaction, which may be in another thread than the event loop: so whoever goes
    through them does so on a copy.
    """

    def __init__(self, parts: Callable[[], WorkerParts]) -> None:
        """`parts`: of the worker, under the name that it has at that moment."""
        self._parts = parts
        self._by_work: dict[Work, WorkerParts] = {}

    def __len__(self) -> int:
        return len(self._by_work)

    def __contains__(self, id: str) -> bool:
        return any(work.id == id for work in list(self._by_work))

    def expect(self, work: Work) -> WorkerId:
        """Under which name it is claimed."""
        return self.expect_as(work, self._parts())

    def expect_as(self, work: Work, parts: WorkerParts) -> WorkerId:
        """The same for what is claimed already, by the worker under the name in `parts`."""
        self._by_work[work] = parts
        return parts.worker_id

    def forget(self, work: Work) -> None:
        """It was not made."""
        self._by_work.pop(work, None)

    def begin(self, work: Work) -> WorkerParts:
        """The worker as it was when it claimed this: it may have been given another name since."""
        return self._by_work.pop(work, None) or self._parts()
