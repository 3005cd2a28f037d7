"""Background tasks as a client holds them: list, look, wait, cancel, complete, read, answer what they ask, settle."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import JsonValue

from outlast.client.connection import Connection, path
from outlast.client.streams import OutputStream
from outlast.client.turn import deadline, long_poll, seconds_left
from outlast.paging import Page
from outlast.wire.forms import ListOf
from outlast.wire.task import CompletionAnswer, Match, PieceAnswer, Task, TaskFilter
from outlast.wire.turn import Verdict


class Tasks:
    """The tasks of the caller. Another owner's id and an unknown id get the same answer."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def list(
        self,
        *,
        session_id: str | None = None,
        state: TaskFilter | None = None,
        kind: str | None = None,
        tool: str | None = None,
        is_needing: bool | None = None,
        order: Literal["newest", "oldest"] = "newest",
        before: str | None = None,
        limit: int = 100,
    ) -> Sequence[Task]:
        """Newest first, a page at a time; `before` is the id of the last one seen.

        `state="open"` leaves out those that have ended. Those that were settled are found by `state="settled"`, and not
        by the state that they ended in. `is_needing`: those that wait for somebody, or all others. `order="oldest"`
        turns the list around.
        """
        found = await self.page(
            session_id=session_id,
            state=state,
            kind=kind,
            tool=tool,
            is_needing=is_needing,
            order=order,
            before=before,
            limit=limit,
        )
        return found.items

    async def page(
        self,
        *,
        session_id: str | None = None,
        state: TaskFilter | None = None,
        kind: str | None = None,
        tool: str | None = None,
        is_needing: bool | None = None,
        order: Literal["newest", "oldest"] = "newest",
        before: str | None = None,
        limit: int = 100,
    ) -> Page[Task]:
        """The same with the cursor for the next page: give it as `before`."""
        answer = await self._connection.get(
            "/v1/tasks",
            session=session_id,
            state=state,
            kind=kind,
            tool=tool,
            needing=is_needing,
            order=order,
            cursor=before,
            limit=limit,
        )
        found = ListOf[Task].model_validate(answer)
        return Page(found.items, found.next)

    async def get(self, task_id: str) -> Task:
        return Task.model_validate(await self._connection.get(path("tasks", task_id)))

    async def wait(self, task_id: str, *, seconds: float | None = None) -> Task:
        """Wait for the task's end, at most so long; gives it as it is then."""
        until = deadline(seconds)
        while True:
            left = seconds_left(until)
            task = Task.model_validate(await self._connection.get(path("tasks", task_id), wait=long_poll(left)))
            if task.is_over or left == 0:
                return task

    async def cancel(self, task_id: str, *, wait: float = 10.0) -> Task:
        """Ask to cancel and wait a little for the truth: canceled, finished anyway, or not confirmed yet."""
        answer = await self._connection.ask(
            "POST", path("tasks", task_id, "cancel"), body={"wait": wait}, is_repeatable=True, wait=wait
        )
        return Task.model_validate(answer)

    async def complete(self, task_id: str, *, result: Any = None, error: str | None = None) -> CompletionAnswer:
        """Say how an operation ended that is done elsewhere: with a result, or an error. The first one counts."""
        body = {"success": True, "result": result} if error is None else {"success": False, "error": error}
        answer = await self._connection.ask("POST", path("tasks", task_id, "complete"), body=body, is_repeatable=True)
        return CompletionAnswer.model_validate(answer)

    async def output(self, task_id: str, *, offset: int = 0, length: int = 65_536) -> PieceAnswer:
        """A piece of the raw output; `next_offset` reads on, `cut` says what before it is no longer kept."""
        answer = await self._connection.get(path("tasks", task_id, "output"), after=offset, limit=length)
        return PieceAnswer.model_validate(answer)

    async def tail(self, task_id: str, *, length: int = 65_536) -> PieceAnswer:
        """The end of the raw output, so many characters of it at most."""
        answer = await self._connection.get(path("tasks", task_id, "output"), tail=length)
        return PieceAnswer.model_validate(answer)

    async def search(self, task_id: str, text: str, *, limit: int = 100) -> Sequence[Match]:
        """The lines of the kept output that have this text in them, in any case: where, and what they say."""
        answer = await self._connection.get(path("tasks", task_id, "output", "search"), text=text, limit=limit)
        return ListOf[Match].model_validate(answer).items

    def follow(self, task_id: str, *, offset: int = 0) -> OutputStream:
        """The output from an offset on, while the task runs and until it has ended. Use it in `async with`."""
        return OutputStream(self._connection, task_id, offset=offset)

    async def needing(self) -> int:
        """How many tasks wait for somebody, over all sessions: `requests` lists them."""
        return (await self._connection.get("/v1/requests/count"))["count"]

    async def requests(
        self, *, session_id: str | None = None, before: str | None = None, limit: int = 100
    ) -> Page[Task]:
        """The tasks that wait for somebody, newest first: `request` says for what.

        `session_id`: of this session and of every session below it.
        """
        where = "/v1/requests" if session_id is None else path("sessions", session_id, "requests")
        found = ListOf[Task].model_validate(await self._connection.get(where, cursor=before, limit=limit))
        return Page(found.items, found.next)

    async def reply(
        self, task_id: str, value: JsonValue, *, by: str | None = None, request_id: str | None = None
    ) -> Task:
        """Answer the question that a task asks. The first valid answer wins; later ones get `Conflict` with whose.

        `request_id`: only if it still asks just this. `by` stands beside the name of the key.
        """
        return await self._answered(task_id, "reply", {"value": value, "by": by, "request_id": request_id})

    async def approve(
        self,
        task_id: str,
        *,
        by: str | None = None,
        args: Mapping[str, JsonValue] | None = None,
        always: str | bool = False,
    ) -> Task:
        """Let a call run that waits for an approval, with these arguments if some are given.

        `always`: later calls of the tool in this session are not asked about either, or those that this rule is about,
        such as `pay(amount<=100)`; the session's `permissions.always` lists it, and `withdraw_always` takes it back.
        """
        return await self._answered(task_id, "approve", {"by": by, "args": args, "always": always})

    async def refuse(self, task_id: str, *, by: str | None = None, reason: str = "") -> Task:
        """Keep a call from running that waits for an approval; the model is told who refused it, and why."""
        return await self._answered(task_id, "refuse", {"by": by, "reason": reason})

    async def _answered(self, task_id: str, verb: str, body: dict[str, object]) -> Task:
        return Task.model_validate(await self._connection.ask("POST", path("tasks", task_id, verb), body=body))

    async def settle(self, task_id: str, verdict: Verdict | str, *, note: str = "", by: str | None = None) -> Task:
        """Say what became of a task that may or may not have taken effect; the model is told who said so.

        `by` stands beside the name of the key: whoever has that says so.
        """
        answer = await self._connection.ask(
            "POST", path("tasks", task_id, "settle"), body={"verdict": verdict, "note": note, "by": by}
        )
        return Task.model_validate(answer)
