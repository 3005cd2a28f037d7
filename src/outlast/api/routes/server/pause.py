"""Pausing the work of the whole server, for admins."""

from fastapi import APIRouter

from outlast.api.admission import AdmittedRoute
from outlast.api.auth import Admin
from outlast.api.wiring import COMMON, Runtime
from outlast.store.repositories.pauses import Pause
from outlast.wire.about import PauseAnswer

router = APIRouter(prefix="/pause", tags=["pause"], responses=COMMON, route_class=AdmittedRoute)


@router.get("")
async def get_pause(outlast: Runtime, _: Admin) -> PauseAnswer:
    """Whether new work is started."""
    return _answer(await outlast.paused())


@router.post("")
async def pause(outlast: Runtime, caller: Admin) -> PauseAnswer:
    """Start nothing new until it is ended, over restarts too. Everything is accepted, and what runs goes on."""
    return _answer(await outlast.pause(by=caller.label))


@router.delete("")
async def unpause(outlast: Runtime, _: Admin) -> PauseAnswer:
    """Start what waited meanwhile."""
    await outlast.unpause()
    return _answer(None)


def _answer(found: Pause | None) -> PauseAnswer:
    if found is None:
        return PauseAnswer(is_paused=False, by=None, since=None)
    return PauseAnswer(is_paused=True, by=found.by, since=found.since)
