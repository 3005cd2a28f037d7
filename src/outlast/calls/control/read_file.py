"""`read_file`: files of the conversation, in pieces; images and documents as they are."""

from typing import Annotated, Any

from pydantic import Field
from pydantic_ai import Tool
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import BinaryContent

from outlast.calls.control.parts import ControlParts, this_call
from outlast.calls.control.read_output import LONGEST_PIECE
from outlast.ids import SessionId
from outlast.store.database import retry_while_unavailable
from outlast.store.files.session_files import SessionFiles
from outlast.tool_hints import hints

_SHOWN = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"})
_MOST_SHOWN = 5 * 1024 * 1024


def read_file(parts: ControlParts) -> Tool[Any]:
    reader = FileReader(SessionFiles(parts.database, parts.files))

    async def read_file(
        id: Annotated[str, Field(description="Its id, or its name in this conversation.")],
        offset: Annotated[int, Field(ge=0, description="Where to begin, in characters.")] = 0,
        length: Annotated[int, Field(ge=1)] = 8192,
    ) -> Any:
        """Read a file of this conversation: text piece by piece, an image or PDF as it is."""
        return await reader.read(this_call().session_id, id, offset=offset, length=min(length, LONGEST_PIECE))

    return Tool(read_file, takes_ctx=False, metadata=hints(read_only=True, budget=None))


class FileReader:
    """Reads files of the session whose call runs, and nothing else."""

    def __init__(self, files: SessionFiles) -> None:
        self._files = files

    async def read(self, session_id: SessionId, name_or_id: str, *, offset: int, length: int) -> Any:
        row, data = await retry_while_unavailable(lambda: self._files.read(session_id, name_or_id))
        if data is None:
            raise ToolFailed(f"There is no file {name_or_id[:120]!r} in this conversation.")
        if row is not None and row.media_type in _SHOWN and len(data) <= _MOST_SHOWN:
            return BinaryContent(data, media_type=row.media_type)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            kind = "It" if row is None else f"{row.name} ({row.media_type})"
            raise ToolFailed(f"{kind} is no text: {len(data)} bytes that only a tool can read.") from None
        piece: dict[str, Any] = {"text": text[offset : offset + length], "characters_total": len(text)}
        if offset + length < len(text):
            piece["next_offset"] = offset + length
        return piece
