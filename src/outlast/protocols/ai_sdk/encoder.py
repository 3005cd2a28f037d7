"""A turn as a UI message stream of the AI SDK (v1), in the chunks that `ai` 5, 6 and 7 have in common.

A call that waits for an approval has a `tool-approval-request` with its task's id, and no output until it is decided.
One turn is one assistant message, and its id is the message's id: whoever streams it twice gets the same
message. What the protocol has no chunk for stands in data parts: `data-task` (id: the task), `data-call`
(id: the call; what it waits for, how far it is, that it was parked), `data-message` (id: the input; said by a person
while the turn ran), `data-wake` (id: the input; what woke the turn), `data-output` (a typed output), `data-dropped`.

Clients cannot take back what was streamed to them. A response that is broken off has its open parts closed and is
named in `data-dropped`: its `parts` are the `providerMetadata.outlast.part` of texts and reasoning, so a page can
hide them. The log forgets such parts, so a replay never shows them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_ai.ui.vercel_ai.response_types import (
    AbortChunk,
    BaseChunk,
    DataChunk,
    ErrorChunk,
    FinishChunk,
    FinishReason,
    FinishStepChunk,
    MessageMetadataChunk,
    ReasoningDeltaChunk,
    ReasoningEndChunk,
    ReasoningStartChunk,
    StartChunk,
    StartStepChunk,
    TextDeltaChunk,
    TextEndChunk,
    TextStartChunk,
)

from outlast.events.event import Event
from outlast.events.shown import is_text, shown
from outlast.events.types import EventType
from outlast.ids import TurnId
from outlast.protocols.ai_sdk.calls import CallChunks

HEADERS: Mapping[str, str] = {
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
    "x-vercel-ai-ui-message-stream": "v1",
}
DONE = "data: [DONE]\n\n"

_FINISH: Mapping[str | None, FinishReason] = {
    "length": "length",
    "content_filter": "content-filter",
    "error": "error",
}
"""What a model said last; a turn that completed has otherwise come to its `stop`, also by a call of its output."""


@dataclass(slots=True)
class _Part:
    """A part of a response. `is_open`: its start was sent and its end was not."""

    kind: str
    is_open: bool = False


def to_json(chunk: BaseChunk) -> str:
    """A chunk with the fields that were given, also those that are null: clients refuse an output that is left out."""
    return chunk.model_dump_json(by_alias=True, include=chunk.model_fields_set | {"type"})


def frame(chunk: BaseChunk) -> str:
    """A chunk as a server-sent event."""
    return f"data: {to_json(chunk)}\n\n"


def encode(turn_id: TurnId | str, events: Iterable[Event]) -> list[BaseChunk]:
    """The chunks of one turn from a session's events, in order."""
    encoder = TurnEncoder(turn_id)
    return [chunk for event in events for chunk in encoder.add(event)]


