"""An operation elsewhere, opened by a tool: its task and its completion URL are there before the tool asks for it."""

import asyncio
import secrets as randomness
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from types import TracebackType
from urllib.parse import quote

from pydantic_ai.exceptions import ToolFailed

from outlast import ids
from outlast.calls.call import OpenOperation, Operations, RunningCall, current_call
from outlast.calls.within.channel import CallChannel
from outlast.errors import AttemptLost, InvalidInput, NotStarted
from outlast.ids import TaskId
from outlast.store.database import Database, decided, retry_while_unavailable
from outlast.store.repositories.stored_task import NewTask
from outlast.store.unit import Unit
from outlast.transitions.tasks import operations
from outlast.transitions.tasks.operations import Opened, TooManyOpen
from outlast.values import clean

_MASKED = 1_000
"""So many tokens are starred out at once: the newest, whose calls may still say something."""
_LONGEST_TITLE = 200


class NoPublicUrl(ToolFailed):
    """An operation elsewhere cannot be opened: nobody could say how it ended."""

    def __init__(self) -> None:
        super().__init__(
            "Nothing was begun: there is no address at which it could be completed. Set OUTLAST_PUBLIC_URL to the URL "
            "under which others reach this server."
        )


@dataclass(frozen=True, slots=True)
class OperationSource:
    """Opens operations for the calls of a worker. Its coroutines run on `loop` alone."""

    database: Database
    public_url: Callable[[], str | None]
    """The server's address as others know it; None: nobody has said it."""
    deadline: timedelta
    max_open: int
    loop: asyncio.AbstractEventLoop
    tokens: deque[str] = field(default_factory=deque[str], repr=False)

    async def open_for(self, call: RunningCall, *, deadline: timedelta | None, title: str | None) -> OpenOperation:
        """Committed when it returns. If an earlier attempt of the call has opened it, that one gets a token more."""
        server = self.public_url()
        if server is None:
            raise NoPublicUrl
        token = f"olt_{randomness.token_urlsafe(32)}"
        self._mask(call, token)
        said = "" if title is None else call.secrets.mask(clean.words_of(title, most=_LONGEST_TITLE))
        new = NewTask(
            ids.task_id(),
            title=said or call.tool,
            agent=call.agent,
            kind="external",
            turn_id=call.turn_id,
            tool=call.tool,
            spec={"opened_by": call.call_id},
            key=f"external/{call.idempotency_key}/{next(call.ordinals)}",
        )
        opened = await self._open(call, new, token, self.deadline if deadline is None else deadline)
        url = f"{server.rstrip('/')}/v1/tasks/{quote(opened.task.id)}/complete?token={token}"
        operation = OpenOperation(opened.task.id, opened.task.title, url, token, opened.is_new)
        call.operations.append(operation)
        return operation

    async def _open(self, call: RunningCall, new: NewTask, token: str, within: timedelta) -> Opened:
        def open_(unit: Unit) -> Opened:
            unit.lock(call.session_id)
            if isinstance(call.channel, CallChannel) and not call.channel.may_write(unit):
                raise AttemptLost("The call was given to another worker, or its turn has ended.")
            due = unit.now + within
            hash_ = operations.hash_of(token)
            return operations.open_(unit, call.session_id, new, token_hash=hash_, due=due, max_open=self.max_open)

        try:
            commit = partial(self.database.transaction, open_, name="open_operation")
            return await decided(retry_while_unavailable(commit))
        except TooManyOpen as exc:
            raise ToolFailed(f"Nothing was begun: no more can be left open here now. {exc}") from exc

    async def withdraw(self, call: RunningCall, task_id: TaskId) -> bool:
        take_back = partial(operations.withdraw, task_id=task_id)
        commit = partial(self.database.transaction, take_back, name="withdraw_operation")
        is_withdrawn = await decided(retry_while_unavailable(commit))
        if is_withdrawn:
            call.operations[:] = [each for each in call.operations if each.task_id != task_id]
        return is_withdrawn

    def _mask(self, call: RunningCall, token: str) -> None:
        """Wherever the tool says it: who has the token can complete the operation."""
        call.secrets.learn(token)
        self.tokens.append(token)
        if len(self.tokens) > _MASKED:
            call.secrets.forget(self.tokens.popleft())


class _Operation:
    """Work elsewhere that a call has set going, and that others complete."""

    def __init__(self, call: RunningCall, source: Operations, operation: OpenOperation) -> None:
        self._call = call
        self._source = source
        self.task_id = operation.task_id
        """The task that ends when the operation is completed, cancelled, or past its deadline."""
        self.url = operation.url
        """`POST {"success": true, "result": …}` here, or `{"success": false, "error": …}`: the token stands in it."""
        self.token = operation.token
        self.is_new = operation.is_new
        """False: an earlier attempt of this call opened it, so that its request may have gone out already."""


class Operation(_Operation):
    """In an async tool."""

    async def withdraw(self) -> bool:
        """Nothing was begun, or it was taken back: the task ends as canceled and wakes nobody. False: it is over."""
        return await self._source.withdraw(self._call, self.task_id)


class SyncOperation(_Operation):
    """In a sync tool, which waits in its own thread."""

    def withdraw(self) -> bool:
        """Nothing was begun, or it was taken back: the task ends as canceled and wakes nobody. False: it is over."""
        withdraw = self._source.withdraw(self._call, self.task_id)
        return asyncio.run_coroutine_threadsafe(withdraw, self._source.loop).result()


class external:
    """`async with outlast.external(deadline=…, title=…) as op` in a tool, `with` in a sync one.

    Before the block begins the task of the operation is committed, and `op.url` is where its end is told. Send that
    with the request. After the block the tool gives its value: the model gets it with the id of the task, and is
    woken by the completion. If the call fails after the operation was opened, the task stays open until its completion
    or deadline, for the request may have gone out; `op.withdraw()` ends it. A tool that is run again finds the same
    operation, by the order in which it opens them, with one more token.

    `deadline`: a duration, or seconds; the call deadline unless given.
    """

    def __init__(self, *, deadline: timedelta | float | None = None, title: str | None = None) -> None:
        self._deadline = timedelta(seconds=deadline) if isinstance(deadline, int | float) else deadline
        if self._deadline is not None and self._deadline <= timedelta(0):
            raise InvalidInput("The deadline of an operation is a time to come: give more than 0.")
        self._title = title

    async def __aenter__(self) -> Operation:
        call, source = _asked()
        return Operation(call, source, await source.open_for(call, deadline=self._deadline, title=self._title))

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def __enter__(self) -> SyncOperation:
        call, source = _asked()
        if _has_event_loop():
            raise NotStarted("`with outlast.external()` is for sync tools: write `async with` here.")
        opening = source.open_for(call, deadline=self._deadline, title=self._title)
        return SyncOperation(call, source, asyncio.run_coroutine_threadsafe(opening, source.loop).result())

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def _asked() -> tuple[RunningCall, Operations]:
    call = current_call.get()
    source = None if call is None else call.external
    if call is None or source is None:
        raise NotStarted("Operations elsewhere are opened by tools that Outlast runs: this was called outside of one.")
    return call, source


def _has_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
