"""The worker processes of a server: started, restarted when they end, and shut down with it."""

import asyncio
import os
import sys
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

import structlog

from outlast.backoff import growing
from outlast.variables import PREFIX

log = structlog.get_logger("outlast.supervisor")

_FIRST_WAIT = 0.5
_LONGEST_WAIT = 10.0
_STABLE_SECONDS = 30.0
"""A worker that ran for so long did not fail at its start: the next one is started after the shortest wait."""


class Supervisor:
    """`async with Supervisor(app, 3):` keeps three workers running.

    A worker exits by itself when the server that started it was killed: its standard input ends then.
    """

    def __init__(self, app: str, size: int, *, database: str | None = None, shutdown_seconds: float) -> None:
        given = [] if database is None else [f"--database={database}"]
        self._command = (sys.executable, "-m", "outlast", "worker", app, *given, "--exit-with-parent")
        self._size = size
        self.public_url: str | None = None
        """Where others reach the server, for its workers."""
        self._shutdown_seconds = shutdown_seconds
        self._shutting_down = asyncio.Event()
        self._processes: set[asyncio.subprocess.Process] = set()
        self._watching: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._watching = [
            asyncio.create_task(self._keep_one(), name=f"worker process {at}") for at in range(self._size)
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        """SIGTERM: they hand over what they run. One that takes too long is killed; what it ran is taken over later."""
        self._shutting_down.set()
        for each in self._processes:
            each.terminate()
        _, late = await asyncio.wait(self._watching, timeout=self._shutdown_seconds)
        for each in self._processes:
            log.warning("a worker did not end in time and is killed", pid=each.pid)
            each.kill()
        if late:
            await asyncio.wait(late)

    def kill(self) -> None:
        """All of them, at once: the next start reports what was interrupted."""
        for each in self._processes:
            with suppress(ProcessLookupError):
                each.kill()

    async def _keep_one(self) -> None:
        waits = growing(_FIRST_WAIT, _LONGEST_WAIT)
        while not self._shutting_down.is_set():
            began = time.monotonic()
            try:
                code = await self._run_one()
            except OSError as exc:  # no memory or no process to be had: there may be, later
                log.error("a worker could not be started", error=repr(exc))
                code = None
            if self._shutting_down.is_set():
                return
            if time.monotonic() - began > _STABLE_SECONDS:
                waits = growing(_FIRST_WAIT, _LONGEST_WAIT)
            wait = next(waits)
            log.warning("a worker ended; another one is started", exit_code=code, wait_seconds=wait)
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._shutting_down.wait()

    async def _run_one(self) -> int:
        # In a session of its own: else Ctrl-C would reach it too, and the server's SIGTERM would be its second signal.
        known = {} if self.public_url is None else {f"{PREFIX}PUBLIC_URL": self.public_url}
        process = await asyncio.create_subprocess_exec(
            *self._command, stdin=asyncio.subprocess.PIPE, start_new_session=True, env={**os.environ, **known}
        )
        self._processes.add(process)
        try:
            if self._shutting_down.is_set():
                process.terminate()
            return await process.wait()
        finally:
            self._processes.discard(process)
