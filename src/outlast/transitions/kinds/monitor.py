"""A monitor: running without a worker, as long as its schedule is there; each of its checks is a task of its own."""

from outlast.transitions.kinds.kind import Kind
from outlast.transitions.task_errors import INTERRUPTED

MONITOR = Kind(
    "monitor",
    lambda task, now, limits: INTERRUPTED,  # for the type alone: without a worker none can die under it
    needs_worker=False,
)
