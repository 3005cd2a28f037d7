"""A session's turns as UI messages of the AI SDK: what a page shows when it is opened.

They are folded from the same chunks that a client is streamed, so a page that was reloaded shows what it showed before;
only what was dropped is not there any more, and tasks are shown as they are now. An answer that is still being made is
left out: `resumeStream()` brings it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_ai.ui.vercel_ai.response_types import (
    BaseChunk,
    DataChunk,
    MessageMetadataChunk,
    ReasoningDeltaChunk,
    ReasoningEndChunk,
    ReasoningStartChunk,
    StartChunk,
    StartStepChunk,
    TextDeltaChunk,
    TextEndChunk,
    TextStartChunk,
    ToolApprovalRequestChunk,
    ToolInputAvailableChunk,
    ToolInputErrorChunk,
    ToolInputStartChunk,
    ToolOutputAvailableChunk,
    ToolOutputErrorChunk,
)

from outlast.events.event import Event
from outlast.events.types import EventType
from outlast.handles.session import Session
from outlast.handles.turn import Turn
from outlast.protocols.ai_sdk.calls import decided_part
from outlast.protocols.ai_sdk.encoder import TurnEncoder
from outlast.store.repositories.inputs import Input

UIMessage = dict[str, Any]


async def ui_messages(session: Session, turns: Sequence[Turn], *, waiting: Sequence[Input] = ()) -> list[UIMessage]:
    """The messages of turns that follow one another, oldest first; at the end those of `waiting` that nobody heard yet.

    What waits for an answer that is being made is left out: that answer tells where it was heard.
    """
    book = _Book()
    while turns and not await _read(session, turns, book):
        book = _Book()  # what was to be read left the log meanwhile
    found = book.close([_user_message(each) for each in waiting])
    await _show_decisions(session, found)
    return found


async def _show_decisions(session: Session, shown: Sequence[UIMessage]) -> None:
    asking = [part for each in shown for part in each["parts"] if part.get("state") == "approval-requested"]
    if asking:
        known = {each.id: each for each in await session.tasks()}
        for part in asking:
            part |= decided_part(known.get(part["approval"]["id"]))


async def _read(session: Session, turns: Sequence[Turn], book: "_Book") -> bool:
    """False when a part of it is no longer where it was looked for."""
    after = None
    for turn in turns:
        lead = await turn.lead()
        after = lead.after if lead.kept is not None or after is None else after
        for event in lead.kept or ():
            await _add(session, book, event)
        if lead.kept is None:
            break
    wanted = {turn.id for turn in turns}
    async with session.events(after=after or 0, follow=False) as stream:
        async for event in stream:
            if event.type == EventType.STREAM_EXPIRED:
                return False
            if event.type == EventType.TURN_QUEUED and event.turn_id not in wanted:
                break
            await _add(session, book, event)
    return True


async def _add(session: Session, book: "_Book", event: Event) -> None:
    if event.type == EventType.INPUT_DELIVERED and event.data["kind"] == "message":
        book.hear(_user_message(await session.input(event.data["input_id"])))
    book.add(event)


class MessageFold:
    """The message that a client has after the chunks it was streamed."""

    def __init__(self) -> None:
        self.message: UIMessage = {"id": "", "role": "assistant", "metadata": {}, "parts": []}
        self._texts: dict[str, UIMessage] = {}
        self._calls: dict[str, UIMessage] = {}

    def add(self, chunk: BaseChunk) -> None:
        match chunk:
            case StartChunk():
                self.message["id"] = chunk.message_id
                self.message["metadata"] |= chunk.message_metadata or {}
            case MessageMetadataChunk():
                self.message["metadata"] |= chunk.message_metadata
            case StartStepChunk():
                self._push({"type": "step-start"})
            case DataChunk():
                self._add_data(chunk)
            case TextStartChunk() | ReasoningStartChunk() | TextDeltaChunk() | ReasoningDeltaChunk():
                self._add_text(chunk)
            case TextEndChunk() | ReasoningEndChunk():
                self._texts[chunk.id]["state"] = "done"
            case _:
                self._add_call(chunk)

    def _push(self, part: UIMessage) -> UIMessage:
        self.message["parts"].append(part)
        return part

    def _add_data(self, chunk: DataChunk) -> None:
        for part in self.message["parts"]:
            if chunk.id is not None and (part["type"], part.get("id")) == (chunk.type, chunk.id):
                part["data"] = chunk.data
                return
        self._push({"type": chunk.type, **({} if chunk.id is None else {"id": chunk.id}), "data": chunk.data})

    def _add_text(self, chunk: TextStartChunk | ReasoningStartChunk | TextDeltaChunk | ReasoningDeltaChunk) -> None:
        if isinstance(chunk, TextDeltaChunk | ReasoningDeltaChunk):
            self._texts[chunk.id]["text"] += chunk.delta
            return
        part: UIMessage = {"type": chunk.type.removesuffix("-start"), "text": "", "state": "streaming"}
        if chunk.provider_metadata is not None:
            part["providerMetadata"] = chunk.provider_metadata
        self._texts[chunk.id] = self._push(part)

    def _add_call(self, chunk: BaseChunk) -> None:
        match chunk:
            case ToolInputStartChunk():
                self._calls[chunk.tool_call_id] = self._push(_call(chunk.tool_call_id, chunk.tool_name))
            case ToolInputAvailableChunk():
                self._move(chunk.tool_call_id, chunk.tool_name, state="input-available", input=chunk.input)
            case ToolInputErrorChunk():
                error = {"state": "output-error", "input": chunk.input, "errorText": chunk.error_text}
                self._move(chunk.tool_call_id, chunk.tool_name, **error)
            case ToolApprovalRequestChunk():
                self._move(chunk.tool_call_id, "", state="approval-requested", approval={"id": chunk.approval_id})
            case ToolOutputAvailableChunk():
                self._move(chunk.tool_call_id, "", state="output-available", output=chunk.output)
            case ToolOutputErrorChunk():
                self._move(chunk.tool_call_id, "", state="output-error", errorText=chunk.error_text)
            case _:
                return

    def _move(self, call_id: str, tool: str, **fields: Any) -> None:
        part = self._calls.get(call_id)
        if part is None:
            part = self._calls[call_id] = self._push(_call(call_id, tool))
        part |= fields


class _Book:
    """Takes a session's events in order. `before` and `after` are what people said around the answer of a turn."""

    def __init__(self) -> None:
        self._messages: list[UIMessage] = []
        self._encoder: TurnEncoder | None = None
        self._fold = MessageFold()
        self._before: list[UIMessage] = []
        self._after: list[UIMessage] = []
        self._early: list[Event] = []
        self._tasks: dict[str, Any] = {}

    def hear(self, message: UIMessage) -> None:
        has_spoken = self._encoder is not None and self._encoder.has_spoken
        (self._after if has_spoken else self._before).append(message)

    def add(self, event: Event) -> None:
        if event.type.startswith("task."):
            self._tasks[event.data["task"]["id"]] = event.data["task"]
        if event.type == EventType.TURN_QUEUED and event.turn_id is not None:
            if self._messages and self._messages[-1]["id"] == event.data.get("regenerates"):
                self._messages.pop()
            self._encoder, self._fold = TurnEncoder(event.turn_id), MessageFold()
            early, self._early = self._early, []
            for each in early:
                self._encode(each)
        if self._encoder is None:
            self._early += [event] if event.type.startswith("task.") else []
            return
        self._encode(event)
        if event.is_terminal and self._encoder.is_over:
            self._end_turn([self._fold.message])

    def close(self, waiting: Sequence[UIMessage]) -> list[UIMessage]:
        is_answering = self._encoder is not None and (self._before or self._encoder.has_spoken)
        self._end_turn([])
        known = {each["id"] for each in self._messages}
        self._messages += [each for each in waiting if not is_answering and each["id"] not in known]
        for message in self._messages:
            for part in message["parts"]:
                if part["type"] == "data-task":
                    part["data"] = self._tasks[part["id"]]
        return self._messages

    def _encode(self, event: Event) -> None:
        assert self._encoder is not None
        for chunk in self._encoder.add(event):
            self._fold.add(chunk)

    def _end_turn(self, answer: list[UIMessage]) -> None:
        self._messages += [*self._before, *answer, *self._after]
        self._before, self._after, self._encoder = [], [], None


def _call(call_id: str, tool: str) -> UIMessage:
    return {"type": f"tool-{tool}", "toolCallId": call_id, "state": "input-streaming"}


def _user_message(said: Input) -> UIMessage:
    """Under the id that its client gave it, so that a page which still has it knows it again."""
    files: Sequence[Mapping[str, Any]] = said.body.get("files", ())
    attached = [{"type": "data-file", "data": {name: each[name] for name in _FILE}} for each in files]
    text = {"type": "text", "text": said.text}
    return {"id": said.idempotency_key or said.id, "role": "user", "parts": [*attached, text]}


_FILE = ("id", "name", "media_type", "bytes")
