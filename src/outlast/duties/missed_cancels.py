"""Tasks of this worker that were asked to cancel: the signal that said so may have been lost."""

from collections.abc import Callable

from outlast.events.signals import Signals, task_topic
from outlast.ids import WorkerId
from outlast.store.database import Database
from outlast.store.repositories import tasks


async def signal_again(database: Database, signals: Signals, me: Callable[[], WorkerId]) -> None:
    """Whoever runs them looks again; what is being cancelled already is not disturbed by that."""
    found = await database.glance(lambda connection: tasks.to_cancel(connection, me()))
    signals.publish(map(task_topic, found))
