"""What the model is shown of a large result: the beginning, how much there is, and how to read on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_ai.messages import UserContent
from pydantic_core import to_json

from outlast.calls.call import RunningCall
from outlast.calls.within.files import content_type
from outlast.store.database import retry_while_unavailable
from outlast.store.files.file_store import FileStore
from outlast.store.files.spill import pack_object

LARGEST = 64 * 1024
_SHOWN = 8 * 1024


@dataclass(frozen=True, slots=True)
class Viewed:
    """`value` goes to the model and the log; `file` holds the whole text when it was too long."""

    value: Any
    file: str | None = None
    characters: int = 0
    content: Sequence[Any] = ()
    """What goes to the model beside the value, as JSON: files, and words of the tool."""


class Viewer:
    def __init__(self, files: FileStore) -> None:
        self._files = files

    async def view(self, call: RunningCall, value: Any) -> Viewed:
        """A small value as it is; of a large text its beginning. Waits for a file store that is away."""
        if value is None or isinstance(value, bool | int | float):
            return Viewed(value)
        text = value if isinstance(value, str) else to_json(value).decode()
        if len(text) <= LARGEST:
            return Viewed(value)
        file = await retry_while_unavailable(lambda: self._files.put(call.session_id, text.encode()))
        return Viewed(beginning_of(text, call.call_id), file, len(text))

    async def keep(self, call: RunningCall, content: Sequence[UserContent]) -> list[Any]:
        """Files, and words beside a result, as JSON for a row. Waits for a file store that is away."""
        plain = {"content": content_type().dump_python(list(content), mode="json")}
        return (await retry_while_unavailable(lambda: pack_object(self._files, call.session_id, plain)))["content"]


def beginning_of(text: str, id: str) -> dict[str, Any]:
    """What stands for a text that is too long. `id`: of the call or task whose result it is."""
    return {
        "truncated": True,
        "bytes_total": len(text.encode()),
        "characters_total": len(text),
        "next_offset": _SHOWN,
        "text": text[:_SHOWN],
        "message": f"Read the rest with read_output(id={id!r}, offset={_SHOWN}, what='result').",
    }
