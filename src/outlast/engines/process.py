"""Whether a process of this machine is still there: where it can be seen that one is gone, nobody need wait for it."""

import os
import socket
from functools import cache
from pathlib import Path


@cache
def place() -> str:
    """Names where processes are numbered together. Containers of one machine may share its name, not its numbers.

    Where that cannot be told, only the machine's name: nobody compares that with anything.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        numbers = os.readlink("/proc/self/ns/pid")
    except OSError:
        return socket.gethostname()
    return f"{socket.gethostname()} {boot} {numbers}"


def is_gone(at: str, pid: int) -> bool:
    """True only if it is certain: a process of this place, and not there, or ended and not yet buried by its parent."""
    if at != place() or " " not in at:
        return False
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except ProcessLookupError:
        return True
    except OSError:  # another user's, or on its way out
        return False
    return state in "ZX"