class TurnEncoder:
    """Takes a session's events since the turn before, and gives the chunks that each makes.

    Events of other turns are passed over, but for the news of background tasks. After `is_over` it gives nothing.
    """

    def __init__(self, turn_id: TurnId | str, *, has_approvals: bool = True) -> None:
        """`has_approvals`: the client is of version 6 or later, which know of requests for approvals."""
        self.is_over = False
        self.has_spoken = False
        self._turn_id = turn_id
        self._has_begun = False
        self._early: dict[str, list[BaseChunk]] = {}
        self._response: str | None = None
        """The response whose step is open."""
        self._has_step_calls = False
        self._finish: str | None = None
        self._model: str | None = None
        self._parts: dict[str, _Part] = {}
        self._calls = CallChunks(has_approvals=has_approvals)

    def add(self, event: Event) -> Sequence[BaseChunk]:
        if self.is_over:
            return []
        if event.turn_id == self._turn_id and not self._has_begun:
            return [*self._start(event), *self._take(event)]
        if event.type.startswith("task.") and not self._has_begun:
            self._early[event.data["task"]["id"]] = self._take(event)
            return []
        is_meant = event.turn_id == self._turn_id or event.type.startswith("task.")
        return self._take(event) if is_meant else []

    def _start(self, event: Event) -> list[BaseChunk]:
        """The message begins with the last news of each task since the turn before: nobody was streamed them."""
        self._has_begun = True
        metadata = {"session_id": event.session_id, "turn_id": self._turn_id}
        if event.type == EventType.TURN_QUEUED:
            metadata |= {name: event.data[name] for name in ("origin", "regenerates") if name in event.data}
        news = [chunk for chunks in self._early.values() for chunk in chunks]
        return [StartChunk(message_id=self._turn_id, message_metadata=metadata), *news]

    def _take(self, event: Event) -> list[BaseChunk]:
        data = event.data
        match event.type:
            case EventType.PART_STARTED:
                return self._start_part(data)
            case EventType.PART_DELTA:
                return self._grow(data["part"], data["text"])
            case EventType.PART_ENDED:
                return self._end_part(data["part"])
            case EventType.RESPONSE_COMPLETED:
                self._finish, self._model = data.get("finish"), data.get("model")
                return self._calls.commit()
            case EventType.RESPONSE_DROPPED | EventType.TURN_RESUMED:
                return self._drop(data.get("dropped") or ())
            case EventType.INPUT_DELIVERED:
                return self._input(event)
            case EventType.TASK_CREATED | EventType.TASK_CHANGED | EventType.TASK_ENDED:
                return [DataChunk(type="data-task", id=data["task"]["id"], data=data["task"])]
            case EventType.TURN_COMPLETED | EventType.TURN_FAILED | EventType.TURN_STOPPED:
                return self._end(event)
            case _:
                return self._calls.take(event.type, data) if event.type.startswith("call.") else []

    def _start_part(self, data: Mapping[str, Any]) -> list[BaseChunk]:
        name, kind = data["part"], data["kind"]
        self._parts[name] = _Part(kind)
        chunks = self._step_of(name)
        if kind == "call":
            self._has_step_calls = True
            chunks += self._calls.ask(name, data["call_id"], data["tool"])
        return chunks

    def _step_of(self, part: str) -> list[BaseChunk]:
        """A response and its calls are a step; it ends where the next begins."""
        response = part.rpartition(".")[0]
        if response == self._response:
            return []
        chunks = self._end_step()
        self._response, self.has_spoken = response, True
        return [*chunks, StartStepChunk()]

    def _end_step(self) -> list[BaseChunk]:
        if self._response is None:
            return []
        self._response, self._has_step_calls = None, False
        return [FinishStepChunk()]

    def _grow(self, name: str, text: str) -> list[BaseChunk]:
        """A text starts with its first word: a part that stays empty is not shown."""
        part = self._parts.get(name)
        if part is None or not text:
            return []
        match part.kind:
            case "call":
                return self._calls.grow(name, text)
            case "text":
                return [*self._open(name, part, TextStartChunk), TextDeltaChunk(id=name, delta=text)]
            case "reasoning":
                return [*self._open(name, part, ReasoningStartChunk), ReasoningDeltaChunk(id=name, delta=text)]
            case _:
                return []

    def _open(self, name: str, part: _Part, start: type[TextStartChunk] | type[ReasoningStartChunk]) -> list[BaseChunk]:
        if part.is_open:
            return []
        part.is_open = True
        return [start(id=name, provider_metadata={"outlast": {"part": name}})]

    def _end_part(self, name: str) -> list[BaseChunk]:
        part = self._parts.get(name)
        if part is None or not part.is_open:
            return []
        part.is_open = False
        return [TextEndChunk(id=name) if part.kind == "text" else ReasoningEndChunk(id=name)]

    def _drop(self, dropped: Iterable[str]) -> list[BaseChunk]:
        """Only what this reader has seen of them: parts that the log had forgotten before are no news to it."""
        seen = [name for name in dropped if name in self._parts]
        chunks = [chunk for name in seen for chunk in (*self._end_part(name), *self._calls.drop(name))]
        for name in seen:
            del self._parts[name]
        return [*chunks, DataChunk(type="data-dropped", data={"parts": seen}), *self._end_step()] if seen else []

    def _input(self, event: Event) -> list[BaseChunk]:
        """Who sent a message that began the turn shows it already; one that came later stands where it was heard."""
        data = event.data
        if data["kind"] == "wake":
            news = {"input_id": data["input_id"], "task_id": event.task_id, "text": data["text"]}
            return [*self._end_step(), DataChunk(type="data-wake", id=data["input_id"], data=news)]
        if not self.has_spoken:
            return []
        said = {name: data[name] for name in ("input_id", "kind", "text", "key") if name in data}
        return [*self._end_step(), DataChunk(type="data-message", id=data["input_id"], data=said)]

    def _end(self, event: Event) -> list[BaseChunk]:
        self.is_over = True
        data, state = event.data, event.type.partition(".")[2]
        metadata: dict[str, Any] = {"state": state, "model": self._model, "usage": data.get("usage")}
        match event.type:
            case EventType.TURN_COMPLETED:
                end: BaseChunk = FinishChunk(finish_reason=_FINISH.get(self._finish, "stop"))
            case EventType.TURN_STOPPED:
                metadata["reason"] = data["reason"]
                end = AbortChunk(reason=data["reason"])
            case _:
                metadata["error"] = {name: value for name, value in data.items() if name != "usage"}
                end = ErrorChunk(error_text=data["message"])
        return [*self._close(data, state), MessageMetadataChunk(message_metadata=metadata), end]

    def _close(self, data: Mapping[str, Any], state: str) -> list[BaseChunk]:
        """Leave nothing open, and show what stands for an answer when the model said none."""
        output = data.get("output")
        chunks = [chunk for name in self._parts for chunk in self._end_part(name)]
        chunks += self._calls.close(state, output)
        had_calls = self._has_step_calls
        chunks += self._end_step()
        if state != "completed" and had_calls:
            # A client may be set to send again when the last step has calls that are all answered.
            chunks += [StartStepChunk(), FinishStepChunk()]
        if output is not None and not is_text(output):
            chunks.append(DataChunk(type="data-output", id=self._turn_id, data={"output": shown(output)}))
        if data.get("text"):
            chunks += [StartStepChunk(), TextStartChunk(id="closing")]
            chunks += [TextDeltaChunk(id="closing", delta=data["text"]), TextEndChunk(id="closing"), FinishStepChunk()]
        return chunks
