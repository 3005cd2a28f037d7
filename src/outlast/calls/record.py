"""One record per call of a run, with one state: known here whatever ends the run itself."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pydantic_ai.messages import ToolReturnPart

from outlast.calls import outcomes
from outlast.calls.call import RunningCall
from outlast.calls.parking import Parked


class CallState(StrEnum):
    """`ELSEWHERE`: an output function or another capability runs it; its end is not known here."""

    ASKED = "asked"
    RUNNING = "running"
    ELSEWHERE = "elsewhere"
    DEFERRED = "deferred"
    PARKED = "parked"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"
    UNCONFIRMED = "unconfirmed"


_ENDS = frozenset({CallState.PARKED, CallState.SUCCEEDED, CallState.FAILED})
MOVES: Mapping[CallState, frozenset[CallState]] = {
    CallState.ASKED: frozenset({CallState.RUNNING, CallState.ELSEWHERE, CallState.DEFERRED, *_ENDS}),
    CallState.RUNNING: frozenset({CallState.DEFERRED, CallState.CANCELED, CallState.UNCONFIRMED, *_ENDS}),
    CallState.ELSEWHERE: frozenset({CallState.RUNNING, CallState.DEFERRED, *_ENDS}),
    CallState.DEFERRED: frozenset({CallState.RUNNING, *_ENDS}),
    # Asked to cancel twice, it may turn out to have ended in between.
    CallState.CANCELED: frozenset({CallState.RUNNING, CallState.SUCCEEDED, CallState.FAILED}),
    CallState.UNCONFIRMED: frozenset({CallState.RUNNING}),
    # A call with the id of one that ended: the end of the later one counts.
    **dict.fromkeys(_ENDS, frozenset({CallState.RUNNING})),
}


@dataclass(frozen=True, slots=True)
class Unconfirmed:
    """A call that was told to cancel and has not ended: somebody must go on owning it."""

    call: RunningCall
    inner: asyncio.Task[Any]


@dataclass(slots=True)
class CallRecord:
    """What became of one call. `detail` belongs to the state: a value, words, its task, or what runs on."""

    state: CallState = CallState.ASKED
    detail: Any = None
    has_begun: bool = False
    may_run_again: bool = False
    """It was run in this run, and may be run again."""
    is_transient: bool = False
    """It failed by what passes by itself: the circuit breaker does not count that."""

    def move(self, target: CallState, detail: Any = None) -> bool:
        """False: it is in a state from which there is no way there, and stays as it is."""
        if target not in MOVES[self.state]:
            return False
        self.state, self.detail = target, detail
        return True

    @property
    def parked(self) -> Parked | None:
        return self.detail if self.state is CallState.PARKED else None

    @property
    def unconfirmed(self) -> Unconfirmed | None:
        return self.detail if self.state is CallState.UNCONFIRMED else None

    @property
    def is_known(self) -> bool:
        """It came to something that another run may be told. Cancelled work that may be repeated is run again."""
        return self.state in _ENDS or (self.state is CallState.CANCELED and not self.may_run_again)

    def came_to(self, tool: str, call_id: str, *, was_in_flight: bool = False) -> ToolReturnPart:
        """What the model is told of it when its run does not tell: after a stop, a failure, a hand-over, an output."""
        match self.state:
            case CallState.PARKED:
                return ToolReturnPart(tool_name=tool, content=self.detail.handle, tool_call_id=call_id)
            case CallState.SUCCEEDED:
                return ToolReturnPart(tool_name=tool, content=self.detail, tool_call_id=call_id)
            case CallState.FAILED:
                return ToolReturnPart(tool_name=tool, content=self.detail, tool_call_id=call_id, outcome="failed")
            case CallState.DEFERRED:
                return outcomes.interrupted(tool, call_id, self.detail)
            case _:
                return outcomes.interrupted(tool, call_id, self._unfinished(was_in_flight=was_in_flight))

    def _unfinished(self, *, was_in_flight: bool) -> str:
        if self.has_begun:
            return outcomes.CANCELED_REPEATABLE if self.may_run_again else outcomes.CANCELED
        return outcomes.MAY_HAVE_RUN if was_in_flight else outcomes.NOT_RUN


@dataclass(slots=True)
class CallRecords:
    """The records of a run by call id: a run that is cancelled tells of none of its calls itself."""

    by_id: dict[str, CallRecord] = field(default_factory=dict[str, CallRecord])
    superseded: list[Unconfirmed] = field(default_factory=list[Unconfirmed])
    """Those that run on although their ids are used again."""

    def of(self, call_id: str) -> CallRecord:
        record = self.by_id.get(call_id)
        if record is None:
            record = self.by_id[call_id] = CallRecord()
        return record

    def begin(self, call_id: str) -> CallRecord:
        """Of a call that runs again, the end of this run counts. The earlier one is watched, if it runs on."""
        record = self.of(call_id)
        if record.unconfirmed is not None:
            self.superseded.append(record.unconfirmed)
        record.move(CallState.RUNNING)
        record.has_begun = True
        return record

    def begin_elsewhere(self, *call_ids: str) -> None:
        """Those that have begun here already, and asked for something, are not begun anew by that."""
        for record in map(self.of, call_ids):
            if not record.has_begun:
                record.move(CallState.ELSEWHERE)
                record.has_begun = True

    def go_on_from(self, earlier: "CallRecords") -> None:
        """The run before this one in the same attempt: what has begun has begun, and what runs on is still watched."""
        for call_id, record in earlier.by_id.items():
            if record.has_begun:
                is_kept = record.state in (CallState.ELSEWHERE, CallState.UNCONFIRMED)
                state = record.state if is_kept else CallState.RUNNING
                self.by_id[call_id] = CallRecord(state, record.unconfirmed, has_begun=True)
        self.superseded += earlier.superseded

    def expect(self, call_ids: Iterable[str]) -> None:
        """The model asks for these: what became of earlier calls that had the same ids is told already."""
        for call_id in call_ids:
            earlier = self.by_id.get(call_id)
            if earlier is not None and earlier.unconfirmed is not None:
                self.superseded.append(earlier.unconfirmed)
            self.by_id[call_id] = CallRecord()

    def known(self) -> set[str]:
        return {call_id for call_id, record in self.by_id.items() if record.is_known}

    def begun_here(self) -> set[str]:
        """Those that are not run elsewhere."""
        return {
            call_id
            for call_id, record in self.by_id.items()
            if record.has_begun and record.state is not CallState.ELSEWHERE
        }

    def going_on(self) -> set[str]:
        """Those that go on without the turn."""
        on = (CallState.PARKED, CallState.UNCONFIRMED)
        return {call_id for call_id, record in self.by_id.items() if record.state in on}

    def running_on(self) -> list[Unconfirmed]:
        """All that were told to cancel and have not ended."""
        left = [record.unconfirmed for record in self.by_id.values()]
        return [*(each for each in left if each is not None), *self.superseded]
