"""A receiver of webhooks on this machine that answers as a test wants."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import from_json

Answer = Callable[[int], bytes | None]
"""What to answer to the nth message, from 0; None: nothing at all."""
NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"


def answering(status: int, headers: str = "") -> bytes:
    return f"HTTP/1.1 {status} So\r\n{headers}Content-Length: 0\r\n\r\n".encode()


@dataclass
class Message:
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return from_json(self.body)


@dataclass
class Receiver:
    url: str
    heard: list[Message] = field(default_factory=list[Message])
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def has(self, count: int) -> list[Message]:
        """Wait until so many messages have come."""
        async with asyncio.timeout(20):
            while len(self.heard) < count:
                self.news.clear()
                await self.news.wait()
        return self.heard


@asynccontextmanager
async def receiving(answer: Answer = lambda _: NO_CONTENT, *, slowly: bool = False) -> AsyncGenerator[Receiver]:
    """`slowly`: after its answer it says a byte now and then, and never ends."""
    hanging: set[asyncio.StreamWriter] = set()
    serving: set[asyncio.Task[None]] = set()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.create_task(closed_after(reader, writer), name="receiver"))

    async def closed_after(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        finally:
            if writer not in hanging:
                writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[1:]
        headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in head if each)}
        body = await reader.readexactly(int(headers["content-length"]))
        receiver.heard.append(Message(headers, body))
        receiver.news.set()
        said = answer(len(receiver.heard) - 1)
        if said is None:
            hanging.add(writer)
            return
        writer.write(said)
        await writer.drain()
        while slowly and not writer.is_closing():
            await asyncio.sleep(0.02)
            writer.write(b"x")

    server = await asyncio.start_server(begin, "127.0.0.1", 0)
    receiver = Receiver(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook")
    async with server:
        yield receiver
        for each in hanging:
            each.close()
        for each in serving:
            each.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
