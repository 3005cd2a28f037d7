"""The worker processes beside a server: started, started again when they end, and told to leave with it."""

import asyncio
import sys
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

import structlog

log = structlog.get_logger("outlast.crew")

_FIRST_WAIT = 0.5
_LONGEST_WAIT = 10.0
_SETTLED_SECONDS = 30.0
"""A worker that ran for so long did not fail at its start: the next one is started without a long wait."""


class Crew:
    """`async with Crew(app, 3):` keeps three workers running. Killed with the server, they leave by themselves."""

    def __init__(self, app: str, size: int, *, database: str | None = None, leave_seconds: float) -> None:
        given = [] if database is None else [f"--database={database}"]
        self._command = (sys.executable, "-m", "outlast", "worker", app, *given, "--leave-with-parent")
        self._size = size
        self._leave_seconds = leave_seconds
        self._leaving = asyncio.Event()
        self._members: set[asyncio.subprocess.Process] = set()
        self._watching: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._watching = [asyncio.create_task(self._keep(), name=f"worker process {at}") for at in range(self._size)]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        """They hand over what they run; one that takes too long is killed, and others notice."""
        self._leaving.set()
        for each in self._members:
            each.terminate()
        _, late = await asyncio.wait(self._watching, timeout=self._leave_seconds)
        for each in self._members:
            log.warning("a worker did not leave in time", pid=each.pid)
            each.kill()
        if late:
            await asyncio.wait(late)

    def kill(self) -> None:
        """At once: whoever is there next tells what was interrupted."""
        for each in self._members:
            with suppress(ProcessLookupError):
                each.kill()

    async def _keep(self) -> None:
        wait = _FIRST_WAIT
        while not self._leaving.is_set():
            began = time.monotonic()
            try:
                code = await self._run_one()
            except OSError as exc:  # no memory or no process to be had: there may be, later
                log.error("a worker could not be started", error=repr(exc))
                code = None
            if self._leaving.is_set():
                return
            wait = _FIRST_WAIT if time.monotonic() - began > _SETTLED_SECONDS else min(wait * 2, _LONGEST_WAIT)
            log.warning("a worker ended; another one is started", exit_code=code, wait_seconds=wait)
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._leaving.wait()

    async def _run_one(self) -> int:
        # In a session of its own: Ctrl-C would reach it too, and the server's word after it would be the second one.
        member = await asyncio.create_subprocess_exec(
            *self._command, stdin=asyncio.subprocess.PIPE, start_new_session=True
        )
        self._members.add(member)
        try:
            if self._leaving.is_set():
                member.terminate()
            return await member.wait()
        finally:
            self._members.discard(member)
