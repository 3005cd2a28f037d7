"""The log of a chat: warnings stand above the prompt, and a failure that is shown gets its logged cause beside it."""

import re
import sys
from collections.abc import Callable, MutableMapping
from typing import Any

import structlog

from outlast.observe import logs

_MOST = 100
_REFERENCE = re.compile(r"\(reference (\w{1,40})\)")


class ErrorDetails:
    """The last lines of logged exceptions by their reference: for the person who runs the program, and nobody else."""

    def __init__(self) -> None:
        self.mask: Callable[[Any], Any] = lambda value: value
        """What registered secrets a value of a line must not have; known once the app is loaded."""
        self._known: dict[str, str] = {}

    def note(self, _: Any, __: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        line = logs.masked(line, self.mask)
        if isinstance(line.get("reference"), str) and isinstance(line.get("error"), str):
            self._known[line["reference"]] = line["error"]
            while len(self._known) > _MOST:
                del self._known[next(iter(self._known))]
        return line

    def explain(self, text: str) -> str:
        """The text, and after it the error that it refers to, if this process has logged it."""
        found = _REFERENCE.search(text)
        why = None if found is None else self._known.get(found[1])
        return text if why is None else f"{text} {why}"


def configure() -> ErrorDetails:
    """Warnings and worse go to stderr, wherever that leads at the time; a program's own set-up is left alone."""
    details = ErrorDetails()
    if not structlog.is_configured():
        structlog.configure(
            processors=[structlog.processors.add_log_level, logs.redacted, details.note, *logs.for_people()],
            wrapper_class=structlog.make_filtering_bound_logger("warning"),
            logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
            cache_logger_on_first_use=False,
        )
    return details
