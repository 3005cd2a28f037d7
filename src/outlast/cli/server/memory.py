"""Garbage collection in a process that runs for long."""

import gc
from collections.abc import Generator
from contextlib import contextmanager

_THRESHOLDS = (5_000, 5, 20)
"""So many new objects set off a collection of them, so many of those one of what they left, and so on.

To go through the first takes a millisecond, through the second less than ten, through the third as long as it takes.
"""


@contextmanager
def collection_paused() -> Generator[None]:
    """While modules are imported the collector is off, which saves a tenth of that time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        freeze_loaded()
        if was_enabled:
            gc.enable()


def freeze_loaded() -> None:
    """Exempt everything that is loaded by now from collection: it stays anyway. From now on it is done rarely.

    Going through all of it would stop everything in the process for a tenth of a second, each time. As Python has it,
    one document of a megabyte that is parsed sets off a hundred collections, and several of all there is.
    """
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
