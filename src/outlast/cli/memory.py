"""What a process that stays does about memory."""

import gc


def settle_in() -> None:
    """What was loaded at the start stays: Python need not go through all of it again to find garbage.

    Each time it did, everything in the process waited for a tenth of a second.
    """
    gc.freeze()
