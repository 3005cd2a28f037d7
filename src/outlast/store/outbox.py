"""What a transaction hands on: work for the engine, events and signals for whoever waits, and where they go."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from outlast.events.event import Event
from outlast.events.news import News, news_of
from outlast.events.signals import log_topic
from outlast.ids import TaskId, TurnId, WorkerId

if TYPE_CHECKING:
    from outlast.store.unit import Unit


@dataclass(slots=True, eq=False)
class Work:
    """Something for the engine to start: one attempt of a turn or of a task, not before an instant if it has one.

    `claim` is there if the commit claimed it too. What is of higher `priority` is started first, where work waits.
    `is_sequel`: a turn that comes of a turn or a task, and may as well run where that ran.
    """

    id: TurnId | TaskId
    owner_id: str
    agent: str
    not_before: datetime | None = None
    claim: object | None = None
    priority: int = 0
    is_sequel: bool = False


@dataclass(slots=True)
class Committed:
    """What a commit made true, handed on after it.

    What it claimed must be begun; lose the rest and nothing but time is lost.
    """

    events: list[Event] = field(default_factory=list[Event])
    work: list[Work] = field(default_factory=list[Work])
    signals: list[str] = field(default_factory=list[str])
    rows: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    """The events as they were written."""
    is_told: bool = False
    """The commit itself told other processes to look."""

    @property
    def topics(self) -> list[str]:
        """Of all that may be looked at anew."""
        return list(dict.fromkeys([*(log_topic(event.session_id) for event in self.events), *self.signals]))

    @property
    def news(self) -> list[News]:
        return news_of(self.rows)


class Outbox(Protocol):
    """Where a unit's work and signals go."""

    def claimant(self, unit: "Unit", work: Work) -> WorkerId | None:
        """Inside the transaction that makes a turn or a task: who claims it with that. None: `enqueue` hands it on."""
        ...

    def drop(self, unit: "Unit") -> None:
        """On the event loop, after a rollback: what was to be claimed was not made."""
        ...

    def enqueue(self, unit: "Unit", work: Sequence[Work]) -> None:
        """Inside the transaction, before its commit."""
        ...

    def notify(self, unit: "Unit") -> None:
        """Inside the transaction, last of all: where the commit notifies anyway, it may take the signals along."""
        ...

    def deliver(self, committed: Committed) -> None:
        """On the event loop, after the commit."""
        ...


class SilentOutbox:
    """No engine and no readers in this process; whoever looks at the rows finds everything."""

    def claimant(self, unit: "Unit", work: Work) -> WorkerId | None:
        return None

    def drop(self, unit: "Unit") -> None:
        return

    def enqueue(self, unit: "Unit", work: Sequence[Work]) -> None:
        return

    def notify(self, unit: "Unit") -> None:
        return

    def deliver(self, committed: Committed) -> None:
        return
