"""What must hold for every stored history, whatever happened to its turns."""

from collections import Counter
from collections.abc import Sequence

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart

from outlast.testing import texts_seen


def check_history(messages: Sequence[ModelMessage]) -> None:
    """Each call has exactly one return, which comes before the next response; no return without a call."""
    open_calls: Counter[str] = Counter()
    for message in messages:
        if isinstance(message, ModelResponse):
            assert not +open_calls, f"the model was asked while {dict(open_calls)} had no return"
            open_calls = Counter(part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart))
        else:
            for part in message.parts:
                if isinstance(part, ToolReturnPart):
                    assert open_calls[part.tool_call_id] == 1, f"{part.tool_call_id} has no open call"
                    open_calls[part.tool_call_id] -= 1
    assert not +open_calls, f"{dict(open_calls)} have no return"


def stands_once(text: str, messages: Sequence[ModelMessage]) -> bool:
    """Whether exactly one user prompt holds this text."""
    return sum(text in seen for seen in texts_seen(messages)) == 1


def outline(messages: Sequence[ModelMessage]) -> list[str]:
    """The history as short words, in order: `user: …`, `text: …`, `call: tool`, `return: tool (outcome)`."""
    words: list[str] = []
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolReturnPart):
                words.append(f"return: {part.tool_name} ({part.outcome})")
            elif isinstance(part, ToolCallPart):
                words.append(f"call: {part.tool_name}")
            else:
                kind = "user" if isinstance(message, ModelRequest) else part.part_kind
                words.append(f"{kind}: {getattr(part, 'content', '')}")
    return words


def return_of(call_id: str, messages: Sequence[ModelMessage]) -> ToolReturnPart:
    found = [
        part
        for message in messages
        for part in message.parts
        if isinstance(part, ToolReturnPart) and part.tool_call_id == call_id
    ]
    assert len(found) == 1, f"{call_id} has {len(found)} returns"
    return found[0]
