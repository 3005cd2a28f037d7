"""A task as it is stored: its states as data, what it holds, what it begins with, and how its row is read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from outlast.clock import from_microseconds
from outlast.ids import OwnerId, SessionId, TaskId, TurnId, WorkerId
from outlast.store.repositories import task_snapshot
from outlast.store.repositories.turns import ERROR
from outlast.store.sql.statement import Row
from outlast.values import row_json
from outlast.values.shape import Shape, instant, list_of, maybe, number, object_of, one_of, text, whole
from outlast.wire.task_state import ENDED, TaskState

MOVES: Mapping[TaskState, frozenset[TaskState]] = {
    TaskState.QUEUED: frozenset({TaskState.RUNNING, TaskState.AWAITING_INPUT, TaskState.CANCELED, TaskState.FAILED}),
    TaskState.RUNNING: frozenset({TaskState.AWAITING_INPUT, TaskState.QUEUED, *ENDED}),
    TaskState.AWAITING_INPUT: frozenset({TaskState.RUNNING, TaskState.QUEUED, *ENDED}),
    TaskState.SUCCEEDED: frozenset(),
    TaskState.FAILED: frozenset(),
    TaskState.CANCELED: frozenset(),
}
WITH_WORKER = (TaskState.RUNNING.value, TaskState.AWAITING_INPUT.value)
"""States in which a task may have a worker: a question keeps the one that it waits in."""

REPEAT = "repeat"
"""In the spec of a task that was a call."""


class TaskOrigin(StrEnum):
    """`SPAWN`: set going on purpose; such tasks have places, and wait for them in order."""

    CALL = "call"
    SPAWN = "spawn"


class WakePolicy(StrEnum):
    ON_TERMINAL = "on_terminal"
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class Task:
    """Durable background work as it is stored. `result` may be a view of something larger (`read_output`)."""

    id: TaskId
    session_id: SessionId
    owner_id: OwnerId
    turn_id: TurnId | None
    call_id: str | None
    kind: str
    agent: str
    """The one whose tool it runs."""
    tool: str | None
    title: str
    spec: dict[str, Any]
    state: TaskState
    detail: str | None
    progress: dict[str, Any] | None
    result: Any
    error: dict[str, Any] | None
    late_outcome: dict[str, Any] | None
    artifacts: list[dict[str, Any]]
    metadata: dict[str, Any]
    wake: WakePolicy
    group: str | None
    may_run_again: bool
    attempt: int
    worker_id: WorkerId | None
    progress_seconds: float | None
    deadline_at: datetime | None
    cancel_requested_at: datetime | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    settled: dict[str, Any] | None = None
    """What a person said of it whose effect nobody knew: verdict, by, note, at."""
    usage: dict[str, Any] | None = None
    """What agents used that its tool ran. None: it ran none, or that is not known yet."""
    links: Mapping[str, str] = field(default_factory=dict[str, str])
    """`retry_of`: the task that it tries again. `retried_as`: the one that tries it again."""
    key: str | None = None
    """In its session there is one task with this key, however often it is asked for."""
    request: dict[str, Any] | None = None
    """What it asks a person for: id, kind (approval, question, connection), prompt, asked_at, and how it was closed."""
    max_attempts: int | None = None
    """How often it may be tried, where that is not what the worker's limits say."""
    origin: TaskOrigin = TaskOrigin.CALL
    admitted_at: datetime | None = None
    """When a spawned task was given a place among those that may run."""
    output_size: int | None = None
    """Characters that it has put out, where they were asked for."""
    last_line: str | None = None
    """Of its output, likewise."""
    place: int | None = None
    """Of a spawned task that waits for a place: its number among those of its session that do, where it was asked."""

    @property
    def waits_for_place(self) -> bool:
        """Nobody is told to run it before it is admitted."""
        return self.origin is TaskOrigin.SPAWN and self.admitted_at is None and self.state is TaskState.QUEUED

    @property
    def output_id(self) -> str:
        """Whose output and result are its own: the model's call, or of a task that no call asked for, the task itself.

        It is also what the tool's idempotency key is made of, so a task that tries another again has that one's.
        """
        return self.call_id or self.id

    @property
    def parked(self) -> dict[str, Any] | None:
        """Of a call that goes on without its turn: `reason` (budget, steering, stop), and how long it had run."""
        return self.spec.get("parked")

    @property
    def repeat(self) -> int:
        """How many calls with the id of its call there were before it in its turn."""
        return self.spec.get(REPEAT) or 0

    @property
    def ran_seconds(self) -> float | None:
        """How long it ran, once it is over: from the start of its call, also where that was parked later."""
        if self.started_at is None or self.ended_at is None:
            return None
        return (self.ended_at - self.started_at).total_seconds()

    @property
    def since(self) -> datetime:
        """When it began; of one that waits to begin, when it was made."""
        return self.started_at or self.created_at

    @property
    def is_over(self) -> bool:
        return self.state in ENDED

    def is_run_by(self, attempt: int) -> bool:
        """Whether this attempt may still write. A task that was given back is run by nobody until it is claimed."""
        return self.attempt == attempt and not self.is_over and self.state is not TaskState.QUEUED

    @property
    def narration(self) -> str | None:
        """What it does or did, in words for people; None where its tool has none."""
        said: Mapping[str, str] = self.spec.get("narration") or {}
        ended = "done" if self.state is TaskState.SUCCEEDED else "failed"
        return said.get(ended if self.is_over else "running")

    @property
    def needs(self) -> str | None:
        """What it waits for somebody to do: an approval, an answer (question), a connection."""
        return None if self.request is None or "closed" in self.request else self.request["kind"]

    @property
    def snapshot(self) -> dict[str, Any]:
        """What an event tells of a task: everything but its bodies."""
        return task_snapshot.of(self)


