"""A line between a browser and a server that can be put to sleep, as a laptop's is: nobody is told that it is dead."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress


class Line:
    """Passes bytes on, both ways. What was open when it fell asleep stays deaf for ever, without being closed."""

    def __init__(self, port: int) -> None:
        self.url = ""
        self.opened = 0
        """Connections that were opened so far."""
        self._far_port = port
        self._awake = asyncio.Event()
        self._awake.set()
        self._sleeps = 0
        self._open: set[asyncio.Task[None]] = set()

    def sleep(self) -> None:
        self._sleeps += 1
        self._awake.clear()

    def wake(self) -> None:
        """New connections go through again."""
        self._awake.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        current = asyncio.current_task()
        assert current is not None
        self._open.add(current)
        self.opened += 1
        try:
            await self._awake.wait()
            born = self._sleeps
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._far_port)
            back = asyncio.create_task(self._pass_on(far_reader, writer, born))
            try:
                await self._pass_on(reader, far_writer, born)
            finally:
                back.cancel()
                await asyncio.wait({back})
                far_writer.close()
        finally:
            writer.close()
            self._open.discard(current)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, born: int) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                if self._sleeps == born:
                    writer.write(data)
                    await writer.drain()

    async def end(self) -> None:
        for each in self._open:
            each.cancel()
        if self._open:
            await asyncio.wait(self._open)


@asynccontextmanager
async def line_to(port: int) -> AsyncGenerator[Line]:
    """A line to a port of this machine, and the address at its near end."""
    line = Line(port)
    server = await asyncio.start_server(line.serve, "127.0.0.1", 0)
    line.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield line
    finally:
        server.close()
        await line.end()
