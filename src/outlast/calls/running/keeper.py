"""Keeping a user's toolset open while calls of it are parked, although its run has ended."""

import asyncio
from dataclasses import dataclass, field
from typing import Any, Self

import structlog
from pydantic_ai.toolsets import AbstractToolset, WrapperToolset

from outlast.containment import as_error
from outlast.values.redact import last_line

log = structlog.get_logger("outlast.calls")


@dataclass(slots=True)
class ToolsetKeeper:
    """One per run. Closing is delayed until every kept call has ended."""

    kept: set[asyncio.Task[Any]] = field(default_factory=set[asyncio.Task[Any]])

    def keep(self, inner: asyncio.Task[Any]) -> None:
        self.kept.add(inner)

    def around(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        """The toolset itself when closing it cannot harm a call; else one that is closed in time."""
        leaves: list[AbstractToolset[Any]] = []
        toolset.apply(leaves.append)
        if all(type(leaf).__aexit__ is AbstractToolset.__aexit__ or _counts_its_users(leaf) for leaf in leaves):
            return toolset
        return KeptToolset(toolset, self)

    async def all_ended(self) -> None:
        while pending := {each for each in self.kept if not each.done()}:
            await asyncio.wait(pending)


def _counts_its_users(toolset: AbstractToolset[Any]) -> bool:
    """pydantic-ai's own toolsets hold a reference for each call and close with the last one."""
    return type(toolset).__module__.startswith("pydantic_ai.")


@dataclass
class KeptToolset(WrapperToolset[Any]):
    """Enters and leaves the wrapped toolset in one asyncio task of its own, so that leaving can wait."""

    keeper: ToolsetKeeper
    _leave: asyncio.Event = field(default_factory=asyncio.Event, repr=False)
    _keeping: asyncio.Task[None] | None = field(default=None, repr=False)

    async def __aenter__(self) -> Self:
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._keeping = asyncio.create_task(self._keep(ready), name="toolset keeper")
        await ready
        return self

    async def __aexit__(self, *args: Any) -> bool | None:
        self._leave.set()
        if self._keeping is not None and all(each.done() for each in self.keeper.kept):
            await asyncio.wait({self._keeping})
        return None

    async def _keep(self, ready: asyncio.Future[None]) -> None:
        try:
            async with self.wrapped:
                ready.set_result(None)
                await self._leave.wait()
                await self.keeper.all_ended()
        except asyncio.CancelledError:
            if ready.done():
                raise
            ready.set_exception(RuntimeError("a toolset cancelled its own opening"))
        except BaseException as exc:
            if ready.done():
                log.error("a toolset did not close cleanly", toolset=self.wrapped.label, error=last_line(as_error(exc)))
            else:
                ready.set_exception(as_error(exc))
