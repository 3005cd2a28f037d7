"""Background tasks: listed, waited for, cancelled, settled, and their output."""

from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import PlainTextResponse, StreamingResponse

from outlast.api import sse
from outlast.api.admission import AdmittedRoute
from outlast.api.auth import Caller, Decider
from outlast.api.wiring import (
    COMMON,
    DECIDED,
    FOUND,
    STREAM,
    Accept,
    Cursor,
    LastEventId,
    Limit,
    OwnTasks,
    Runtime,
    Wait,
    place_of,
    while_there,
)
from outlast.handles.tasks import Tasks
from outlast.wire.forms import ListOf
from outlast.wire.task import ApproveBody, CancelBody, Match, PieceAnswer, RefuseBody, ReplyBody, Task, TaskFilter
from outlast.wire.turn import SettleBody

router = APIRouter(prefix="/tasks", tags=["tasks"], responses=COMMON, route_class=AdmittedRoute)


@router.get("")
async def list_tasks(
    tasks: OwnTasks,
    state: Annotated[
        TaskFilter | None,
        Query(description="`open`: not ended yet. `settled`: in place of the state that a settled task ended in."),
    ] = None,
    kind: Annotated[str | None, Query(max_length=100)] = None,
    tool: Annotated[str | None, Query(max_length=200)] = None,
    session: Annotated[str | None, Query(max_length=100, description="Of this session only.")] = None,
    needing: Annotated[bool | None, Query(description="Those that wait for somebody, or all others.")] = None,
    order: Literal["newest", "oldest"] = "newest",
    limit: Limit = 50,
    cursor: Cursor = None,
) -> ListOf[Task]:
    """Your tasks over all sessions, newest first unless `order` says otherwise."""
    page = await tasks.page(
        session_id=session,
        state=state,
        kind=kind,
        tool=tool,
        is_needing=needing,
        order=order,
        before=cursor,
        limit=limit,
    )
    return ListOf(items=list(page.items), next=page.next)


@router.get("/{task_id}", responses=FOUND)
async def get_task(request: Request, tasks: OwnTasks, task_id: str, wait: Wait) -> Task:
    """A task as it is now, or at its end if that comes within `wait` seconds."""
    return await while_there(request, tasks.wait(task_id, seconds=wait))


@router.post("/{task_id}/cancel", responses=DECIDED)
async def cancel_task(outlast: Runtime, tasks: OwnTasks, task_id: str, body: CancelBody) -> Task:
    """Ask it to cancel. The answer is the truth: canceled, finished anyway, or not confirmed yet."""
    return await tasks.cancel(task_id, wait=min(body.wait, outlast.settings.max_wait.total_seconds()))


@router.post("/{task_id}/settle", responses=DECIDED)
async def settle_task(tasks: OwnTasks, task_id: str, body: SettleBody, caller: Caller) -> Task:
    """Say what became of a task that may or may not have taken effect; the model is told who said so."""
    return await tasks.settle(task_id, body.verdict, by=body.said_by(caller.label), note=body.note)


@router.post("/{task_id}/reply", responses=DECIDED)
async def reply_to_task(tasks: OwnTasks, task_id: str, body: ReplyBody, caller: Caller) -> Task:
    """Answer the question that it asks. The first valid answer wins; later ones are told whose that was (409)."""
    by = body.said_by(caller.label)
    return await tasks.reply(task_id, body.value, by=by, request_id=body.request_id)


@router.post("/{task_id}/approve", responses=DECIDED)
async def approve_task(tasks: OwnTasks, task_id: str, body: ApproveBody, caller: Decider) -> Task:
    """Let a call run that waits for an approval, with other arguments if some are given."""
    return await tasks.approve(task_id, by=body.said_by(caller.label), args=body.args, always=body.always)


@router.post("/{task_id}/refuse", responses=DECIDED)
async def refuse_task(tasks: OwnTasks, task_id: str, body: RefuseBody, caller: Decider) -> Task:
    """Keep a call from running that waits for an approval. The model is told who refused it, and why."""
    return await tasks.refuse(task_id, by=body.said_by(caller.label), reason=body.reason)


@router.get("/{task_id}/output", response_model=PieceAnswer, responses={**FOUND, **STREAM})
async def task_output(
    request: Request,
    tasks: OwnTasks,
    task_id: str,
    after: Annotated[int, Query(ge=0, lt=2**63, description="Characters already read.")] = 0,
    limit: Annotated[int, Query(ge=1, le=65_536)] = 65_536,
    tail: Annotated[int | None, Query(ge=1, le=65_536, description="In place of `after`: so much of its end.")] = None,
    last_event_id: LastEventId = None,
    accept: Accept = None,
) -> PieceAnswer | Response:
    """Its raw output from an offset on. With `Accept: text/event-stream`: while it runs, until it has ended."""
    offset = after if last_event_id is None else place_of(last_event_id)
    await tasks.get(task_id)
    if sse.wants_events(accept):
        return sse.response(request, _output(tasks, task_id, offset))
    if tail is not None:
        return PieceAnswer.of(await tasks.tail(task_id, length=tail))
    return PieceAnswer.of(await tasks.output(task_id, offset=offset, length=limit))


@router.get(
    "/{task_id}/output/text",
    response_class=PlainTextResponse,
    responses={**FOUND, 200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def download_output(tasks: OwnTasks, task_id: str) -> Response:
    """All that is kept of its output, as a file; what is no longer kept is said in its place."""
    task = await tasks.get(task_id)
    headers = {
        "Content-Disposition": f'attachment; filename="{task.id}.txt"',
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }
    return StreamingResponse(_whole(tasks, task_id), media_type="text/plain; charset=utf-8", headers=headers)


async def _whole(tasks: Tasks, task_id: str) -> AsyncIterator[bytes]:
    offset = 0
    while True:
        piece = await tasks.output(task_id, offset=offset)
        if piece.cut:
            yield f"\n[{piece.cut:,} characters are no longer kept]\n".encode()
        if not piece.text:
            return
        yield piece.text.encode(errors="replace")
        offset = piece.next_offset


@router.get("/{task_id}/output/search", responses=FOUND)
async def search_output(
    tasks: OwnTasks,
    task_id: str,
    text: Annotated[str, Query(min_length=1, max_length=200, description="In any case.")],
    limit: Limit = 100,
) -> ListOf[Match]:
    """The lines of its output that have this in them."""
    return ListOf(items=list(await tasks.search(task_id, text, limit=limit)))


async def _output(tasks: Tasks, task_id: str, offset: int) -> AsyncIterator[bytes]:
    """Pieces whose `id` is where to go on; at the end the task itself, without an id."""
    async with tasks.follow(task_id, offset=offset) as pieces:
        async for piece in pieces:
            body = PieceAnswer.of(piece).model_dump_json().encode()
            yield b"id: %d\ndata: %b\n\n" % (piece.next_offset, body)
        if pieces.ended is not None:
            yield b"event: end\ndata: %b\n\n" % pieces.ended.model_dump_json().encode()
