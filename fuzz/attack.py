"""Strangers and one greedy owner at full force, in a process of their own: `python -m fuzz.attack URL KEY SECONDS`."""

import asyncio
import json
import random
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

_LARGE = 16 * 1024 * 1024 - 1_024
_SILENT, _STREAMS = 400, 600
_PIECE = 256 * 1024
_MESSAGES, _IMPORTS = 19_000, 12


def _document() -> bytes:
    """As many tiny messages as are taken: each has to be checked."""
    part = {"part_kind": "user-prompt", "content": "x", "timestamp": "2026-01-01T00:00:00Z"}
    said = [{"message": {"kind": "request", "parts": [part]}}] * _MESSAGES
    return json.dumps({"format": "outlast.session/1", "session": {}, "messages": said}).encode()


_IMPORT = _document()


class Attack:
    """Counts what it was answered, by kind."""

    def __init__(self, url: str, key: str) -> None:
        place = urlsplit(url)
        self._host, self._port = place.hostname or "", place.port or 0
        self._key = f"Authorization: Bearer {key}\r\n"
        self.answers: Counter[str] = Counter()

    async def run(self, seconds: float) -> None:
        crew: list[tuple[str, Callable[[], Awaitable[str]], int]] = [
            ("stranger, 16 MB", lambda: self._large(""), 2),
            ("greedy, 16 MB", lambda: self._large(self._key), 2),
            ("stranger, silent", self._silent, _SILENT),
            ("stranger, slow head", self._slow_head, 20),
            ("stranger, wrong key", self._wrong_key, 20),
            ("stranger, login", lambda: self._ask("POST /v1/login", body=b'{"token": "no"}'), 5),
            ("greedy, stream", self._stream, _STREAMS),
            ("greedy, requests", lambda: self._ask("GET /v1/sessions", self._key), 10),
            ("greedy, import", lambda: self._ask("POST /v1/sessions/import", self._key, _IMPORT), _IMPORTS),
            ("greedy, sync calls", self._sync_calls, 8),
            ("stranger, no HTTP", self._nonsense, 2),
        ]
        work = [
            asyncio.create_task(self._again(kind, do, at * 0.002), name=kind)
            for kind, do, count in crew
            for at in range(count)
        ]
        await asyncio.sleep(seconds)
        for each in work:
            each.cancel()
        await asyncio.gather(*work, return_exceptions=True)

    async def _again(self, kind: str, do: Callable[[], Awaitable[str]], first: float) -> None:
        await asyncio.sleep(first)
        while True:
            try:
                answer = await do()
            except (OSError, asyncio.IncompleteReadError, ValueError) as exc:
                answer = type(exc).__name__
                await asyncio.sleep(0.01)
            self.answers[f"{kind}: {answer}"] += 1

    async def _ask(self, what: str, key: str = "", body: bytes = b"") -> str:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            writer.write(self._head(what, key, len(body)) + body)
            status = await _status(reader)
            if len(body) > _PIECE and status != "201":
                await asyncio.sleep(0.2)  # it was refused before it was read
            return status
        finally:
            writer.close()

    def _head(self, what: str, key: str, length: int) -> bytes:
        kind = f"Content-Type: application/json\r\nContent-Length: {length}\r\n" if length else ""
        return f"{what} HTTP/1.1\r\nHost: load\r\n{key}{kind}\r\n".encode()

    async def _large(self, key: str) -> str:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            writer.write(self._head("POST /v1/sessions", key, _LARGE))
            for _ in range(_LARGE // _PIECE):
                writer.write(b'{"a":[' * (_PIECE // 6) + b" " * (_PIECE % 6))
                await writer.drain()
            writer.write(b" " * (_LARGE % _PIECE))
            return await _status(reader)
        finally:
            writer.close()

    async def _silent(self) -> str:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            await reader.read()
            await asyncio.sleep(0.2)
            return "closed"
        finally:
            writer.close()

    async def _slow_head(self) -> str:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            for each in b"GET /v1/sessions HTTP/1.1\r\n" + b"X: y\r\n" * 1_000:
                writer.write(bytes([each]))
                if reader.at_eof():
                    return "closed"
                await asyncio.sleep(0.25)
            return await _status(reader)
        finally:
            writer.close()

    async def _wrong_key(self) -> str:
        key = f"{random.getrandbits(130):026x}"[:26] + "_" + f"{random.getrandbits(256):064x}"
        return await self._ask("GET /v1/sessions", f"Authorization: Bearer olk_{key}\r\n")

    async def _stream(self) -> str:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            writer.write(self._head("GET /v1/events", f"{self._key}Accept: text/event-stream\r\n", 0))
            status = await _status(reader)
            if status == "200":
                await reader.read()
            await asyncio.sleep(0.5)
            return status
        finally:
            writer.close()

    async def _sync_calls(self) -> str:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            writer.write(self._head("POST /v1/sessions", self._key, 2) + b"{}")
            head = await reader.readuntil(b"\r\n\r\n")
            if b" 201 " not in head.split(b"\r\n", 1)[0]:
                await asyncio.sleep(0.2)
                return head.split(b" ", 2)[1].decode()
            length = int(next(line for line in head.lower().split(b"\r\n") if b"content-length" in line).split(b":")[1])
            session = json.loads(await reader.readexactly(length))["id"]
            body = b'{"text": "hold"}'
            writer.write(self._head(f"POST /v1/sessions/{session}/messages", self._key, len(body)) + body)
            return await _status(reader)
        finally:
            writer.close()

    async def _nonsense(self) -> str:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            writer.write(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
            return await _status(reader)
        finally:
            writer.close()


async def _status(reader: asyncio.StreamReader) -> str:
    line = await reader.readline()
    return line.split(b" ", 2)[1].decode() if line.startswith(b"HTTP/") else "closed"


def main() -> None:
    attack = Attack(sys.argv[1], sys.argv[2])
    asyncio.run(attack.run(float(sys.argv[3])))
    print(json.dumps(dict(sorted(attack.answers.items()))))


if __name__ == "__main__":
    main()
