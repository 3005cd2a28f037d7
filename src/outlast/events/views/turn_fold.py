"""A turn as people see it: the fold of its events. It serves a turn that runs and one that ended long ago alike.

What a turn came to (`Outcome`), a page of a session's view and the messages of the AI SDK all come from it. A page that
follows the events has the same fold in TypeScript: `tests/fixtures/events` holds both to it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from outlast.events.event import Event
from outlast.events.outcome import CallOutcome, Outcome, Usage
from outlast.events.types import EventType
from outlast.events.views import blocks
from outlast.events.views.blocks import Block, Show
from outlast.ids import TurnId

TYPES = frozenset(
    {
        *(EventType.TURN_QUEUED, EventType.TURN_STARTED, EventType.TURN_RESUMED),
        *(EventType.TURN_COMPLETED, EventType.TURN_FAILED, EventType.TURN_STOPPED),
        *(EventType.PART_STARTED, EventType.PART_DELTA, EventType.PART_ENDED),
        *(EventType.RESPONSE_COMPLETED, EventType.RESPONSE_DROPPED, EventType.INPUT_DELIVERED),
        *(EventType.CALL_STARTED, EventType.CALL_WAITING, EventType.CALL_PROGRESS, EventType.CALL_ENDED),
        *(EventType.CALL_SETTLED, EventType.HISTORY_COMPACTED, EventType.SESSION_FLAGGED),
    }
)
"""Events of a turn that change how it is seen."""
TurnView = dict[str, Any]


def new_turn(turn_id: str) -> TurnView:
    """A turn of which nothing is known yet."""
    return {
        **{"id": turn_id, "origin": "user", "state": "queued", "attempt": 0, "model": None, "place": None},
        **{"until": None, "regenerates": None, "replaced_by": None, "queued_at": None, "started_at": None},
        **{"ended_at": None, "kept": [], "blocks": [], "left_out": 0, "text": "", "cut": None, "output": None},
        **{"output_type": None, "usage": asdict(Usage()), "error": None, "stop_reason": None},
    }


class TurnFold:
    """Takes a turn's events one by one; `turn` and `outcome` are right after each.

    It also takes a log whose beginning is no longer kept: what is missing is missing from the turn. `show`: how large
    values that lie in the file store are shown. `known`: the turn as it was; what comes is added to it.
    """

    def __init__(self, turn_id: TurnId | str, *, show: Show = blocks.as_given, known: TurnView | None = None) -> None:
        self._turn = new_turn(turn_id) if known is None else known
        self._show = show
        self._usage = Usage(**self._turn["usage"])
        self._parts: dict[str, Block] = {}
        self._calls: dict[str, Block] = {}
        self._texts: dict[str, list[str]] = {}
        self._has_fixed_text = self._turn["cut"] is not None
        self.output_fields: Any = None
        """What the object is read back from, where it cannot be from the output."""
        for block in self._turn["blocks"]:
            self._index(block)
            self._has_fixed_text |= block["type"] == "note" and block["kind"] == "closing"

    @property
    def is_over(self) -> bool:
        return self._turn["state"] in ("completed", "failed", "stopped")

    @property
    def turn(self) -> TurnView:
        """As `wire/view.py` has it."""
        for name, texts in self._texts.items():
            self._parts[name]["text"] = "".join(texts)
        self._texts.clear()
        turn = self._turn
        if not self._has_fixed_text and self._parts:
            turn["text"] = _last_said(turn["blocks"])
        turn["usage"] = asdict(self._usage)
        return turn

    @property
    def outcome(self) -> Outcome:
        turn = self.turn
        said: list[Block] = turn["blocks"]
        return Outcome(
            turn_id=turn["id"],
            state=turn["state"],
            text=turn["text"],
            reasoning="".join(each["text"] for each in said if each["type"] == "reasoning"),
            output=turn["output"],
            calls=[
                CallOutcome(each["call_id"], each["tool"], each["args"], each["outcome"], each["result"])
                for each in said
                if each["type"] == "call" and (each["started_at"] or each["ended_at"])
            ],
            usage=self._usage,
            error=turn["error"],
            attempt=turn["attempt"],
        )

    @property
    def output_type(self) -> str | None:
        """Which of the types that its agent declares the output has, if there are several."""
        return self._turn["output_type"]

    @property
    def delivered(self) -> set[str]:
        """The ids of the inputs that the model saw in this turn."""
        return {each["input_id"] for each in self._turn["blocks"] if each.get("input_id")}

    def add(self, event: Event) -> None:
        data, turn = event.data, self._turn
        match event.type:
            case EventType.TURN_QUEUED:
                turn |= {name: data.get(name) for name in ("origin", "place", "until", "regenerates")}
                turn["queued_at"] = event.at
            case EventType.TURN_STARTED | EventType.TURN_RESUMED:
                turn |= {"state": "running", "attempt": data["attempt"], "place": None, "until": None}
                turn["started_at"] = turn["started_at"] or event.at
                turn["model"] = data.get("model") or turn["model"]
                self._discard(data.get("dropped") or ())
            case EventType.INPUT_DELIVERED:
                self._push(blocks.of_input(event))
            case EventType.PART_STARTED:
                self._push(blocks.part(data))
            case EventType.PART_DELTA:
                self._grow(data["part"], data["text"])
            case EventType.PART_ENDED:
                if "is_open" in self._parts.get(data["part"], ()):
                    self._parts[data["part"]]["is_open"] = False
            case EventType.RESPONSE_COMPLETED:
                self._usage.add(data["usage"])
                turn["model"] = turn["model"] or data.get("model")
            case EventType.RESPONSE_DROPPED:
                self._discard(data["dropped"])
            case EventType.HISTORY_COMPACTED:
                self._push(blocks.note("compacted", data.get("reason") or "", event, details=data))
            case EventType.SESSION_FLAGGED:  # of a turn only where an event cannot be read
                self._push(blocks.note("flagged", data.get("message") or data["reason"], event, details=data))
            case EventType.TURN_COMPLETED | EventType.TURN_FAILED | EventType.TURN_STOPPED:
                self._end(event)
            case _ if event.type in TYPES:
                self._call(event)
            case _:
                return

    def end(self, state: str, error: dict[str, Any] | None, usage: Mapping[str, Any]) -> None:
        """For a turn whose end is no longer in the log: what is stored of it beside the log."""
        self._turn["state"] = state
        self._turn["error"] = _without_usage(error)
        if usage:
            self._usage = Usage(requests=0)
            self._usage.add({"requests": 0, **usage})

    def _push(self, block: Block) -> None:
        self._turn["blocks"].append(block)
        self._index(block)

    def _index(self, block: Block) -> None:
        if block.get("part") is not None:
            self._parts[block["part"]] = block
        if block["type"] == "call":
            self._calls[block["call_id"]] = block

    def _grow(self, name: str, text: str) -> None:
        block = self._parts.get(name)
        if block is None or block.get("cut") is not None:
            return
        if block["type"] in ("text", "reasoning"):
            self._texts.setdefault(name, [block["text"]]).append(text)
        elif block["type"] == "call" and block["state"] == "asked":
            block["args"] = (block["args"] or "") + text

    def _discard(self, parts: Iterable[str]) -> None:
        gone = {id(block) for name in parts if (block := self._parts.pop(name, None)) is not None}
        if gone:
            self._texts = {name: texts for name, texts in self._texts.items() if name in self._parts}
            self._turn["blocks"] = [each for each in self._turn["blocks"] if id(each) not in gone]
            self._calls = {name: each for name, each in self._calls.items() if id(each) not in gone}
            self._turn["text"] = "" if not self._parts else self._turn["text"]

    def _call(self, event: Event) -> None:
        data = event.data
        block = self._calls.get(data["call_id"])
        if block is None:
            if event.type not in (EventType.CALL_STARTED, EventType.CALL_ENDED):
                return
            block = blocks.call(data["call_id"], data["tool"])
            self._push(block)
        match event.type:
            case EventType.CALL_STARTED:
                again = blocks.call(block["call_id"], data["tool"], block["part"])
                block |= again | {"state": "running", "args": self._show(data.get("args")), "started_at": event.at}
                block["narration"] = data.get("narration")
            case EventType.CALL_WAITING:
                block |= {"state": "waiting", "reason": data["reason"]}
            case EventType.CALL_PROGRESS:
                block["progress"] = data["progress"]
            case EventType.CALL_SETTLED:
                block["settled"] = settled(event)
            case _:
                self._end_call(block, event)

    def _end_call(self, block: Block, event: Event) -> None:
        data = event.data
        block |= {
            "state": "ended",
            "outcome": data["outcome"],
            "is_unknown": data["outcome"] == "interrupted" and data.get("is_unknown", True),
            "result": self._show(data["part"].get("content")),
            "files": [*blocks.files_in(data["part"].get("content")), *blocks.files_in(data.get("content"))],
            "artifacts": data.get("artifacts") or [],
            "task_id": data.get("task_id"),
            "reason": None,
            "narration": data.get("narration") or block["narration"],
            "ended_at": event.at,
        }
        if data.get("usage"):
            self._usage.add(data["usage"])

    def _end(self, event: Event) -> None:
        data, turn = event.data, self._turn
        state = event.type.partition(".")[2]
        turn |= {"state": state, "ended_at": event.at, "place": None, "until": None}
        total: dict[str, Any] = data.get("usage") or {}
        if total:
            # It tells all that the turn used, also what neither a response nor a call tells.
            unknown: dict[str, Any] = {"cost_microdollars": None}
            self._usage = Usage(**(unknown | total))
        for block in turn["blocks"]:
            if block.get("is_open"):
                block["is_open"] = False
            if block["type"] == "call" and block["state"] != "ended":
                # Only a call of the agent's output has no end of its own; another one did not run to its end.
                is_output = state == "completed" and block["state"] == "asked"
                block |= {"state": "ended", "outcome": "success" if is_output else None, "reason": None}
        match event.type:
            case EventType.TURN_COMPLETED:
                turn["output"], turn["output_type"] = self._show(data.get("output")), data.get("output_type")
                self.output_fields = data.get("output_fields")
                if data.get("text"):
                    self._has_fixed_text = True
                    turn["text"] = data["text"]
                    self._push(blocks.note("closing", data["text"], event))
            case EventType.TURN_FAILED:
                turn["error"] = _without_usage(data)
            case _:
                turn["stop_reason"] = data["reason"]


def kept_of(replaced: TurnView) -> list[Block]:
    """What stays of a turn in whose place another one stands: up to the last thing that was said to the model."""
    own: list[Block] = replaced["blocks"]
    said = [index for index, each in enumerate(own) if each.get("input_id")]
    return [*replaced["kept"], *(own[: said[-1] + 1] if said else ())]


def settled(event: Event) -> Block:
    """What a person said of a call."""
    return {name: event.data.get(name) for name in ("verdict", "by", "note")} | {"at": event.at}


def fold_turn(turn_id: TurnId, events: Iterable[Event]) -> TurnFold:
    """One turn from a session's events, in order; events of other turns are passed over."""
    fold = TurnFold(turn_id)
    for event in events:
        if event.turn_id == turn_id:
            fold.add(event)
    return fold


def _last_said(said: Iterable[Block]) -> str:
    """The texts of the last response that has any."""
    texts = [each for each in said if each["type"] == "text"]
    response = texts[-1]["part"].rpartition(".")[0] if texts else None
    return "".join(each["text"] for each in texts if each["part"].rpartition(".")[0] == response)


def _without_usage(error: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if error is None else {name: each for name, each in error.items() if name != "usage"}
