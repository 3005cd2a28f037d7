"""Where a chat's conversation runs: in this process, or in a server that others use too. Both look alike from here."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from outlast.cli import waiting
from outlast.client import Client
from outlast.client.session import Session as RemoteSession
from outlast.runtime import Outlast
from outlast.sessions.session import Session as LocalSession
from outlast.store.outputs import Piece
from outlast.store.tasks import Task
from outlast.wire.task import PieceAnswer, TaskAnswer

AnySession: TypeAlias = LocalSession | RemoteSession
LISTED = 500


class ChatHome(Protocol):
    async def get(self, session_id: str) -> AnySession: ...

    async def latest(self) -> AnySession | None:
        """The session that changed last."""
        ...

    async def create(self) -> AnySession: ...

    async def tasks(self, session_id: str, *, is_open: bool = False, limit: int = LISTED) -> Sequence[TaskAnswer]:
        """Newest first; `is_open` leaves out those that have ended."""
        ...

    async def cancel(self, task_id: str, *, wait: float) -> TaskAnswer: ...

    async def output(self, task_id: str, *, offset: int = 0) -> Piece | PieceAnswer: ...

    async def why_waits(self, session_id: str) -> str | None:
        """Why its turn is not begun, where that is known."""
        ...

    async def fates(self, session_id: str, *, has_turn: bool) -> Sequence[str]:
        """What becomes of that which goes on when the person leaves."""
        ...


@dataclass(frozen=True, slots=True)
class LocalHome:
    """This process: what goes on ends with it."""

    outlast: Outlast[Any, Any]

    async def get(self, session_id: str) -> AnySession:
        return await self.outlast.sessions.get(session_id)

    async def latest(self) -> AnySession | None:
        return next(iter(await self.outlast.sessions.list(limit=1)), None)

    async def create(self) -> AnySession:
        return await self.outlast.sessions.create()

    async def tasks(self, session_id: str, *, is_open: bool = False, limit: int = LISTED) -> Sequence[TaskAnswer]:
        found = await self.outlast.tasks.list(session_id=session_id, is_open=is_open or None, limit=limit)
        return [TaskAnswer.of(each) for each in found]

    async def cancel(self, task_id: str, *, wait: float) -> TaskAnswer:
        return TaskAnswer.of(await self.outlast.tasks.cancel(task_id, wait=wait))

    async def output(self, task_id: str, *, offset: int = 0) -> Piece:
        return await self.outlast.tasks.output(task_id, offset=offset)

    async def why_waits(self, session_id: str) -> str | None:
        session = await self.outlast.sessions.get(session_id)
        if session.state != "queued":
            return None
        if session.no_worker_for is not None:
            return waiting.nobody(session.no_worker_for, self.outlast.agents)
        pause = await self.outlast.paused()
        return None if pause is None else waiting.paused(pause.by)

    async def fates(self, session_id: str, *, has_turn: bool) -> Sequence[str]:
        turn = ["The turn is not over: at the next start it goes on from its last step."] if has_turn else []
        running = await self.outlast.tasks.list(session_id=session_id, is_open=True)
        return [*turn, *(f"↷ {each.title} ({each.id}) still runs. {_fate(each)}" for each in running)]


def _fate(task: Task) -> str:
    if task.may_run_again:
        return "It runs again at the next start."
    return (
        "If it does not end in the next seconds, the agent is told at the next start that it may or may not have "
        "taken effect."
    )


@dataclass(frozen=True, slots=True)
class RemoteHome:
    """A server: everything goes on there."""

    client: Client

    async def get(self, session_id: str) -> AnySession:
        return await self.client.sessions.get(session_id)

    async def latest(self) -> AnySession | None:
        return next(iter(await self.client.sessions.list(limit=1)), None)

    async def create(self) -> AnySession:
        return await self.client.sessions.create()

    async def tasks(self, session_id: str, *, is_open: bool = False, limit: int = LISTED) -> Sequence[TaskAnswer]:
        return await self.client.tasks.list(session_id=session_id, state="open" if is_open else None, limit=limit)

    async def cancel(self, task_id: str, *, wait: float) -> TaskAnswer:
        return await self.client.tasks.cancel(task_id, wait=wait)

    async def output(self, task_id: str, *, offset: int = 0) -> PieceAnswer:
        return await self.client.tasks.output(task_id, offset=offset)

    async def why_waits(self, session_id: str) -> str | None:
        return await waiting.reason(self.client, await self.client.sessions.get(session_id))

    async def fates(self, session_id: str, *, has_turn: bool) -> Sequence[str]:
        turn = ["The turn goes on in the server."] if has_turn else []
        running = await self.tasks(session_id, is_open=True)
        return [*turn, *(f"↷ {each.title} ({each.id}) goes on in the server." for each in running)]
