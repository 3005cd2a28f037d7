"""`read_output`: results that are long or were left out, and the raw output of calls and tasks, in pieces."""

from functools import partial
from typing import Annotated, Any, Literal

import sqlalchemy as sa
from pydantic import Field
from pydantic_ai import Tool
from pydantic_ai.exceptions import ToolFailed
from pydantic_core import to_json

from outlast.calls.call import RunningCall
from outlast.calls.control import stored_result
from outlast.calls.control.parts import ControlParts, this_call
from outlast.ids import SessionId, TaskId
from outlast.store.database import retry_while_unavailable
from outlast.store.repositories import outputs, retention, tasks
from outlast.store.repositories.stored_task import Task
from outlast.tool_hints import hints

LONGEST_PIECE = 32 * 1024


def read_output(parts: ControlParts) -> Tool[Any]:
    reader = OutputReader(parts)

    async def read_output(
        id: Annotated[str, Field(description="A task_id or a tool call id.")],
        offset: Annotated[int, Field(ge=0, description="Where to begin, in characters.")] = 0,
        length: Annotated[int, Field(ge=1, description="How many characters, at most 32768.")] = 8192,
        what: Annotated[
            Literal["auto", "output", "result"],
            Field(description="auto: the raw output if there is any, else the result."),
        ] = "auto",
    ) -> dict[str, Any]:
        """Read a result that is long or was left out, or the raw output of a call or task, piece by piece."""
        return await reader.read(this_call(), id, offset=offset, length=min(length, LONGEST_PIECE), what=what)

    return Tool(read_output, takes_ctx=False, metadata=hints(read_only=True, budget=None))


class OutputReader:
    """Reads what belongs to the session whose call runs, and nothing else."""

    def __init__(self, parts: ControlParts) -> None:
        self._parts = parts

    async def read(self, call: RunningCall, id: str, *, offset: int, length: int, what: str) -> dict[str, Any]:
        call_id, task = await self._resolve(call.session_id, id)
        if call_id is None:
            return await self._of_history(call.session_id, id, offset, length, what)
        if what != "result":
            piece = await self._parts.read(
                lambda connection: outputs.read(connection, call.session_id, call_id, offset=offset, length=length)
            )
            if piece.total > 0 or what == "output":
                told = _piece(piece.text, piece.offset, piece.next_offset, piece.total, cut=piece.cut)
                if task is not None and not piece.text and piece.total > 0:
                    removed = await self._parts.read(partial(retention.output_removed_at, task_id=task.id))
                    told |= (
                        {} if removed is None else {"removed": f"on {removed:%Y-%m-%d}; output is kept for a time only"}
                    )
                return told
        return _piece_of(await self._result(call.session_id, call_id, task), offset, length)

    async def _of_history(self, session_id: SessionId, id: str, offset: int, length: int, what: str) -> dict[str, Any]:
        text = None if what == "output" else await stored_result.find(self._parts, session_id, id)
        if text is None:
            raise ToolFailed(
                f"There is no {'output' if what == 'output' else 'result'} of {id!r} in this conversation."
            )
        return _piece_of(text, offset, length)

    async def _resolve(self, session_id: SessionId, id: str) -> tuple[str | None, Task | None]:
        """Neither a task nor a call with output or a long result: None; what it came to stands in history alone."""

        def read(connection: sa.Connection) -> tuple[Task | None, bool]:
            task = tasks.get(connection, TaskId(id)) or tasks.of_call(connection, session_id, id)
            is_known = outputs.total(connection, session_id, id) > 0
            return task, is_known or outputs.result_file(connection, session_id, id) is not None

        task, is_known = await self._parts.read(read)
        if task is not None and task.session_id == session_id:
            return task.output_id, task
        return (id, None) if is_known else (None, None)

    async def _result(self, session_id: SessionId, call_id: str, task: Task | None) -> str:
        file = await self._parts.read(lambda connection: outputs.result_file(connection, session_id, call_id))
        if file is not None:
            return (await retry_while_unavailable(lambda: self._parts.files.get(file))).decode()
        if task is None and (text := await stored_result.find(self._parts, session_id, call_id)) is not None:
            return text
        if task is None or not task.is_over:
            raise ToolFailed(f"{call_id!r} has no result yet.")
        return task.result if isinstance(task.result, str) else to_json(task.result).decode()


def _piece_of(text: str, offset: int, length: int) -> dict[str, Any]:
    return _piece(text[offset : offset + length], offset, min(offset + length, len(text)), len(text))


def _piece(text: str, offset: int, next_offset: int, total: int, *, cut: int = 0) -> dict[str, Any]:
    piece: dict[str, Any] = {"text": text, "offset": offset, "characters_total": total}
    if cut:
        piece["left_out"] = f"{cut} characters before this are no longer kept"
    if next_offset < total:
        piece["next_offset"] = next_offset
    return piece
