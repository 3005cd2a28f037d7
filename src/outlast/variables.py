"""Environment variables that begin with `OUTLAST_` and mean nothing: most likely misspelt, so somebody is told."""

import difflib
import logging
import os
import re
from collections.abc import Iterable
from functools import cache

PREFIX = "OUTLAST_"
_OF_THE_COMMAND = ("URL", "TOKEN")
_OF_THE_PROJECT = re.compile(r"TEST_|BENCH_|SKIP_BROWSER$")
_OF_A_SERVICE = re.compile(r"(^|_)(SERVICE_(HOST|PORT)|PORT_\d+_)")
"""Kubernetes sets these in every container beside a service whose name begins with `outlast`."""

log = logging.getLogger("outlast.settings")


def warn_of_unknown(fields: Iterable[str]) -> None:
    """On stderr unless the program logs elsewhere, once in a process for each variable. Values are not shown."""
    known = frozenset(map(str.upper, fields)).union(_OF_THE_COMMAND)
    for name, value in os.environ.items():
        own = name.upper().removeprefix(PREFIX)
        if own != name.upper() and own not in known and not _is_foreign(own, value):
            _warn(name, known)


def _is_foreign(own: str, value: str) -> bool:
    is_port = own.endswith("PORT") and "://" in value
    return is_port or bool(_OF_THE_PROJECT.match(own) or _OF_A_SERVICE.search(own))


@cache
def _warn(name: str, known: frozenset[str]) -> None:
    near = difflib.get_close_matches(name.upper().removeprefix(PREFIX), sorted(known), n=1)
    advice = f"did you mean {PREFIX}{near[0]}?" if near else "the reference of settings lists those that are."
    log.warning("%s is not a setting of Outlast: %s", name, advice)
