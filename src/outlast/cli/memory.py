"""What a process that stays does about memory."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def loading() -> Generator[None]:
    """While modules are loaded nobody looks for garbage, a tenth of that time; the little there is stays."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        settle_in()
        if was_enabled:
            gc.enable()


def settle_in() -> None:
    """What was loaded at the start stays: Python need not go through all of it again to find garbage.

    Each time it did, everything in the process waited for a tenth of a second.
    """
    gc.freeze()
