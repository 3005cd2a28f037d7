"""What is left of a round, read without any code of the runtime: plain SQL and JSON."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos import ledger
from chaos.ledger import Entry
from chaos.words import plans_in

Row = dict[str, Any]

_STOPS_WITHIN_US = 1_000_000
_WAKES_WITHIN_US = 50_000
TERMINAL = frozenset({"turn.completed", "turn.failed", "turn.stopped"})


@dataclass(frozen=True, slots=True)
class LogEvent:
    number: int
    type: str
    turn_id: str | None
    data: Row
    at_us: int = 0
    task_id: str | None = None


@dataclass(slots=True)
class SessionRows:
    """One session: its row, and everything that belongs to it, in order."""

    row: Row
    inputs: list[Row] = field(default_factory=list[Row])
    turns: list[Row] = field(default_factory=list[Row])
    tasks: list[Row] = field(default_factory=list[Row])
    messages: list[Row] = field(default_factory=list[Row])
    events: list[LogEvent] = field(default_factory=list[LogEvent])
    schedules: list[Row] = field(default_factory=list[Row])
    fires: list[Row] = field(default_factory=list[Row])

    @property
    def is_held(self) -> bool:
        return bool(self.row["is_held"])

    def parts(self, kind: str) -> Iterator[Row]:
        """The parts of history of one pydantic-ai kind."""
        for message in self.messages:
            for part in message["parts"]:
                if part["part_kind"] == kind:
                    yield part

    def told_tokens(self) -> list[str]:
        """The token of every prompt in history, as often as it stands there."""
        return [token for part in self.parts("user-prompt") for token, _ in plans_in(str(part["content"]))]


@dataclass(slots=True)
class Evidence:
    sessions: dict[str, SessionRows]
    ledger: list[Entry]
    record: list[Row]
    readers: list[Row]
    log_lines: list[str]
    deaths: dict[int, int]
    """When each worker was surely gone, in microseconds of the wall clock."""
    outages: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """From when to when somebody could not hear that a cancel was asked for."""
    freezes: Mapping[int, Sequence[tuple[int, int]]] = field(default_factory=dict[int, list[tuple[int, int]]])
    """From when to when processes stood still."""

    def woke_in(self, entry: Entry, ended_us: int) -> bool:
        """Whether a call ended for the others while its process stood still between its last question and the tool.

        Then it goes on with the tool when it wakes: in the gap that nobody can close.
        """
        return any(
            from_us <= ended_us <= to_us
            and 0 < entry.asked_us <= from_us + _STOPS_WITHIN_US
            and entry.at_us <= to_us + _WAKES_WITHIN_US
            for from_us, to_us in self.freezes.get(entry.worker, ())
        )

    def entries(self) -> dict[str, list[Entry]]:
        """The ledger by call."""
        found: dict[str, list[Entry]] = defaultdict(list)
        for entry in self.ledger:
            found[entry.call_id].append(entry)
        return found


def read(folder: Path) -> Evidence:
    with closing(sqlite3.connect(f"file:{folder / 'outlast.db'}?mode=ro", uri=True)) as connection:
        sessions = _sessions(connection)
    log = folder / "workers.log"
    return Evidence(
        sessions,
        ledger.read(folder / "ledger.jsonl"),
        _lines(folder / "record.jsonl"),
        _lines(folder / "readers.jsonl"),
        log.read_text().splitlines() if log.exists() else [],
        {line["worker"]: line["at_us"] for line in _lines(folder / "deaths.jsonl")},
    )


def _sessions(connection: sqlite3.Connection) -> dict[str, SessionRows]:
    connection.row_factory = sqlite3.Row
    sessions = {row["id"]: SessionRows(row) for row in _rows(connection, "sessions", "id")}
    for row in _rows(connection, "inputs", "sequence"):
        sessions[row["session_id"]].inputs.append(row)
    for row in _rows(connection, "turns", "first_event"):
        sessions[row["session_id"]].turns.append(row)
    for row in _rows(connection, "tasks", "id"):
        sessions[row["session_id"]].tasks.append(row)
    for row in _rows(connection, "schedules", "id"):
        sessions[row["session_id"]].schedules.append(row)
    for row in _rows(connection, "fires", "number"):
        sessions[row["session_id"]].fires.append(row)
    for row in _rows(connection, "messages", "position"):
        sessions[row["session_id"]].messages.append({**row, **json.loads(row["body"])})
    for row in _rows(connection, "events", "number"):
        data, task_id = json.loads(row["data"]), row["task_id"]
        event = LogEvent(row["number"], row["type"], row["turn_id"], data, row["at"], task_id)
        sessions[row["session_id"]].events.append(event)
    return sessions


def _rows(connection: sqlite3.Connection, table: str, order: str) -> list[Row]:
    return [dict(row) for row in connection.execute(f"SELECT * FROM {table} ORDER BY {order}")]


def _lines(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()]
