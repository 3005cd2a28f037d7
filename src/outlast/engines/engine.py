"""The port to where attempts run."""

from collections.abc import Sequence
from typing import Protocol

from outlast.ids import WorkerId
from outlast.store.outbox import Work
from outlast.store.unit import Unit


class Engine(Protocol):
    """Starts attempts. Work is enqueued in the transaction of the state it belongs to."""

    def claimant(self, unit: Unit, work: Work) -> WorkerId | None:
        """Inside the transaction that makes a turn or a task: this worker's name, if it claims it with that commit."""
        ...

    def drop(self, work: Sequence[Work]) -> None:
        """After a rollback: what was to be claimed was not made."""
        ...

    def enqueue(self, unit: Unit, work: Sequence[Work]) -> None:
        """Inside the transaction: what is committed will be started, what is rolled back will not."""
        ...

    def notice(self, work: Sequence[Work]) -> None:
        """After the commit, in the process that made it: what it claimed is begun."""
        ...
