"""What stays with a message: the page it was written on, and files."""

from collections.abc import Sequence
from typing import Any

from outlast.errors import InvalidInput
from outlast.ids import SessionId, file_id
from outlast.store.files.file_store import FileStore
from outlast.values.check import check_characters
from outlast.wire.attachment import Attachment, Context

MAX_URL = 2_000
MAX_CONTENT = 32_000
MAX_FILES = 20


async def body_of(
    files_store: FileStore,
    session_id: SessionId,
    *,
    context: Context | None,
    files: Sequence[Attachment],
    model: str | None,
) -> dict[str, Any]:
    """Check and keep what comes with a message; files are stored before the message that names them."""
    body: dict[str, Any] = {}
    if context is not None:
        if len(context.content) > MAX_CONTENT or len(context.url or "") > MAX_URL:
            raise InvalidInput(f"The context is too long: at most {MAX_CONTENT} characters, and {MAX_URL} of URL.")
        check_characters(context.content + (context.url or ""), "context")
        body["context"] = {"content": context.content, "url": context.url}
    if len(files) > MAX_FILES:
        raise InvalidInput(f"{len(files)} files are too many for one message: at most {MAX_FILES}.")
    for each in files:
        check_characters(each.name + each.media_type, "name of a file")
    if files:
        body["files"] = [
            {
                "id": file_id(await files_store.put(session_id, each.data)),
                "name": each.name,
                "media_type": each.media_type,
                "bytes": len(each.data),
            }
            for each in files
        ]
    if model is not None:
        body["model"] = model
    return body
