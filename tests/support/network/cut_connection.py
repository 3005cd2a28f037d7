"""A wire to PostgreSQL that can be cut at the worst moment: when a commit is on its way, or its answer."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Literal

import sqlalchemy as sa

Cut = Literal["commit", "answer"]


class Wire:
    """Passes everything on. `cut` names what the next commit loses: itself, or its answer."""

    def __init__(self, server: Path) -> None:
        self.cut: Cut | None = None
        self.cuts = 0
        self._server = server
        self._open: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        current = asyncio.current_task()
        assert current is not None
        self._open.add(current)
        far_reader, far_writer = await asyncio.open_unix_connection(self._server)
        answers = asyncio.create_task(_pass_on(far_reader, writer))
        try:
            while data := await reader.read(65_536):
                if self.cut is not None and b"COMMIT" in data:
                    await self._lose(data, far_writer, answers)
                    return
                far_writer.write(data)
                await far_writer.drain()
        finally:
            answers.cancel()
            await asyncio.wait({answers})
            for each in (writer, far_writer):
                each.close()
                with suppress(OSError):
                    await each.wait_closed()
            self._open.discard(current)

    async def _lose(self, data: bytes, far_writer: asyncio.StreamWriter, answers: asyncio.Task[None]) -> None:
        what, self.cut = self.cut, None
        self.cuts += 1
        answers.cancel()
        await asyncio.wait({answers})
        if what == "answer":
            far_writer.write(data)
            await far_writer.drain()

    async def ended(self) -> None:
        if self._open:
            await asyncio.wait(self._open)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until the far side ends; then this side ends too."""
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def wire_to(url: str) -> AsyncGenerator[tuple[Wire, str]]:
    """A wire, and the URL by which the same database is reached through it."""
    parsed = sa.make_url(url)
    host = parsed.query["host"]
    assert isinstance(host, str)
    # Not below pytest's own folder: its paths are too long for a socket.
    folder = Path(tempfile.mkdtemp(prefix="outlast-wire-"))
    wire = Wire(Path(host) / ".s.PGSQL.5432")
    server = await asyncio.start_unix_server(wire.serve, folder / ".s.PGSQL.5432")
    try:
        yield wire, parsed.update_query_dict({"host": str(folder)}).render_as_string(hide_password=False)
    finally:
        server.close()
        await wire.ended()
        shutil.rmtree(folder)
