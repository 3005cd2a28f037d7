"""What became of the calls of a run: known here whatever ends the run itself."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from outlast.calls.call import RunningCall
from outlast.calls.parking import Parked


@dataclass(frozen=True, slots=True)
class Unconfirmed:
    """A call that was told to cancel and has not ended: somebody must go on owning it."""

    call: RunningCall
    inner: asyncio.Task[Any]


@dataclass(slots=True)
class CallEnds:
    """What became of the calls of a run, by call id: a run that is cancelled tells of none of them itself."""

    begun: set[str] = field(default_factory=set[str])
    elsewhere: set[str] = field(default_factory=set[str])
    """Of those that have begun: output functions, and what another capability runs. Their ends are not known here."""
    deferred: dict[str, str] = field(default_factory=dict[str, str])
    """Calls that ask for an approval or a result from outside, and nobody here gives any: what to say of them."""
    finished: dict[str, Any] = field(default_factory=dict[str, Any])
    failed: dict[str, str] = field(default_factory=dict[str, str])
    transient: set[str] = field(default_factory=set[str])
    """Of those that failed: by what passes by itself. The circuit breaker does not count them."""
    parked: dict[str, Parked] = field(default_factory=dict[str, Parked])
    canceled: set[str] = field(default_factory=set[str])
    unconfirmed: dict[str, Unconfirmed] = field(default_factory=dict[str, Unconfirmed])
    superseded: list[Unconfirmed] = field(default_factory=list[Unconfirmed])
    """Those that run on although their ids are used again."""

    def begin(self, call_id: str) -> None:
        """Of a call that runs again, the end of this run counts. The earlier one is watched, if it runs on."""
        self.begun.add(call_id)
        self._supersede(call_id)

    def begin_elsewhere(self, *call_ids: str) -> None:
        """Those that have begun here already, and asked for something, are not begun anew by that."""
        self.elsewhere.update(each for each in call_ids if each not in self.begun)
        self.begun.update(call_ids)

    def go_on_from(self, earlier: "CallEnds") -> None:
        """The run before this one in the same attempt: what has begun has begun, and what runs on is still watched."""
        self.begun |= earlier.begun
        self.elsewhere |= earlier.elsewhere
        self.unconfirmed |= earlier.unconfirmed
        self.superseded += earlier.superseded

    def expect(self, call_ids: Iterable[str]) -> None:
        """The model asks for these: what became of earlier calls that had the same ids is told already."""
        for call_id in call_ids:
            for known in (self.deferred, self.finished, self.failed, self.parked):
                known.pop(call_id, None)
            for ids in (self.begun, self.elsewhere, self.canceled, self.transient):
                ids.discard(call_id)
            self._supersede(call_id)

    def _supersede(self, call_id: str) -> None:
        if call_id in self.unconfirmed:
            self.superseded.append(self.unconfirmed.pop(call_id))
