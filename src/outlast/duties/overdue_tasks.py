"""Tasks whose deadline came while they waited for a worker: nobody's timers run for them."""

from functools import partial

from outlast.store.database import Database
from outlast.store.repositories import tasks
from outlast.transitions import cancel


async def expire_overdue(database: Database) -> None:
    for task_id in await database.transaction(tasks.overdue, name="overdue"):
        await database.transaction(partial(cancel.expire, task_id=task_id), name="task.expire")
