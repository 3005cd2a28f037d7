"""Slots of tools that say how many calls of them one worker process runs at once."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from pydantic_ai import ToolDefinition

from outlast.calls.call import RunningCall, current_call
from outlast.tool_hints import hints_of


@asynccontextmanager
async def slot_for(tool: ToolDefinition) -> AsyncGenerator[None]:
    """Waits for one, first come, first served. A thread that outlives its call keeps the slot until it has ended."""
    call, most = current_call.get(), hints_of(tool.metadata).concurrency
    if call is None or call.slots is None or most is None:
        yield
        return
    slots = call.slots.setdefault((tool.name, most), asyncio.Semaphore(most))
    await slots.acquire()
    try:
        yield
    finally:
        _release(call, slots)


def _release(call: RunningCall, slots: asyncio.Semaphore) -> None:
    thread, loop = call.own_thread, asyncio.get_running_loop()
    if thread is None or thread.done():
        slots.release()
    else:
        thread.add_done_callback(lambda _: loop.call_soon_threadsafe(slots.release))
