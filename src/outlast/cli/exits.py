"""Exit codes of the verbs, for scripts; the reference is made from this."""

from enum import IntEnum

from outlast.errors import NotFound, OutlastError, Unauthenticated, Unreachable


class Exit(IntEnum):
    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    UNREACHABLE = 4
    STILL_RUNNING = 5
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]


_MEANINGS = {
    Exit.OK: "It worked; a task that was waited for has succeeded, a turn has completed.",
    Exit.FAILED: "The task or turn failed or was stopped, or the server said no.",
    Exit.USAGE: "The command line cannot be understood.",
    Exit.NOT_FOUND: "There is no such session, task or key.",
    Exit.UNREACHABLE: "No server is known or it does not answer, or it does not know the token.",
    Exit.STILL_RUNNING: "The time of `--timeout` is over; the work goes on or waits. Or a cancel is not confirmed yet.",
    Exit.INTERRUPTED: "Ctrl-C. The work in the server goes on.",
}


def exit_of(error: OutlastError) -> Exit:
    match error:
        case NotFound():
            return Exit.NOT_FOUND
        case Unreachable() | Unauthenticated():
            return Exit.UNREACHABLE
        case _:
            return Exit.FAILED
