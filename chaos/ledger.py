"""The ledger of effects: one line before and one after each, on disk before the tool goes on.

It outlives its writer, so it says what really ran, whatever the database believes.
"""

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Phase = Literal["before", "after"]


@dataclass(frozen=True, slots=True)
class Entry:
    """`worker` counts the processes of a round; `at_us` is wall-clock time, as in the database."""

    call_id: str
    key: str
    tool: str
    phase: Phase
    worker: int
    at_us: int


class Ledger:
    """Written by every worker of a round; a line is whole or not there."""

    def __init__(self, path: Path, worker: int) -> None:
        self._worker = worker
        self._file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)

    def write(self, call_id: str, key: str | None, tool: str, phase: Phase) -> None:
        line = {
            "call_id": call_id,
            "key": key or "",
            "tool": tool,
            "phase": phase,
            "worker": self._worker,
            "at_us": time.time_ns() // 1_000,
        }
        os.write(self._file, json.dumps(line).encode() + b"\n")
        os.fsync(self._file)

    def close(self) -> None:
        os.close(self._file)


def read(path: Path) -> list[Entry]:
    if not path.exists():
        return []
    return [Entry(**json.loads(line)) for line in path.read_text().splitlines()]
