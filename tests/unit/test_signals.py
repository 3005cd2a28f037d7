"""Signals are hints: remembered for whoever waits, and gone with it."""

import asyncio
import gc
import tracemalloc

from outlast.events.signals import LocalSignals


async def test_a_signal_before_the_wait_is_remembered() -> None:
    signals = LocalSignals()
    subscription = signals.subscribe("river")
    signals.publish(["river", "sea"])
    async with asyncio.timeout(20):
        await subscription.wait(seconds=30)


async def test_silence_ends_the_wait_too() -> None:
    """Losing a signal costs latency, never correctness: whoever waits looks again."""
    await LocalSignals().subscribe("river").wait(seconds=0.01)


async def test_everyone_on_a_topic_is_told() -> None:
    signals = LocalSignals()
    held = [signals.subscribe("river") for _ in range(3)]
    signals.publish(["river"])
    async with asyncio.timeout(20):
        await asyncio.gather(*(each.wait(seconds=30) for each in held))


def test_nothing_is_kept_of_those_who_left() -> None:
    """A process that runs for months forgets the topics of turns and sessions that nobody waits for."""
    signals = LocalSignals()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for n in range(5_000):
            signals.subscribe(f"turn:{n}")
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 100_000
