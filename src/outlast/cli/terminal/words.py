"""Small things said the same way everywhere in the terminal: arguments, durations, progress."""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, cast

from outlast.clock import in_words
from outlast.values.shape import fits, maybe, number
from outlast.wire.task import Task

BAR_WIDTH = 20
NOBODY_KNOWS = "nobody knows its effect"
_UNKNOWN = {
    "interrupted": "was interrupted when its process ended",
    "abandoned": "ignored its cancel",
    "crash_loop": "ended its process each time it ran",
}


def arguments(given: Any, *, longest: int = 60) -> str:
    """A call's arguments as a person would write them, cut to a readable length."""
    try:
        args: Any = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        args = given
    if not args:
        return ""
    if isinstance(args, dict):
        said = ", ".join(f"{name}={_value(value)}" for name, value in cast(dict[str, Any], args).items())
    else:
        said = str(args)
    return shortened(said, longest)


def shortened(text: str, longest: int) -> str:
    """In one line, and not longer than that."""
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def duration(passed: timedelta) -> str:
    return in_words(passed)


def share(progress: Mapping[str, Any] | None) -> float | None:
    """How much is done, from 0 to 1, where that is known."""
    if not _is_counted(progress) or not progress or not progress.get("total"):
        return None
    return min(1.0, max(0.0, progress["current"] / progress["total"]))


def _is_counted(progress: Mapping[str, Any] | None) -> bool:
    """Not one that could not be read."""
    return fits(progress, {"current": number, "total": maybe(number)})


def bar(done: float, *, width: int = BAR_WIDTH) -> str:
    filled = round(done * width)
    return "█" * filled + "░" * (width - filled)


def amount(progress: Mapping[str, Any] | None) -> str:
    """`12 of 20 rows, reading`, or as much of it as was said."""
    if not progress or not _is_counted(progress):
        return "" if not progress else str(progress.get("message", ""))
    said = f"{progress['current']:g}"
    if progress.get("total"):
        said += f" of {progress['total']:g}"
    if progress.get("unit"):
        said += f" {progress['unit']}"
    return f"{said}, {progress['label']}" if progress.get("label") else said


def progress_line(progress: Mapping[str, Any] | None) -> str:
    """A bar where the share is known, and the amount."""
    done = share(progress)
    said = amount(progress)
    return said if done is None else f"{bar(done)} {done:4.0%}  {said}"


def unknown(task: Task) -> str | None:
    """What is known of a task that ended in a way that leaves its effect open, and that nobody has settled.

    None for all others.
    """
    what = _UNKNOWN.get(str((task.error or {}).get("kind")))
    if what is None or task.settled is not None:
        return None
    return f"{what}; its tool may be run again without harm" if task.may_run_again else f"{what}, {NOBODY_KNOWS}"


def settle_task(task: Task) -> str:
    """What to type about it."""
    return f"outlast settle {task.id} try_again" if task.may_run_again else settle_command(task.id)


def settle_command(id: str, session_id: str | None = None) -> str:
    """What to type about a task, or a call of a session, whose effect nobody knows."""
    return f"outlast settle {id} worked|failed|try_again" + ("" if session_id is None else f" --session {session_id}")


def _value(value: Any) -> str:
    return repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
