"""A tool's code: started so that it finds its call, its true end, and what it said kept within a bounded time."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from datetime import timedelta
from typing import Any

from outlast import trace
from outlast.calls.call import RunningCall, current_call
from outlast.calls.within.channel import CallChannel
from outlast.containment import Contained


def really(call: RunningCall, inner: asyncio.Task[Any]) -> asyncio.Task[Any] | Future[Any]:
    """Where the true end of a call is: a sync tool's thread ends as it ends, though its await was cancelled."""
    thread = call.own_thread
    return thread if inner.cancelled() and thread is not None and not thread.cancelled() else inner


def start(running: RunningCall, handler: Callable[[Any], Any], args: Any) -> asyncio.Task[Any]:
    """Run a tool so that its code finds the call it belongs to."""
    token = current_call.set(running)
    try:
        run = trace.traced(running.tool, running.call_id, _contained(running, handler))
        running.inner = asyncio.create_task(run(args), name=f"call {running.tool} {running.call_id}")
    finally:
        current_call.reset(token)
    return running.inner


def _contained(running: RunningCall, handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Asks also before what the agent's capabilities do around its tools. Whatever it raises is this call's error."""

    async def run(args: Any) -> Any:
        with Contained():
            await running.ask()
            return await handler(args)

    return run


async def close(running: RunningCall) -> None:
    if isinstance(running.channel, CallChannel):
        await running.channel.close()


async def closed(running: RunningCall, patience: timedelta) -> None:
    """All that the call said is kept, also when this is cancelled meanwhile, if that does not take too long."""
    if isinstance(running.channel, CallChannel) and running.channel.is_used:
        closing = asyncio.create_task(close(running), name=f"close {running.call_id}")
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            await bounded_wait({closing}, patience)
            closing.cancel()
            raise


async def within(work: Coroutine[Any, Any, object], name: str, patience: timedelta) -> BaseException | None:
    """To its end, whoever cancels meanwhile, if that does not take too long. Gives what kept it from its end."""
    task = asyncio.create_task(work, name=name)
    await bounded_wait({task}, patience)
    task.cancel()
    (came_to,) = await asyncio.gather(task, return_exceptions=True)
    return came_to if isinstance(came_to, BaseException) else None


async def bounded_wait(waited: set[Any], limit: timedelta) -> None:
    """Wait for all, at most this long, whoever cancels meanwhile."""
    loop = asyncio.get_running_loop()
    end = loop.time() + limit.total_seconds()
    while loop.time() < end:
        try:
            await asyncio.wait(waited, timeout=end - loop.time())
        except asyncio.CancelledError:
            continue
        return
