"""Keeping rows small: what is large or binary goes to the file store, and the JSON holds a reference.

A reference is an object with the one key `$file`. Objects of users that happen to look like one are
escaped, so that no stored value can name a file that is not its own.
"""

import base64
from typing import Any, cast

from pydantic_core import from_json, to_json

from outlast.ids import SessionId
from outlast.store.files import FileStore

ROW_BYTES = 256 * 1024
_TEXT_BYTES = 64 * 1024
_PREVIEW = 400
_BINARY_SIGN = b'"kind":"binary"'
_REFERENCE_SIGN = b'"$file"'


async def pack(files: FileStore, session_id: SessionId, body: bytes) -> str:
    """JSON ready for a row: at most 256 KiB, without binary."""
    if len(body) <= _TEXT_BYTES and _BINARY_SIGN not in body and _REFERENCE_SIGN not in body:
        return body.decode()
    packed = to_json(await _pack(files, session_id, from_json(body)))
    if len(packed) > ROW_BYTES:
        key = await files.put(session_id, packed)
        packed = to_json({"$file": {"key": key, "as": "json", "bytes": len(packed)}})
    return packed.decode()


async def unpack(files: FileStore, body: str) -> bytes:
    """The JSON as it was before `pack`."""
    data = body.encode()
    if _REFERENCE_SIGN not in data and b'"$$file"' not in data:
        return data
    return to_json(await _unpack(files, from_json(data)))


async def pack_object(files: FileStore, session_id: SessionId, value: dict[str, Any]) -> dict[str, Any]:
    """The same for a value that is not JSON text yet."""
    body = to_json(value)
    if len(body) <= _TEXT_BYTES and _BINARY_SIGN not in body and _REFERENCE_SIGN not in body:
        return value
    return from_json(await pack(files, session_id, body))


async def unpack_object(files: FileStore, value: dict[str, Any]) -> dict[str, Any]:
    return from_json(await unpack(files, to_json(value).decode()))


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
        if name == "data" and value.get("kind") == "binary" and isinstance(each, str):
            data = base64.urlsafe_b64decode(each)
            key = await files.put(session_id, data)
            packed[name] = {"$file": {"key": key, "as": "base64", "bytes": len(data)}}
        else:
            packed[_escape(name)] = await _pack(files, session_id, each)
    return packed


async def _unpack(files: FileStore, value: Any) -> Any:
    if isinstance(value, list):
        return [await _unpack(files, each) for each in cast(list[Any], value)]
    if not isinstance(value, dict):
        return value
    fields = cast(dict[str, Any], value)
    if "$file" in fields:
        return await _fetch(files, fields["$file"])
    return {_unescape(name): await _unpack(files, each) for name, each in fields.items()}


async def _fetch(files: FileStore, reference: dict[str, Any]) -> Any:
    data = await files.get(reference["key"])
    match reference["as"]:
        case "text":
            return data.decode()
        case "base64":
            return base64.urlsafe_b64encode(data).decode()
        case _:
            return await _unpack(files, from_json(data))


def _escape(name: str) -> str:
    return f"${name}" if name.startswith("$") and name.lstrip("$") == "file" else name


def _unescape(name: str) -> str:
    return name[1:] if name.startswith("$$") and name.lstrip("$") == "file" else name
