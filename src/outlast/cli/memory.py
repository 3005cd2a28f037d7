"""What a process that stays does about memory."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def loading() -> Generator[None]:
    """While modules are loaded nothing is thrown away: to look for garbage takes a fifth of that time."""
    gc.disable()
    try:
        yield
    finally:
        settle_in()
        gc.enable()


def settle_in() -> None:
    """What was loaded at the start stays: Python need not go through all of it again to find garbage.

    Each time it did, everything in the process waited for a tenth of a second.
    """
    gc.freeze()
