"""A session as people see it, and the blocks of it that were too large for their page."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from outlast.api.admission import AdmittedRoute
from outlast.api.wiring import COMMON, FOUND, OwnSession
from outlast.wire.view import Block, SessionView

router = APIRouter(prefix="/sessions/{session_id}", tags=["sessions"], responses=COMMON, route_class=AdmittedRoute)


@router.get("/view", response_model=SessionView, responses=FOUND)
async def get_view(
    session: OwnSession,
    turns: Annotated[int, Query(ge=1, le=100, description="So many turns, the last ones.")] = 30,
    before: Annotated[str | None, Query(max_length=100, description="`next` of the page before.")] = None,
) -> Response:
    """A page of the session as people see it: turns as blocks, what waits, its tasks, and where to go on reading.

    All of one moment: `GET /v1/events?after={feed}&sessions={id}:{as_of}` goes on from exactly there. A page has at
    most 1 MiB; what is larger is shown as its beginning, with a link to the whole.
    """
    return _json(await session.view_json(turns=turns, before=before))


@router.get("/turns/{turn_id}/blocks/{number}", response_model=Block, responses=FOUND)
async def get_block(session: OwnSession, turn_id: str, number: Annotated[int, Path(ge=0, lt=2**31)]) -> Response:
    """One block of a turn, whole: those kept of a turn that it replaces are counted first, from 0 on."""
    return _json(await session.block_json(turn_id, number))


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")
