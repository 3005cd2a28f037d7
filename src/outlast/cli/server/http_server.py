"""The HTTP server of a process: says where it is once it can be reached, and ends gracefully."""

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from types import FrameType

import uvicorn
from rich.console import Console

from outlast.api.auth import Principal
from outlast.cli.app_file import AnyOutlast
from outlast.cli.server.listening import address_of
from outlast.cli.server.shutdown import ShutdownSignals
from outlast.cli.server_file import ServerFile
from outlast.errors import StoreUnavailable
from outlast.runtime import LOCAL_OWNER
from outlast.store.repositories.keys import Key
from outlast.values.sparse import SparseFilter

_RETRY_SECONDS = 0.2
_INCOMPLETE_RESPONSE = "ASGI callable returned without completing response."


class Server(uvicorn.Server):
    """Prints its address once it can be reached, and writes the file in which the other commands find it."""

    def __init__(
        self,
        config: uvicorn.Config,
        outlast: AnyOutlast,
        listening: socket.socket,
        console: Console,
        advice: Callable[[str, ServerFile], Sequence[str]],
        signals: ShutdownSignals,
    ) -> None:
        super().__init__(config)
        self._signals = signals
        self._advice = advice
        self._outlast = outlast
        self._listening = listening
        self._console = console
        for each in (self._is_news, SparseFilter()):
            logging.getLogger("uvicorn.error").addFilter(each)

    def _is_news(self, record: logging.LogRecord) -> bool:
        """That streams break off is what stopping means: their readers go on after the next start."""
        return not (self.should_exit and record.getMessage() == _INCOMPLETE_RESPONSE)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """A signal ends the server and not the process: the runtime then hands its turns over. A second one forces it.

        The handlers stay when the server has ended: the rest of the shutdown may take a while.
        """
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, self.handle_exit)
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._signals.received(sig)
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        while self.started and not self.should_exit:
            try:
                await self._announce()
            except StoreUnavailable:
                # It answers already, and says so: whoever started it hears of it when the database is back.
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                break

    async def _announce(self) -> None:
        url = address_of(self._listening)
        place = ServerFile.beside(self._outlast.path)
        key, token = await self._token(place)
        place.write(url, token)
        local = Principal(LOCAL_OWNER, "admin", "write", "local", key_id=key.id)
        link = self.config.app.state.logins.make(local)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType, reportAttributeAccessIssue, reportFunctionMemberAccess]
        self._console.print(f"Outlast serves {', '.join(self._outlast.agents)} at {url}/#token={link}", soft_wrap=True)
        self._console.print(f"  key for other programs: in {place.path}", soft_wrap=True)
        for line in self._advice(url, place):
            self._console.print(line, soft_wrap=True)

    async def _token(self, place: ServerFile) -> tuple[Key, str]:
        """The same key as last time if it still opens: who uses it need not notice a restart."""
        known = place.read()
        found = None if known is None else await self._outlast.keys.find(known.token)
        if known is not None and found is not None:
            return found, known.token
        return await self._outlast.keys.make(LOCAL_OWNER, "local server", role="admin")
