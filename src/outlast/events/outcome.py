"""An outcome: the fold of a turn's events. The same fold serves a running turn and one that ended long ago."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from outlast.events.event import Event
from outlast.events.types import EventType
from outlast.ids import TurnId

OutcomeState = Literal["queued", "running", "completed", "failed", "stopped"]


@dataclass(slots=True)
class CallOutcome:
    """One tool call of a turn. `outcome` is None while it runs."""

    call_id: str
    tool: str
    args: Any = None
    outcome: str | None = None
    result: Any = None


@dataclass(slots=True)
class Usage:
    """Tokens and money of a turn. `cost_microdollars` is None when it is not known, never zero instead."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_microdollars: int | None = 0

    def add(self, data: Mapping[str, Any]) -> None:
        """What one model request used, or, where their number stands in it, several."""
        self.requests += _counted(data, "requests", 1)
        self.input_tokens += _counted(data, "input_tokens")
        self.output_tokens += _counted(data, "output_tokens")
        self.cache_read_tokens += _counted(data, "cache_read_tokens")
        self.cache_write_tokens += _counted(data, "cache_write_tokens")
        cost = data.get("cost_microdollars")
        if type(cost) is not int or self.cost_microdollars is None:
            self.cost_microdollars = None
        else:
            self.cost_microdollars += cost


def _counted(data: Mapping[str, Any], name: str, default: int = 0) -> int:
    """What is no number counts nothing."""
    found = data.get(name, default)
    return found if type(found) is int else 0


@dataclass(slots=True)
class Outcome:
    """What a turn came to. `output` is the agent's validated output; `text` what the model said last."""

    turn_id: TurnId | None = None
    state: OutcomeState = "queued"
    text: str = ""
    reasoning: str = ""
    output: Any = None
    calls: list[CallOutcome] = field(default_factory=list[CallOutcome])
    usage: Usage = field(default_factory=Usage)
    error: dict[str, Any] | None = None
    attempt: int = 0
    no_worker_for: str | None = None
    """The agent for which the turn waits, while no worker is there that has it."""

    @property
    def is_over(self) -> bool:
        return self.state in ("completed", "failed", "stopped")


class OutcomeFold:
    """Takes a turn's events one by one; `outcome` is right after each.

    It also takes a log whose beginning is no longer kept: what is missing is missing from the outcome.
    """

    def __init__(self, turn_id: TurnId) -> None:
        self._outcome = Outcome(turn_id)
        self._closing_line: str | None = None
        self.output_type: str | None = None
        """Which of the types that its agent declares the output has, if there are several."""
        self.output_fields: Any = None
        """What the object is read back from, where it cannot be from the output."""
        self.delivered: set[str] = set()
        """The ids of the inputs that the model saw in this turn."""
        self._parts: dict[str, tuple[str, list[str]]] = {}
        self._calls: dict[str, CallOutcome] = {}

    @property
    def outcome(self) -> Outcome:
        outcome = self._outcome
        outcome.text = self._closing_line or self._joined("text")
        outcome.reasoning = self._joined("reasoning")
        outcome.calls = list(self._calls.values())
        return outcome

    def add(self, event: Event) -> None:
        data, outcome = event.data, self._outcome
        match event.type:
            case EventType.TURN_STARTED | EventType.TURN_RESUMED:
                outcome.state = "running"
                outcome.attempt = data["attempt"]
                self._discard(data.get("dropped") or ())
            case EventType.INPUT_DELIVERED:
                self.delivered.add(data["input_id"])
            case EventType.PART_STARTED:
                self._start_part(data)
            case EventType.PART_DELTA:
                self._parts.setdefault(data["part"], ("unknown", []))[1].append(data["text"])
            case EventType.RESPONSE_COMPLETED:
                outcome.usage.add(data["usage"])
            case EventType.RESPONSE_DROPPED:
                self._discard(data["dropped"])
            case EventType.CALL_STARTED:
                call = CallOutcome(data["call_id"], data["tool"], data.get("args"))
                self._calls[call.call_id] = call
            case EventType.CALL_ENDED:
                call = self._calls.setdefault(data["call_id"], CallOutcome(data["call_id"], data["tool"]))
                call.outcome = data["outcome"]
                call.result = data["part"].get("content")
                if data.get("usage"):
                    outcome.usage.add(data["usage"])
            case EventType.TURN_COMPLETED:
                self._total(data)
                outcome.state, outcome.output = "completed", data.get("output")
                self._closing_line, self.output_type = data.get("text"), data.get("output_type")
                self.output_fields = data.get("output_fields")
            case EventType.TURN_FAILED:
                self._total(data)
                outcome.state = "failed"
                outcome.error = {key: value for key, value in data.items() if key != "usage"}
            case EventType.TURN_STOPPED:
                self._total(data)
                outcome.state = "stopped"
            case _:
                return

    def end(self, state: str, error: dict[str, Any] | None, usage: dict[str, Any]) -> None:
        """For a turn whose end is no longer in the log: what is stored of it beside the log."""
        self._outcome.state = cast(OutcomeState, state)
        self._outcome.error = None if error is None else {key: each for key, each in error.items() if key != "usage"}
        if usage:
            self._outcome.usage = Usage(requests=0)
            self._outcome.usage.add({"requests": 0, **usage})

    def _total(self, data: Mapping[str, Any]) -> None:
        """The end of a turn tells all that it used, also what neither a response nor a call tells."""
        total: dict[str, Any] = data.get("usage") or {}
        if total:
            unknown: dict[str, Any] = {"cost_microdollars": None}
            self._outcome.usage = Usage(**(unknown | total))

    def _start_part(self, data: dict[str, Any]) -> None:
        response = data["part"].rpartition(".")[0]
        if data["kind"] == "text":
            for part, (kind, texts) in self._parts.items():
                if kind == "text" and part.rpartition(".")[0] != response:
                    texts.clear()
        self._parts[data["part"]] = (data["kind"], [])

    def _discard(self, parts: Iterable[str]) -> None:
        for part in parts:
            self._parts.pop(part, None)

    def _joined(self, wanted: str) -> str:
        return "".join("".join(texts) for kind, texts in self._parts.values() if kind == wanted)


def fold_outcome(turn_id: TurnId, events: Iterable[Event]) -> Outcome:
    """The outcome of one turn from a session's events, in order; events of other turns are passed over."""
    fold = OutcomeFold(turn_id)
    for event in events:
        if event.turn_id == turn_id:
            fold.add(event)
    return fold.outcome
