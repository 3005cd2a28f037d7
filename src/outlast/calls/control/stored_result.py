"""What a call came to, from the session's stored messages: the model may no longer be sent it."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

from pydantic_core import from_json, to_json

from outlast.calls.control.parts import ControlParts
from outlast.ids import SessionId
from outlast.store.database import retry_while_unavailable
from outlast.store.files.spill import unpack
from outlast.store.repositories import messages


async def find(parts: ControlParts, session_id: SessionId, call_id: str) -> str | None:
    """As text, or as JSON if it is none; None for a call that has no result here."""
    look = partial(messages.with_result, session_id=session_id, call_id=call_id)
    for row in await parts.read(look):
        body = await retry_while_unavailable(lambda body=row.body: unpack(parts.files, body))
        for part in cast(Sequence[Mapping[str, Any]], from_json(body)["parts"]):
            if part.get("part_kind") == "tool-return" and part.get("tool_call_id") == call_id:
                return _words(part["content"])
    return None


def _words(content: Any) -> str:
    return content if isinstance(content, str) else to_json(_without_bytes(content)).decode()


def _without_bytes(value: Any) -> Any:
    """A file is named: its bytes are nothing that can be read in pieces."""
    if isinstance(value, list):
        return [_without_bytes(each) for each in cast(list[Any], value)]
    if not isinstance(value, dict):
        return value
    fields = cast(dict[str, Any], value)
    if fields.get("kind") == "binary" and "data" in fields:
        return f"[file: {fields.get('media_type')}]"
    return {name: _without_bytes(each) for name, each in fields.items()}
