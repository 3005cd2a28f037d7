"""What stays with a message: the page it was written on, and files."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_ai.messages import BinaryContent, UserContent

from outlast.calls.within.files import content_type
from outlast.errors import InvalidInput
from outlast.ids import SessionId, file_id, file_key
from outlast.store.files.file_store import FileStore
from outlast.store.files.spill import pack_object
from outlast.store.repositories.files import NewFile
from outlast.values import file_name
from outlast.values.check import check_characters
from outlast.wire.attachment import Attachment, Context

MAX_URL = 2_000
MAX_CONTENT = 32_000
MAX_FILES = 20
MAX_SHOWN = 5 * 1024 * 1024
"""Bytes of a file that models are shown; larger ones are refused by most of them."""
_SHOWN = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"})


async def body_of(
    files_store: FileStore,
    session_id: SessionId,
    *,
    context: Context | None,
    files: Sequence[Attachment],
    model: str | None,
) -> dict[str, Any]:
    """Check and keep what comes with a message; files are stored before the message that names them.

    Images and documents are beside its text, as the model gets them; the others are only named to it.
    """
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
        shown = [_content(each) for each in files if is_shown(each)]
        if shown:
            plain = {"content": content_type().dump_python(shown, mode="json")}
            body["content"] = (await pack_object(files_store, session_id, plain))["content"]
    if model is not None:
        body["model"] = model
    return body


def is_shown(file: Attachment) -> bool:
    """Whether a model that can take it is shown the file itself."""
    return file_name.fitting_type(file.media_type) in _SHOWN and 0 < len(file.data) <= MAX_SHOWN


def _content(file: Attachment) -> UserContent:
    return BinaryContent(file.data, media_type=file_name.fitting_type(file.media_type))


def named(body: Mapping[str, Any], *, by: str) -> list[NewFile]:
    """The files of a message, as files of its session."""
    return [
        NewFile(
            file_name.fitting(each["name"]),
            file_key(each["id"]),
            file_name.fitting_type(each["media_type"]),
            each["bytes"],
            "message",
            by,
        )
        for each in body.get("files", ())
    ]
