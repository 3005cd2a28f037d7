"""What the runtime itself says of a task that did not succeed: `kind` for programs, `message` for people."""

INTERRUPTED = {
    "kind": "interrupted",
    "message": "It was running when its process ended. It may or may not have taken effect.",
}
ABANDONED = {
    "kind": "abandoned",
    "message": "It ignored its cancel and may still be running. It may or may not take effect.",
}
NOT_ANSWERED = {"kind": "timeout", "message": "Nobody answered before its deadline."}
NOT_COMPLETED = {
    "kind": "timeout",
    "message": "No completion came before its deadline. What was begun elsewhere may still go on.",
}
TIMED_OUT = {"kind": "timeout", "message": "It did not end before its deadline and was told to stop."}
NO_PROGRESS = {"kind": "no_progress", "message": "It was alive but made no progress, and was told to stop."}
CRASH_LOOP = {"kind": "crash_loop", "message": "Its process ended each time it ran; it is not tried again."}
NOT_KEPT = {"kind": "internal_error", "message": "It ended, but what it came to could not be kept."}

VERDICTS = frozenset(each["kind"] for each in (INTERRUPTED, ABANDONED, TIMED_OUT, NO_PROGRESS, CRASH_LOOP))
"""What the runtime says of a task; anything else is what its code came to."""
