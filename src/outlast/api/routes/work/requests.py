"""What tasks ask people for: over all sessions of the caller, or over one and all below it."""

from fastapi import APIRouter

from outlast.api.admission import AdmittedRoute
from outlast.api.wiring import COMMON, FOUND, Cursor, Limit, OwnTasks
from outlast.handles.tasks import Tasks
from outlast.wire.forms import ListOf
from outlast.wire.task import CountAnswer, Task

router = APIRouter(tags=["tasks"], responses=COMMON, route_class=AdmittedRoute)


@router.get("/requests")
async def list_requests(tasks: OwnTasks, limit: Limit = 50, cursor: Cursor = None) -> ListOf[Task]:
    """Your tasks that wait for somebody, newest first: `request` says for what."""
    return await _page(tasks, None, limit, cursor)


@router.get("/requests/count")
async def count_requests(tasks: OwnTasks) -> CountAnswer:
    """How many of your tasks wait for somebody, over all sessions."""
    return CountAnswer(count=await tasks.needing())


@router.get("/sessions/{session_id}/requests", responses=FOUND)
async def list_session_requests(
    tasks: OwnTasks, session_id: str, limit: Limit = 50, cursor: Cursor = None
) -> ListOf[Task]:
    """The same of a session and of every session below it."""
    return await _page(tasks, session_id, limit, cursor)


async def _page(tasks: Tasks, session_id: str | None, limit: int, cursor: str | None) -> ListOf[Task]:
    page = await tasks.requests(session_id=session_id, before=cursor, limit=limit)
    return ListOf(items=list(page.items), next=page.next)
