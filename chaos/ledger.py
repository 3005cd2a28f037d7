"""The ledger of effects: one line before and one after each, on disk before the tool goes on.

It outlives its writer, so it says what really ran, whatever the database believes.
"""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Phase = Literal["before", "after"]
ORDERS = "orders.jsonl"
"""What was asked of others: the operations that they are to complete."""


@dataclass(frozen=True, slots=True)
class Entry:
    """`worker` counts the processes of a round; `at_us` is wall-clock time, as in the database.

    `asked_us`: when the runtime had last asked whether the call is still its own, where that is written down.
    """

    call_id: str
    key: str
    tool: str
    phase: Phase
    worker: int
    at_us: int
    asked_us: int = 0


class Ledger:
    """Written by every worker of a round; a line is whole or not there."""

    def __init__(self, path: Path, worker: int, asked_us: Mapping[str, int] | None = None) -> None:
        """`asked_us`: by call, when the runtime last asked whether it is still its own."""
        self._worker = worker
        self._asked_us: Mapping[str, int] = asked_us if asked_us is not None else {}
        self._file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)
        self._orders = os.open(path.parent / ORDERS, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)

    def write(self, call_id: str, key: str | None, tool: str, phase: Phase) -> None:
        line = {
            "call_id": call_id,
            "key": key or "",
            "tool": tool,
            "phase": phase,
            "worker": self._worker,
            "at_us": time.time_ns() // 1_000,
            "asked_us": self._asked_us.get(call_id, 0),
        }
        os.write(self._file, json.dumps(line).encode() + b"\n")
        os.fsync(self._file)

    def order(self, task_id: str, token: str, *, is_new: bool) -> None:
        """The request that goes out to somebody else, who completes the operation later."""
        line = {"task_id": task_id, "token": token, "is_new": is_new}
        os.write(self._orders, json.dumps(line).encode() + b"\n")

    def close(self) -> None:
        os.close(self._file)
        os.close(self._orders)


def read(path: Path) -> list[Entry]:
    if not path.exists():
        return []
    return [Entry(**json.loads(line)) for line in path.read_text().splitlines()]
