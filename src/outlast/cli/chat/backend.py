"""Where a chat's session runs: in this process, or in a server that others use too."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from outlast.cli import waiting
from outlast.client import Client
from outlast.client.session import Session as RemoteSession
from outlast.handles.session import Session as LocalSession
from outlast.handles.sessions import Sessions
from outlast.runtime import LOCAL_OWNER, Outlast
from outlast.store.repositories.outputs import Piece
from outlast.wire.task import PieceAnswer, Task

AnySession: TypeAlias = LocalSession | RemoteSession
LISTED = 500


class ChatBackend(Protocol):
    async def get(self, session_id: str) -> AnySession: ...

    async def latest(self, agent: str | None = None) -> AnySession | None:
        """The session that changed last, of all or of an agent."""
        ...

    async def create(self, agent: str | None = None) -> AnySession: ...

    async def tasks(self, session_id: str, *, is_open: bool = False, limit: int = LISTED) -> Sequence[Task]:
        """Newest first; `is_open` leaves out those that have ended."""
        ...

    async def cancel(self, task_id: str, *, wait: float) -> Task: ...

    async def requests(self, session_id: str) -> Sequence[Task]:
        """What waits for somebody in this session and below it."""
        ...

    async def approve(self, task_id: str) -> Task: ...

    async def refuse(self, task_id: str, *, reason: str) -> Task: ...

    async def reply(self, task_id: str, value: Any) -> Task: ...

    async def output(self, task_id: str, *, offset: int = 0) -> Piece | PieceAnswer: ...

    async def why_waits(self, session_id: str) -> str | None:
        """Why its turn is not begun, where that is known."""
        ...

    async def unfinished(self, session_id: str, *, has_turn: bool) -> Sequence[str]:
        """What still runs when the person quits, and what becomes of it: a line each."""
        ...


@dataclass(frozen=True, slots=True)
class LocalBackend:
    """This process: what goes on ends with it."""

    outlast: Outlast[Any, Any]

    @property
    def _sessions(self) -> Sessions:
        """Their outputs as JSON, which is what is shown of them."""
        return self.outlast.owned_by(LOCAL_OWNER, as_json=True)

    async def get(self, session_id: str) -> AnySession:
        return await self._sessions.get(session_id)

    async def latest(self, agent: str | None = None) -> AnySession | None:
        return next(iter(await self._sessions.list(limit=1, agent=agent)), None)

    async def create(self, agent: str | None = None) -> AnySession:
        return await self._sessions.create(agent=agent)

    async def tasks(self, session_id: str, *, is_open: bool = False, limit: int = LISTED) -> Sequence[Task]:
        return await self.outlast.tasks.list(session_id=session_id, state="open" if is_open else None, limit=limit)

    async def cancel(self, task_id: str, *, wait: float) -> Task:
        return await self.outlast.tasks.cancel(task_id, wait=wait)

    async def requests(self, session_id: str) -> Sequence[Task]:
        return (await self.outlast.tasks.requests(session_id=session_id)).items

    async def approve(self, task_id: str) -> Task:
        return await self.outlast.tasks.approve(task_id)

    async def refuse(self, task_id: str, *, reason: str) -> Task:
        return await self.outlast.tasks.refuse(task_id, reason=reason)

    async def reply(self, task_id: str, value: Any) -> Task:
        return await self.outlast.tasks.reply(task_id, value)

    async def output(self, task_id: str, *, offset: int = 0) -> Piece:
        return await self.outlast.tasks.output(task_id, offset=offset)

    async def why_waits(self, session_id: str) -> str | None:
        session = await self._sessions.get(session_id)
        if session.state != "queued":
            return None
        if session.no_worker_for is not None:
            living = [each.name for each in await self.outlast.known_agents() if each.has_worker]
            return waiting.no_worker(session.no_worker_for, living)
        pause = await self.outlast.paused()
        return None if pause is None else waiting.paused(pause.by)

    async def unfinished(self, session_id: str, *, has_turn: bool) -> Sequence[str]:
        turn = ["The turn is not over: at the next start it goes on from its last step."] if has_turn else []
        running = await self.outlast.tasks.list(session_id=session_id, state="open")
        return [*turn, *(f"↷ {each.title} ({each.id}) still runs. {_consequence(each)}" for each in running)]


def _consequence(task: Task) -> str:
    if task.may_run_again:
        return "It runs again at the next start."
    return (
        "If it does not end in the next seconds, the agent is told at the next start that it may or may not have "
        "taken effect."
    )


@dataclass(frozen=True, slots=True)
class RemoteBackend:
    """A server: everything goes on there."""

    client: Client

    async def get(self, session_id: str) -> AnySession:
        return await self.client.sessions.get(session_id)

    async def latest(self, agent: str | None = None) -> AnySession | None:
        return next(iter(await self.client.sessions.list(limit=1, agent=agent)), None)

    async def create(self, agent: str | None = None) -> AnySession:
        return await self.client.sessions.create(agent=agent)

    async def tasks(self, session_id: str, *, is_open: bool = False, limit: int = LISTED) -> Sequence[Task]:
        return await self.client.tasks.list(session_id=session_id, state="open" if is_open else None, limit=limit)

    async def cancel(self, task_id: str, *, wait: float) -> Task:
        return await self.client.tasks.cancel(task_id, wait=wait)

    async def requests(self, session_id: str) -> Sequence[Task]:
        return (await self.client.tasks.requests(session_id=session_id)).items

    async def approve(self, task_id: str) -> Task:
        return await self.client.tasks.approve(task_id)

    async def refuse(self, task_id: str, *, reason: str) -> Task:
        return await self.client.tasks.refuse(task_id, reason=reason)

    async def reply(self, task_id: str, value: Any) -> Task:
        return await self.client.tasks.reply(task_id, value)

    async def output(self, task_id: str, *, offset: int = 0) -> PieceAnswer:
        return await self.client.tasks.output(task_id, offset=offset)

    async def why_waits(self, session_id: str) -> str | None:
        return await waiting.reason(self.client, await self.client.sessions.get(session_id))

    async def unfinished(self, session_id: str, *, has_turn: bool) -> Sequence[str]:
        turn = ["The turn goes on in the server."] if has_turn else []
        running = await self.tasks(session_id, is_open=True)
        return [*turn, *(f"↷ {each.title} ({each.id}) goes on in the server." for each in running)]
