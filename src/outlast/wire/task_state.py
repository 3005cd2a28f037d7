"""The states of a task: once, for the library, the server, the client and the command."""

from enum import StrEnum


class TaskState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    AWAITING_INPUT = "awaiting_input"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"


ENDED = frozenset({TaskState.SUCCEEDED, TaskState.FAILED, TaskState.CANCELED})