@dataclass(frozen=True, slots=True)
class NewTask:
    """What a task begins with. One that has a `request` waits for its answer first."""

    id: TaskId
    title: str
    agent: str = field(kw_only=True)
    """The one whose tool it runs."""
    kind: str = "call"
    turn_id: TurnId | None = None
    call_id: str | None = None
    tool: str | None = None
    spec: Mapping[str, Any] | None = None
    wake: WakePolicy = WakePolicy.ON_TERMINAL
    group: str | None = None
    may_run_again: bool = False
    progress: Mapping[str, Any] | None = None
    progress_seconds: float | None = None
    deadline_at: datetime | None = None
    is_cancel_requested: bool = False
    links: Mapping[str, str] | None = None
    ran_for: timedelta = timedelta()
    """How long the work had been running when it became a task."""
    key: str | None = None
    """There is one task with this key in the session: who asks for it again gets the one that there is."""
    request: Mapping[str, Any] | None = None
    max_attempts: int | None = None
    origin: TaskOrigin = TaskOrigin.CALL


_SPEC: Shape = {
    **{"parked": maybe(object_of()), "budget_seconds": maybe(number), "deadline_seconds": maybe(number)},
    **{"answers": maybe(list_of(object_of())), "approved": maybe(object_of()), "args_schema": maybe(object_of())},
    "narration": maybe(object_of({"running": maybe(text), "done": maybe(text), "failed": maybe(text)})),
    **{"check_of": maybe(text), REPEAT: maybe(whole)},
}
_PROGRESS: Shape = {"current": number, "total": maybe(number), "unit": maybe(text), "label": maybe(text)}
_SETTLED: Shape = {
    "verdict": one_of("worked", "failed", "try_again"),
    **{"by": text, "note": maybe(text), "at": maybe(instant)},
}
_REQUEST: Shape = {
    **{"id": text, "kind": one_of("approval", "question", "connection"), "prompt": text, "asked_at": instant},
    **{"url": maybe(text), "provider": maybe(text), "deadline_at": maybe(instant)},
    **{
        "ordinal": maybe(whole),
        "left_seconds": maybe(number),
        "closed": maybe(object_of({"how": text, "at": instant})),
    },
}
_USAGE: Shape = {
    **dict.fromkeys(("requests", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"), whole),
    "cost_microdollars": maybe(whole),
}
_LINKS = ("retry_of", "retried_as", "child_session", "child_input", "schedule")


def from_row(row: Row) -> Task:
    return Task(
        id=TaskId(row["id"]),
        session_id=SessionId(row["session_id"]),
        owner_id=OwnerId(row["owner_id"]),
        turn_id=row["turn_id"],
        call_id=row["call_id"],
        kind=row["kind"],
        agent=row["agent"],
        tool=row["tool"],
        title=row["title"],
        spec=row_json.read_object(row["spec"], _SPEC),
        state=TaskState(row["state"]),
        detail=row["detail"],
        progress=_object(row["progress"], _PROGRESS),
        result=_decode(row["result"]),
        error=_object(row["error"], ERROR),
        late_outcome=_object(row["late_outcome"]),
        artifacts=row_json.read_list(row["artifacts"]),
        metadata=row_json.read_object(row["metadata"]),
        wake=WakePolicy(row["wake"]),
        group=row["group"],
        may_run_again=row["may_run_again"],
        attempt=row["attempt"],
        worker_id=row["worker_id"],
        progress_seconds=row["progress_seconds"],
        deadline_at=_instant(row["deadline_at"]),
        cancel_requested_at=_instant(row["cancel_requested_at"]),
        created_at=from_microseconds(row["created_at"]),
        started_at=_instant(row["started_at"]),
        ended_at=_instant(row["ended_at"]),
        settled=_readable(row["settled"], _SETTLED),
        usage=_readable(row["usage"], _USAGE),
        links={
            name: each for name, each in row_json.read_object(row["links"]).items() if name in _LINKS and text(each)
        },
        key=row["key"],
        request=_readable(row["request"], _REQUEST),
        max_attempts=row["max_attempts"],
        origin=TaskOrigin(row["origin"]),
        admitted_at=_instant(row["admitted_at"]),
    )


def _decode(value: str | None) -> Any:
    return None if value is None else row_json.read(value)


def _object(value: str | None, shape: Shape | None = None) -> dict[str, Any] | None:
    return None if value is None else row_json.read_object(value, shape)


def _readable(value: str | None, shape: Shape) -> dict[str, Any] | None:
    """What cannot be read says nothing."""
    found = _object(value, shape)
    return None if row_json.is_unreadable(found) else found


def _instant(value: int | None) -> datetime | None:
    return None if value is None else from_microseconds(value)
