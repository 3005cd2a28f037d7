"""`run_sub_session`: give work to a session of its own, and get its answer at once or as a handle."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import sqlalchemy as sa
from pydantic import Field
from pydantic_ai import Tool
from pydantic_ai.exceptions import ToolFailed
from pydantic_core import to_json

from outlast.calls.call import RunningCall
from outlast.calls.control import waiting
from outlast.calls.control.parts import ControlParts, this_call
from outlast.errors import OutlastError
from outlast.ids import SessionId
from outlast.store.database import retry_while_unavailable
from outlast.store.repositories import agent_records, sessions
from outlast.store.repositories.stored_task import Task
from outlast.tool_hints import hints
from outlast.transitions import sub_sessions
from outlast.transitions.sub_sessions import Assignment
from outlast.values import json_schema

_REPORT = (
    "\n\nWhen you are done, call report_result(result=...) once. The result must fit this JSON Schema:\n{schema}\n"
    "Then end with a short word."
)
_GOES_ON = "It goes on in the background as task {task_id}. Its end will be told to you here; do not poll for it."


def run_sub_session(parts: ControlParts) -> Tool[Any]:
    """Run again after a crash it finds the work that it had given, by its call."""
    control = SubSessionControl(parts)

    async def run_sub_session(
        prompt: Annotated[str, Field(description="All that it needs to know: it sees nothing of this conversation.")],
        agent: Annotated[str | None, Field(description="Another agent by its name.")] = None,
        session_id: Annotated[str | None, Field(description="Go on with an earlier sub-session of yours.")] = None,
        wait_seconds: Annotated[float, Field(description="Wait so long for its answer (0-300).")] = 60,
        result_schema: Annotated[
            dict[str, Any] | None, Field(description="A JSON Schema that its result must fit.")
        ] = None,
    ) -> dict[str, Any]:
        """Let a sub-session do a piece of work by itself. Its answer comes at once, or later as a task's end."""
        call = this_call()
        task = await control.begin(call, prompt, agent, session_id, result_schema)
        return await control.answer(call, task, waiting.clamped(wait_seconds))

    return Tool(run_sub_session, takes_ctx=False, metadata=hints(idempotent=True, budget=None))


class SubSessionControl:
    def __init__(self, parts: ControlParts) -> None:
        self._parts = parts

    async def begin(
        self,
        call: RunningCall,
        prompt: str,
        agent: str | None,
        session_id: str | None,
        result_schema: Mapping[str, Any] | None,
    ) -> Task:
        if agent is not None and session_id is not None:
            raise ToolFailed("Either agent, for a new sub-session, or session_id, to go on with one. Not both.")
        try:
            schema = None if result_schema is None else json_schema.check(result_schema, "result_schema")
            said = prompt if schema is None else prompt + _REPORT.format(schema=to_json(schema).decode())
            asked = Assignment(
                prompt=call.secrets.mask(said),
                agent=await self._parts.read(partial(_agent, session_id=call.session_id, asked=agent)),
                key=call.key,
                turn_id=call.turn_id,
                call_id=call.call_id,
                result_schema=schema,
                deadline=self._parts.call_deadline,
            )
            begin = partial(
                sub_sessions.begin,
                parent_id=call.session_id,
                asked=asked,
                owner_id=call.owner_id,
                child_id=None if session_id is None else SessionId(session_id),
            )
            return await retry_while_unavailable(lambda: self._parts.database.transaction(begin, name="child.start"))
        except OutlastError as exc:
            if exc.code == "store_unavailable":
                raise
            raise ToolFailed(exc.message) from exc

    async def answer(self, call: RunningCall, task: Task, seconds: float) -> dict[str, Any]:
        (task,) = await waiting.until_over(self._parts, call, [task.id], seconds) or [task]
        told: dict[str, Any] = {"session_id": task.links[sub_sessions.CHILD], "task_id": task.id}
        if not task.is_over:
            return {
                "type": "background",
                **told,
                "tool": sub_sessions.TOOL,
                "state": task.state.value,
                "message": _GOES_ON.format(task_id=task.id),
            }
        call.told.append(task.id)
        told["state"] = task.state.value
        if task.error is not None:
            return {**told, "error": task.error}
        return {**told, "detail": task.detail} if task.state.value == "canceled" else {**told, "result": task.result}


def _agent(connection: sa.Connection, session_id: SessionId, asked: str | None) -> str:
    """That of the session, unless another one is asked for that somebody has recorded."""
    if asked is None:
        return sessions.agent_of(connection, session_id)
    known: Sequence[str] = [each.name for each in agent_records.every(connection)]
    if asked not in known:
        raise ToolFailed(f"There is no agent {asked!r}. There are: {', '.join(sorted(known))}.")
    return asked
