"""Where tasks are accepted that a worker is to start."""

from outlast.ids import SessionId
from outlast.store.database import Database
from outlast.store.group_commit import GroupCommit
from outlast.store.repositories.stored_task import NewTask, Task
from outlast.transitions.tasks import many_tasks
from outlast.transitions.tasks.many_tasks import Wanted


class TaskIntake:
    """Whoever asks at once shares a commit; accepted means kept.

    Make one for each process: only those who share it share commits. Agents and clients cannot reach it yet.
    """

    def __init__(self, database: Database) -> None:
        self._accepting: GroupCommit[Wanted, Task] = GroupCommit(database, many_tasks.accept, name="task.accept")

    async def accept(self, session_id: SessionId, new: NewTask) -> Task:
        """The task as it stands after the commit: running here already, or waiting for a worker."""
        return await self._accepting.ask(Wanted(session_id, new))
