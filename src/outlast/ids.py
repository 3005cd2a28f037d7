"""Typed ids. An id begins with its noun and sorts by the time it was made."""

import os
import re
import threading
import time
from typing import NewType

SessionId = NewType("SessionId", str)
InputId = NewType("InputId", str)
TurnId = NewType("TurnId", str)
TaskId = NewType("TaskId", str)
WorkerId = NewType("WorkerId", str)
OwnerId = NewType("OwnerId", str)
KeyId = NewType("KeyId", str)
WebhookId = NewType("WebhookId", str)
ScheduleId = NewType("ScheduleId", str)

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


_making = threading.Lock()
_last = 0


def _make(prefix: str) -> str:
    """48 bits of milliseconds, then 80 random bits, in base 32: unguessable, and sorted by time.

    Within a process each is greater than the one before, also within a millisecond or when the clock is set back:
    what waits in the order of ids waits in the order in which it came.
    """
    global _last
    with _making:
        number = (time.time_ns() // 1_000_000 << 80) | int.from_bytes(os.urandom(10))
        if number <= _last:
            number = _last + 1 + int.from_bytes(os.urandom(8))
        _last = number
    digits = [_ALPHABET[(number >> shift) & 31] for shift in range(125, -1, -5)]
    return f"{prefix}_{''.join(digits)}"


def session_id() -> SessionId:
    return SessionId(_make("ses"))


def input_id() -> InputId:
    return InputId(_make("inp"))


def turn_id() -> TurnId:
    return TurnId(_make("trn"))


def task_id() -> TaskId:
    return TaskId(_make("tsk"))


def is_task(id: str) -> bool:
    return id.startswith("tsk_")


def worker_id() -> WorkerId:
    return WorkerId(_make("wrk"))


def schedule_id() -> ScheduleId:
    return ScheduleId(_make("sch"))


def key_id() -> KeyId:
    return KeyId(_make("key"))


def webhook_id() -> WebhookId:
    return WebhookId(_make("whk"))


def request_id() -> str:
    """Of what a task that waits asks a person for."""
    return _make("req")


def rule_id() -> str:
    """A rule that a person added to a session."""
    return _make("rul")


def reference_id() -> str:
    """What a person quotes to find an internal error in the logs."""
    return _make("ref")


_FILE = re.compile(r"fil_([0-9a-z]{1,40})_([0-9a-f]{64})")
_KEY = re.compile(r"ses_([0-9a-z]{1,40})/([0-9a-f]{64})(?:\.[0-9a-f]{32})?")
"""What ends with a dot and more is the copy of one name alone: it goes with that name."""


def file_id(key: str) -> str:
    """What a file of a session is called outside, by its key in the file store; anything else as it is."""
    found = _KEY.fullmatch(key)
    return key if found is None else f"fil_{found[1]}_{found[2]}"


def content_key(key: str) -> str:
    """The same for all copies of one content in a session."""
    return key.partition(".")[0]


def file_key(file_id: str) -> str:
    """The way back, to what all copies of the content have in common."""
    found = _FILE.fullmatch(file_id)
    return file_id if found is None else f"ses_{found[1]}/{found[2]}"


def session_of_file(file_id: str) -> SessionId | None:
    """Whose file it is; None for what is no id of a file."""
    found = _FILE.fullmatch(file_id)
    return None if found is None else SessionId(f"ses_{found[1]}")
