"""Where a commit's work and signals go: to the engine, to whoever waits, and to whoever looks on."""

from collections.abc import Callable, Sequence

import structlog

from outlast.containment import as_error
from outlast.engines.engine import Engine
from outlast.events.event import Event
from outlast.events.signals import LocalSignals
from outlast.ids import WorkerId
from outlast.store.outbox import Committed, Work
from outlast.store.unit import Unit
from outlast.values.redact import error_chain
from outlast.values.sparse import Sparse

log = structlog.get_logger("outlast.engine")

Listener = Callable[[Sequence[Event]], None]
"""Told of committed events, in order, on the event loop. It may be slow or fail, and harms nobody but itself."""


class EngineOutbox:
    """Hands a commit's work to the engine and its signals to whoever waits."""

    def __init__(self, signals: LocalSignals) -> None:
        self.signals = signals
        self.engine: Engine | None = None
        self.listeners: list[Listener] = []
        self._failures = Sparse(most=5)

    def claimant(self, unit: Unit, work: Work) -> WorkerId | None:
        return None if self.engine is None else self.engine.claimant(unit, work)

    def drop(self, unit: Unit) -> None:
        if unit.expected and self.engine is not None:
            self.engine.drop(unit.expected)

    def enqueue(self, unit: Unit, work: Sequence[Work]) -> None:
        if self.engine is not None:
            self.engine.enqueue(unit, work)

    def notify(self, unit: Unit) -> None:
        notice = self.signals.notice(unit.committed.topics)
        if notice is not None:
            unit.notify(*notice)
            unit.committed.is_told = True

    def deliver(self, committed: Committed) -> None:
        if committed.work and self.engine is not None:
            self.engine.notice(committed.work)  # first: what the commit claimed, nobody else begins
        say = self.signals.announce if committed.is_told else self.signals.publish
        say(committed.topics, committed.news)
        for each in self.listeners if committed.events else ():
            try:
                each(committed.events)
            except BaseException as exc:
                self._log_failure(each, as_error(exc))

    def _log_failure(self, listener: Listener, error: Exception) -> None:
        """A few lines of each: one that always fails does so at every commit."""
        left_out = self._failures.left_out(listener)
        if left_out is not None:
            more = {"left_out": left_out} if left_out else {}
            log.error("a listener failed; what it was told of is committed", exception=error_chain(error), **more)
