"""Keeping rows small: what is large or binary goes to the file store, and the JSON holds a reference.

A reference is an object with the one key `$file`. Objects of users that happen to look like one are
escaped, so that no stored value can name a file that is not its own.
"""

import base64
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic_core import from_json, to_json

from outlast.ids import SessionId
from outlast.store.files.file_store import FileStore
from outlast.values import row_json

ROW_BYTES = 256 * 1024
_TEXT_BYTES = 64 * 1024
_PREVIEW = 400
_BINARY_SIGN = b'"kind":"binary"'
_REFERENCE_SIGN = b'$file"'  # also at the end of an escaped name


async def pack(files: FileStore, session_id: SessionId, body: bytes) -> str:
    """JSON ready for a row: at most 256 KiB, without binary."""
    if _is_small(body):
        return body.decode()
    packed = to_json(await _pack(files, session_id, from_json(body)))
    if len(packed) > ROW_BYTES:
        packed = to_json(await _put_json(files, session_id, packed))
    return packed.decode()


def is_packed(body: str) -> bool:
    """Whether some of it may stand elsewhere."""
    return _REFERENCE_SIGN.decode() in body


async def unpack(files: FileStore, body: str) -> bytes:
    """The JSON as it was before `pack`."""
    data = body.encode()
    if _REFERENCE_SIGN not in data:
        return data
    return to_json(await _unpack(files, from_json(data)))


@dataclass(slots=True)
class Room:
    """How many bytes may still be put back in place; what did not fit is listed."""

    left: int
    where: str = ""
    left_out: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def takes(self, reference: dict[str, Any]) -> bool:
        size: int = reference["bytes"]
        if size <= self.left:
            self.left -= size
            return True
        self.left_out.append({"where": self.where, "bytes": size})
        return False


async def unpack_within(files: FileStore, body: str, room: Room) -> bytes:
    """The same as far as there is room: a text or binary that does not fit is replaced by words that say so."""
    data = body.encode()
    if _REFERENCE_SIGN not in data:
        return data
    return to_json(await _unpack(files, from_json(data), room))


async def pack_object(files: FileStore, session_id: SessionId, value: dict[str, Any]) -> dict[str, Any]:
    """The same for the data of an event. Its small fields stay in place: readers look for them there."""
    value, encoded = row_json.written(value)
    body = encoded.encode()
    if _is_small(body):
        return value
    packed: dict[str, Any] = await _pack(files, session_id, from_json(body))
    sizes = {name: len(to_json(each)) for name, each in packed.items()}
    total = len(to_json(packed))
    for name in sorted(sizes, key=sizes.__getitem__, reverse=True):
        if total <= ROW_BYTES:
            break
        packed[name] = await _put_json(files, session_id, to_json(packed[name]))
        total += len(to_json(packed[name])) - sizes[name]
    return packed


async def unpack_object(files: FileStore, value: dict[str, Any]) -> dict[str, Any]:
    return from_json(await unpack(files, to_json(value).decode()))


def _is_small(body: bytes) -> bool:
    return len(body) <= _TEXT_BYTES and _BINARY_SIGN not in body and _REFERENCE_SIGN not in body


async def _put_json(files: FileStore, session_id: SessionId, packed: bytes) -> dict[str, Any]:
    key = await files.put(session_id, packed)
    preview = packed[:_PREVIEW].decode(errors="ignore")
    return {"$file": {"key": key, "as": "json", "bytes": len(packed), "preview": preview}}


async def _pack(files: FileStore, session_id: SessionId, value: Any) -> Any:
    if isinstance(value, str) and len(value) > _TEXT_BYTES:
        data = value.encode()
        key = await files.put(session_id, data)
        return {"$file": {"key": key, "as": "text", "bytes": len(data), "preview": value[:_PREVIEW]}}
    if isinstance(value, list):
        return [await _pack(files, session_id, each) for each in cast(list[Any], value)]
    if isinstance(value, dict):
        return await _pack_object(files, session_id, cast(dict[str, Any], value))
    return value


async def _pack_object(files: FileStore, session_id: SessionId, value: dict[str, Any]) -> dict[str, Any]:
    packed: dict[str, Any] = {}
    for name, each in value.items():
        data = _binary(each) if name == "data" and value.get("kind") == "binary" else None
        if data is not None:
            key = await files.put(session_id, data)
            packed[name] = {"$file": {"key": key, "as": "base64", "bytes": len(data)}}
        else:
            packed[_escape(name)] = await _pack(files, session_id, each)
    return packed


def _binary(value: Any) -> bytes | None:
    """The bytes of a binary part. None for data of users that only looks like one: it must come back as it was."""
    if not isinstance(value, str):
        return None
    try:
        data = base64.urlsafe_b64decode(value)
    except ValueError:
        return None
    return data if base64.urlsafe_b64encode(data).decode() == value else None


async def _unpack(files: FileStore, value: Any, room: Room | None = None) -> Any:
    if isinstance(value, list):
        return [await _unpack(files, each, room) for each in cast(list[Any], value)]
    if not isinstance(value, dict):
        return value
    fields = cast(dict[str, Any], value)
    if "$file" in fields:
        return await _fetch(files, fields["$file"], room)
    binary = fields["data"].get("$file") if isinstance(fields.get("data"), dict) else None
    if room is not None and binary is not None and binary["as"] == "base64" and not room.takes(binary):
        return f"[a file of {binary['bytes']} bytes was left out: {fields.get('media_type')}]"
    return {_unescape(name): await _unpack(files, each, room) for name, each in fields.items()}


async def _fetch(files: FileStore, reference: dict[str, Any], room: Room | None) -> Any:
    if room is not None and reference["as"] == "text" and not room.takes(reference):
        return f"{reference['preview']}… [the rest of {reference['bytes']} bytes was left out]"
    data = await files.get(reference["key"])
    match reference["as"]:
        case "text":
            return data.decode()
        case "base64":
            return base64.urlsafe_b64encode(data).decode()
        case _:
            return await _unpack(files, from_json(data), room)


def _escape(name: str) -> str:
    return f"${name}" if name.startswith("$") and name.lstrip("$") == "file" else name


def _unescape(name: str) -> str:
    return name[1:] if name.startswith("$$") and name.lstrip("$") == "file" else name
