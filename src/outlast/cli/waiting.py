"""Why a turn waits, said where somebody looks at it: silence would look like work."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress

from outlast.backoff import growing
from outlast.client import Client
from outlast.client.session import Session
from outlast.errors import Forbidden, OutlastError

_FIRST_SECONDS = 0.5
_LONGEST_SECONDS = 15.0
WORKER = "start one with `outlast worker APP`"


def no_worker(agent: str, living: Iterable[str]) -> str:
    """That no living worker has the agent; `living` are those that some worker has."""
    others = ", ".join(map(repr, sorted(living)))
    return f"no worker has agent {agent!r}" + (f"; workers have {others}" if others else f": {WORKER}")


def paused(by: str | None) -> str:
    return f"the server is paused by {by}: outlast resume"


async def reason(client: Client, session: Session) -> str | None:
    """Why the turn of a session waits, as it was last seen; None if it does not, or only for its place."""
    if session.state != "queued":
        return None
    if session.no_worker_for is not None:
        return no_worker(session.no_worker_for, [each.name for each in await client.agents() if each.has_worker])
    with suppress(Forbidden):  # only admins are told
        pause = await client.paused()
        if pause.is_paused:
            return paused(pause.by)
    report = await client.usage()
    if report.percent is not None and report.percent >= 100:
        return f"today's limit is reached; turns start again at {report.resets_at:%H:%M} UTC"
    return None


class Waiting:
    """Looks now and then, ever less often, whether a turn waits, and says why when that changes."""

    def __init__(self, why: Callable[[], Awaitable[str | None]], say: Callable[[str], None]) -> None:
        self.reason: str | None = None
        """As of the last look."""
        self._why = why
        self._say = say

    @property
    def state(self) -> str:
        """What to say of a turn that is left alone."""
        return "goes on" if self.reason is None else "waits"

    async def look(self) -> None:
        found = await self._why()
        if found is not None and found != self.reason:
            self._say(f"The turn waits: {found}")
        self.reason = found

    async def watch(self) -> None:
        # Whoever follows the session meets the same trouble, and tells of it.
        with suppress(OutlastError):
            for pause in growing(_FIRST_SECONDS, _LONGEST_SECONDS):
                await asyncio.sleep(pause)
                await self.look()

    @asynccontextmanager
    async def watching(self) -> AsyncGenerator[None]:
        task = asyncio.create_task(self.watch(), name="why it waits")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})
