"""The log of a chat: warnings on lines of their own above the prompt, and why something failed beside that it did."""

import re
import sys
from collections.abc import Callable, MutableMapping
from typing import Any

import structlog

from outlast.observe import logs

_MOST = 100
_REFERENCE = re.compile(r"\(reference (\w{1,40})\)")


class Reasons:
    """The last lines of logged exceptions by their reference: for the person who runs the program, and nobody else."""

    def __init__(self) -> None:
        self.mask: Callable[[Any], Any] = lambda value: value
        """What registered secrets a line must not have; known once the app is loaded."""
        self._known: dict[str, str] = {}

    def note(self, _: Any, __: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        line = self.mask(line)
        if isinstance(line.get("reference"), str) and isinstance(line.get("error"), str):
            self._known[line["reference"]] = line["error"]
            while len(self._known) > _MOST:
                del self._known[next(iter(self._known))]
        return line

    def beside(self, text: str) -> str:
        """The text, and behind it why, if it names a reference that this process knows."""
        found = _REFERENCE.search(text)
        why = None if found is None else self._known.get(found[1])
        return text if why is None else f"{text} {why}"


def begin() -> Reasons:
    """Warnings and worse go to stderr, wherever that leads at the time; a program's own set-up is left alone."""
    reasons = Reasons()
    if not structlog.is_configured():
        structlog.configure(
            processors=[structlog.processors.add_log_level, logs.redacted, reasons.note, *logs.for_people()],
            wrapper_class=structlog.make_filtering_bound_logger("warning"),
            logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
            cache_logger_on_first_use=False,
        )
    return reasons
