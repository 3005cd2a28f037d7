"""An operation elsewhere: running without a worker, it ends by a completion, a cancel or its deadline."""

from outlast.transitions.kinds.kind import Kind
from outlast.transitions.task_errors import INTERRUPTED, NOT_COMPLETED

EXTERNAL = Kind(
    "external",
    lambda task, now, limits: INTERRUPTED,  # for the type alone: without a worker none can die under it
    needs_worker=False,
    timed_out=NOT_COMPLETED,
)
