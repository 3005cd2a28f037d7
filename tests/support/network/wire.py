"""A wire between a client and a server that can be cut, lose an answer, or lead to another server."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

HELLO = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Wire:
    """Passes everything on to `target`. Use `running` to open it."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.url = ""
        self.connections = 0
        self.cuts: Iterator[int] = iter(())
        """After how many bytes of answers each new connection is cut; when it is used up, none is."""
        self.loses_answer_to = b""
        """The next request that contains this is served, and its answer is lost."""
        self.says = b""
        """The next request gets this answer, as if a proxy stood in between."""
        self._open: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._frozen: set[asyncio.StreamWriter] = set()
        self._losing: set[asyncio.StreamWriter] = set()

    def freeze(self) -> None:
        """What is open stays open and says nothing more, as a process that was stopped."""
        self._frozen |= self._writers

    def cut_after(self, sizes: Iterable[int]) -> None:
        """From now on; what is open is cut at once."""
        self.cuts = iter(sizes)
        for writer in self._writers:
            writer.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        current = asyncio.current_task()
        assert current is not None
        self._open.add(current)
        self._writers.add(writer)
        self.connections += 1
        try:
            if self.says:
                said, self.says = self.says, b""
                await reader.readuntil(b"\r\n\r\n")
                writer.write(said)
                await writer.drain()
            else:
                await self._pass_on(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass  # one of the two ends is gone, as the other will see
        finally:
            await _close(writer)
            self._open.discard(current)
            self._writers.discard(writer)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        place = urlsplit(self.target)
        far_reader, far_writer = await asyncio.open_connection(place.hostname, place.port)
        asking = asyncio.create_task(self._ask(reader, writer, far_writer), name="requests")
        answering = asyncio.create_task(self._answer(far_reader, writer, next(self.cuts, None)), name="answers")
        try:
            await asyncio.wait({asking, answering}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in (asking, answering):
                each.cancel()
            await asyncio.gather(asking, answering, return_exceptions=True)
            await _close(far_writer)

    async def _ask(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, far_writer: asyncio.StreamWriter
    ) -> None:
        """Ends the connection when the client does."""
        while data := await reader.read(65_536):
            if self.loses_answer_to and self.loses_answer_to in data:
                self.loses_answer_to = b""
                self._losing.add(writer)
            far_writer.write(data)
            await far_writer.drain()

    async def _answer(self, far_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, most: int | None) -> None:
        """Ends the connection when the server does, or with an answer that is to be lost: the request was served."""
        left = most
        while data := await far_reader.read(65_536):
            if writer in self._losing:
                return
            if writer in self._frozen:
                continue
            writer.write(data if left is None else data[:left])
            await writer.drain()
            if left is not None:
                left -= len(data)
                if left <= 0:
                    return

    async def ended(self) -> None:
        if self._open:
            await asyncio.wait(self._open)


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


@asynccontextmanager
async def running(target: str) -> AsyncGenerator[Wire]:
    wire = Wire(target)
    server = await asyncio.start_server(wire.serve, "127.0.0.1", 0)
    wire.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield wire
    finally:
        server.close()
        await server.wait_closed()
        await wire.ended()
