"""Completing operations elsewhere: by their owner, by a server's key, or by a token of their own."""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from pydantic_core import to_json

from outlast.calls import outcomes
from outlast.calls.view import LARGEST, beginning_of
from outlast.errors import InvalidInput, NotFound
from outlast.ids import TaskId
from outlast.store.database import Database
from outlast.store.files.file_store import FileStore
from outlast.store.repositories import tasks
from outlast.store.repositories.stored_task import Task
from outlast.transitions.tasks import operations
from outlast.transitions.tasks.operations import Completed, Completion
from outlast.values import row_json
from outlast.values.redact import redact
from outlast.values.secrets import Secrets

_LONGEST_ERROR = 4_096
_NO_WORDS = "It failed, and nothing was said of why."


@dataclass(frozen=True, slots=True)
class Completions:
    """The operations of all owners: who may complete which is asked before."""

    database: Database
    files: FileStore
    secrets: Secrets

    async def owner_by(self, task_id: str, token: str) -> str | None:
        """Whose operation a token completes. None: it is none of its tokens, or there is no such task."""
        task = await self._find(task_id)
        return task.owner_id if operations.is_opened_by(task, token) and task is not None else None

    async def complete(
        self, task_id: str, *, success: bool, result: Any = None, error: Any = None, owner_id: str | None = None
    ) -> Completed:
        """Recorded when this returns. What comes after the end changes nothing, and is told what stands.

        `owner_id` None: whoever it belongs to.
        """
        if success and error is not None:
            raise InvalidInput("An operation that succeeded has no error: send `result`, or `success: false`.")
        if not success and result is not None:
            raise InvalidInput("An operation that failed has no result: send `error`.")
        task = await self._find(task_id)
        if task is None or owner_id not in (None, task.owner_id):
            raise NotFound("There is no such task.", id=task_id)
        completion = await self._completion(task, result) if success else self._failure(error)
        return await self.database.transaction(
            lambda unit: operations.complete(unit, TaskId(task_id), completion, owner_id=owner_id),
            name="complete",
        )

    async def _find(self, task_id: str) -> Task | None:
        def read(connection: sa.Connection) -> Task | None:
            return tasks.get(connection, TaskId(task_id))

        return await self.database.glance(read)

    async def _completion(self, task: Task, result: Any) -> Completion:
        """What is too long for a row is kept whole in a file, from which the model reads it in pieces."""
        plain = outcomes.plain_value(result, self.secrets)
        text = plain if isinstance(plain, str) else to_json(plain).decode()
        if len(text) <= LARGEST or task.is_over:
            return Completion(plain if len(text) <= LARGEST else beginning_of(text, task.id))
        file = await self.files.put(task.session_id, text.encode())
        return Completion(beginning_of(text, task.id), file=file, characters=len(text))

    def _failure(self, error: Any) -> Completion:
        plain = outcomes.plain_value(error, self.secrets)
        words = plain if isinstance(plain, str) else "" if plain is None else row_json.write(plain)
        message = redact(words, cut=_LONGEST_ERROR) or _NO_WORDS
        return Completion(error={"kind": "tool_error", "message": message})
