"""Files, as they were kept: to their owner alone, and never as a page of this server."""

import re
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Header, Query, Request, Response

from outlast.api.admission import RawRoute
from outlast.api.wiring import COMMON, DECIDED, FOUND, Limit, OwnFiles, OwnSession
from outlast.handles.files import StoredFile
from outlast.values.file_name import BINARY
from outlast.wire.file import FileAnswer
from outlast.wire.forms import ListOf

router = APIRouter(tags=["files"], responses=COMMON, route_class=RawRoute)

_SHOWN = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "text/plain"})
"""What a browser may show in place; everything else is saved."""
_RANGE = re.compile(r"(?a)bytes=(\d{0,18})-(\d{0,18})")
_UNSAFE = re.compile(r"(?a)[^\w .()+-]")
_BINARY = {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}

Range = Annotated[str | None, Header(alias="Range", max_length=200, description="One range, such as `bytes=0-1023`.")]
Plain = Annotated[str | None, Header(include_in_schema=False)]


@router.post(
    "/sessions/{session_id}/files",
    status_code=201,
    responses=FOUND,
    openapi_extra={"requestBody": {"description": "The bytes, as they are.", "required": True, **_BINARY}},
)
async def upload_file(
    request: Request,
    session: OwnSession,
    name: Annotated[str, Query(min_length=1, max_length=1_000, description="What it is called: a name, not a path.")],
) -> FileAnswer:
    """Keep a file with a session; its type is the `Content-Type`. If its name is taken, it gets a number behind it."""
    media_type = request.headers.get("content-type") or BINARY
    return await session.files.add(name, await request.body(), media_type)


@router.get("/sessions/{session_id}/files", responses=FOUND)
async def list_files(
    session: OwnSession,
    after: Annotated[str, Query(max_length=1_000, description="`next` of the page before.")] = "",
    limit: Limit = 100,
) -> ListOf[FileAnswer]:
    """The files of a session by name: those that people gave, those of messages, and those that tools made."""
    page = await session.files.page(after=after, limit=limit)
    return ListOf(items=list(page.items), next=page.next)


@router.delete("/files/{file_id}", status_code=204, responses=DECIDED)
async def delete_file(files: OwnFiles, file_id: str) -> None:
    """Delete a file that a person or a tool put there. Those of messages and calls stay as long as their session."""
    await files.delete(file_id)


@router.get(
    "/files/{file_id}",
    response_class=Response,
    responses={
        **FOUND,
        200: {"description": "The file.", **_BINARY},
        206: {"description": "The range of it that was asked for.", **_BINARY},
        304: {"description": "The one with this `ETag` is still the same."},
        416: {"description": "It has no such range."},
    },
)
async def get_file(
    files: OwnFiles, file_id: str, range: Range = None, if_range: Plain = None, if_none_match: Plain = None
) -> Response:
    """A file of a message, a call, a task, or a value that was too large for its place."""
    return answer(await files.get(file_id), asked=range, if_range=if_range, if_none_match=if_none_match)


@router.head("/files/{file_id}", include_in_schema=False)
async def look_at_file(
    files: OwnFiles, file_id: str, range: Range = None, if_range: Plain = None, if_none_match: Plain = None
) -> Response:
    return answer(await files.get(file_id), asked=range, if_range=if_range, if_none_match=if_none_match)


def answer(
    file: StoredFile, *, asked: str | None = None, if_range: str | None = None, if_none_match: str | None = None
) -> Response:
    """With a name and a type that can do nothing; of several ranges at once, the whole."""
    tag, size = f'"{file.id[-64:]}"', file.bytes
    headers = {
        "Content-Disposition": disposition(file),
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "private, no-cache",
        "Accept-Ranges": "bytes",
        "ETag": tag,
    }
    if if_none_match is not None and tag in if_none_match:
        return Response(status_code=304, headers=headers)
    media_type = f"{file.media_type}; charset=utf-8" if file.media_type.startswith("text/") else file.media_type
    found = None if asked is None or if_range not in (None, tag) else _RANGE.fullmatch(asked.strip())
    if found is None or not (found[1] or found[2]):
        return Response(file.data, headers={**headers, "Content-Type": media_type})
    first, last = _bounds(found[1], found[2], size)
    if first >= size or last < first:
        return Response(status_code=416, headers={**headers, "Content-Range": f"bytes */{size}"})
    told = {"Content-Type": media_type, "Content-Range": f"bytes {first}-{last}/{size}"}
    return Response(file.data[first : last + 1], status_code=206, headers={**headers, **told})


def _bounds(first: str, last: str, size: int) -> tuple[int, int]:
    if not first:
        return (max(0, size - int(last)), size - 1) if int(last) else (size, size)
    return int(first), min(int(last), size - 1) if last else size - 1


def disposition(file: StoredFile) -> str:
    """A name for headers: the plain one without what a header or a file system might take otherwise."""
    name = (file.name or file.id).replace("\\", "/").rpartition("/")[2].strip(". ") or file.id
    name = "".join(each for each in name if each.isprintable())[:150] or file.id
    how = "inline" if file.media_type in _SHOWN else "attachment"
    plain = _UNSAFE.sub("_", name)
    return f"{how}; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='', errors='replace')}"
