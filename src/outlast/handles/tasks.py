"""Tasks as a program holds them: list, look, wait, cancel, complete, read output, answer what they ask, settle."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Literal

import sqlalchemy as sa

from outlast import paging
from outlast.errors import InvalidInput, NotFound
from outlast.events.closable import Stream
from outlast.events.signals import Signals, task_topic
from outlast.handles import reading
from outlast.handles.completions import Completions
from outlast.handles.services.shown import Shown
from outlast.ids import OwnerId, SessionId, TaskId
from outlast.paging import Page
from outlast.store.database import Database, retry_while_unavailable
from outlast.store.repositories import outputs, retention, sessions, task_facts, tasks
from outlast.store.repositories.outputs import Piece
from outlast.store.repositories.stored_task import Task as StoredTask
from outlast.store.unit import Unit
from outlast.transitions import cancel, verdicts
from outlast.transitions.tasks import open_request, requests
from outlast.values.check import check_characters
from outlast.wire.task import Match, Task, TaskFilter
from outlast.wire.task_state import TaskState
from outlast.wire.turn import Verdict

_PAGE = 64 * 1024
_LONGEST_SEARCH = 200
_AROUND = 200
"""Characters of a line that are shown on both sides of what was found."""
_OPEN = "open"
_SETTLED = "settled"
"""In place of a state: those that have not ended, and those of which a person said what became of them."""


@dataclass(frozen=True, slots=True)
class Completed:
    """The task as it stands. `applied`: this completion ended it."""

    task: Task
    applied: bool

    @property
    def id(self) -> TaskId:
        return self.task.id

    @property
    def state(self) -> TaskState:
        return self.task.state


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of one owner. Another owner's id and an unknown id get the same answer."""

    database: Database
    signals: Signals
    owner_id: OwnerId
    shown: Shown
    completions: Completions

    async def list(
        self,
        *,
        session_id: SessionId | str | None = None,
        state: TaskState | TaskFilter | None = None,
        kind: str | None = None,
        tool: str | None = None,
        is_needing: bool | None = None,
        order: Literal["newest", "oldest"] = "newest",
        before: TaskId | str | None = None,
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
        session_id: SessionId | str | None = None,
        state: TaskState | TaskFilter | None = None,
        kind: str | None = None,
        tool: str | None = None,
        is_needing: bool | None = None,
        order: Literal["newest", "oldest"] = "newest",
        before: TaskId | str | None = None,
        limit: int = 100,
    ) -> Page[Task]:
        """The same with the cursor for the next page: give it as `before`."""
        states = [_OPEN, *(each.value for each in TaskState), _SETTLED]
        if state is not None and state not in states:
            raise InvalidInput(f"{state!r} is not a state of a task: use one of {states}.")
        if order not in ("newest", "oldest"):
            raise InvalidInput(f"order={order!r} is not known: use newest or oldest.")
        check_characters(f"{kind or ''}{tool or ''}{before or ''}{session_id or ''}", "filter")
        is_of_tasks = state not in (None, _OPEN, _SETTLED)
        most = paging.clamp(limit)

        def read(connection: sa.Connection) -> tuple[Sequence[StoredTask], Collection[str]]:
            found = tasks.page(
                connection,
                owner_id=self.owner_id,
                session_id=None if session_id is None else SessionId(session_id),
                is_open=True if state == _OPEN else None,
                state=TaskState(state) if is_of_tasks else None,
                is_settled=None if state in (None, _OPEN) else state == _SETTLED,
                kind=kind,
                tool=tool,
                is_needing=is_needing,
                oldest_first=order == "oldest",
                before=before,
                limit=most + 1,
            )
            return task_facts.with_facts(connection, found), reading.unserved(connection, found)

        found, unserved = await self.database.read(read)
        shown = [self.shown.task(each, unserved=unserved) for each in found[:most]]
        return Page(shown, shown[-1].id if len(found) > most else None)

    async def get(self, task_id: TaskId | str) -> Task:
        def read(connection: sa.Connection) -> tuple[StoredTask, Collection[str]]:
            (task,) = task_facts.with_facts(connection, [self._own(connection, task_id)])
            return task, reading.unserved(connection, [task])

        task, unserved = await self.database.glance(read)
        return self.shown.task(task, unserved=unserved)

    async def wait(self, task_id: TaskId | str, *, seconds: float | None = None) -> Task:
        """Wait for the task's end, at most so long; gives it as it is then."""
        subscription = self.signals.subscribe(task_topic(TaskId(task_id)))
        loop = asyncio.get_running_loop()
        end = None if seconds is None else loop.time() + seconds
        while True:
            task = await self.get(task_id)
            left = 1.0 if end is None else end - loop.time()
            if task.is_over or left <= 0:
                return task
            await subscription.wait(min(left, 1.0))

    async def cancel(self, task_id: TaskId | str, *, wait: float = 10.0) -> Task:
        """Ask to cancel and wait a little for the truth: canceled, finished anyway, or not confirmed yet."""
        await self.database.transaction(
            lambda unit: cancel.request(unit, TaskId(task_id), owner_id=self.owner_id),
            name="cancel",
        )
        return await self.wait(task_id, seconds=wait)

    async def complete(self, task_id: TaskId | str, *, result: Any = None, error: str | None = None) -> Completed:
        """Say how an operation ended that is done elsewhere: with a result, or an error. The first one counts.

        `applied` of what it gives says whether this one did; `task` is the task as it stands.
        """
        done = await self.completions.complete(
            task_id, success=error is None, result=result, error=error, owner_id=self.owner_id
        )
        return Completed(self.shown.task(done.task), done.applied)

    async def output(self, task_id: TaskId | str, *, offset: int = 0, length: int = _PAGE) -> Piece:
        """A piece of the raw output; `next_offset` reads on, `cut` says what before it is no longer kept."""

        def read(connection: sa.Connection) -> Piece:
            task = self._own(connection, task_id)
            piece = outputs.read(connection, task.session_id, task.output_id, offset=offset, length=length)
            return _unless_removed(connection, task.id, piece)

        return self.shown.piece(await self.database.read(read))

    async def tail(self, task_id: TaskId | str, *, length: int = _PAGE) -> Piece:
        """The end of the raw output, so many characters of it at most."""

        def read(connection: sa.Connection) -> Piece:
            task = self._own(connection, task_id)
            begin = max(0, outputs.total(connection, task.session_id, task.output_id) - length)
            piece = outputs.read(connection, task.session_id, task.output_id, offset=begin, length=length)
            return _unless_removed(connection, task.id, piece)

        return self.shown.piece(await self.database.read(read))

    async def search(self, task_id: TaskId | str, text: str, *, limit: int = 100) -> Sequence[Match]:
        """The lines of the kept output that have this text in them, in any case: where, and what they say."""
        if not text or len(text) > _LONGEST_SEARCH:
            raise InvalidInput(f"Search for 1 to {_LONGEST_SEARCH} characters.")
        wanted, most = _lower(text), paging.clamp(limit)
        found: list[Match] = []
        piece = await self.output(task_id, length=outputs.HEAD + outputs.TAIL)
        while piece.text and len(found) < most:
            found += islice(_matches(piece, wanted), most - len(found))
            piece = await self.output(task_id, offset=piece.next_offset, length=outputs.HEAD + outputs.TAIL)
        return found

    def follow(self, task_id: TaskId | str, *, offset: int = 0) -> "OutputStream":
        """The output from an offset on, while the task runs and until it has ended. Use it in `async with`."""
        return OutputStream(self, TaskId(task_id), offset=offset)

    async def needing(self) -> int:
        """How many tasks wait for somebody, over all sessions: `requests` lists them."""
        return await self.database.read(lambda connection: tasks.needing_count(connection, self.owner_id))

    async def requests(
        self, *, session_id: SessionId | str | None = None, before: TaskId | str | None = None, limit: int = 100
    ) -> Page[Task]:
        """The tasks that wait for somebody, newest first: `request` says for what.

        `session_id`: of this session and of every session below it.
        """
        most, within = paging.clamp(limit), None if session_id is None else SessionId(session_id)

        def read(connection: sa.Connection) -> Sequence[StoredTask]:
            if within is not None and sessions.get(connection, within, self.owner_id) is None:
                raise NotFound("There is no such session.", id=within)
            return tasks.asking(connection, self.owner_id, within=within, before=before, limit=most + 1)

        found = await self.database.read(read)
        shown = [self.shown.task(each) for each in found[:most] if open_request.is_open(each)]
        return Page(shown, found[most - 1].id if len(found) > most else None)

    async def reply(
        self, task_id: TaskId | str, value: Any, *, by: str | None = None, request_id: str | None = None
    ) -> Task:
        """Answer the question that a task asks. The first valid answer wins; later ones get `Conflict` with whose.

        `request_id`: only if it still asks just this. `by` says to others who answered; else the owner did.
        """
        return await self._answered(
            partial(
                requests.answer,
                task_id=TaskId(task_id),
                value=value,
                owner_id=self.owner_id,
                by=self._name_of(by),
                request_id=request_id,
                mask=self.shown.value,
            ),
            "reply",
        )

    async def approve(
        self,
        task_id: TaskId | str,
        *,
        by: str | None = None,
        args: Mapping[str, Any] | None = None,
        always: str | bool = False,
    ) -> Task:
        """Let a call run that waits for an approval, with these arguments if some are given.

        `always`: later calls of the tool in this session are not asked about either, or those that this rule is about,
        such as `pay(amount<=100)`; the session's `permissions.always` lists it, and `withdraw_always` takes it back.
        """
        approve = partial(
            requests.approve,
            task_id=TaskId(task_id),
            owner_id=self.owner_id,
            by=self._name_of(by),
            args=None if args is None else dict(args),
            always=always,
            mask=self.shown.value,
        )
        return await self._answered(approve, "approve")

    async def refuse(self, task_id: TaskId | str, *, by: str | None = None, reason: str = "") -> Task:
        """Keep a call from running that waits for an approval; the model is told who refused it, and why."""
        refuse = partial(
            requests.refuse,
            task_id=TaskId(task_id),
            owner_id=self.owner_id,
            by=self._name_of(by),
            reason=self.shown.value(reason),
        )
        return await self._answered(refuse, "refuse")

    async def _answered(self, answer: Callable[[Unit], StoredTask], name: str) -> Task:
        return self.shown.task(await self.database.transaction(answer, name=name))

    async def settle(
        self, task_id: TaskId | str, verdict: Verdict | str, *, note: str = "", by: str | None = None
    ) -> Task:
        """Say what became of a task that may or may not have taken effect; the model is told who said so.

        Its state stands, and `settled` is shown in its place. `try_again` runs it as a new task: `links["retried_as"]`.
        `by` says who says so; else the owner does.
        """
        said = verdicts.parse(verdict)
        settled = await self.database.transaction(
            lambda unit: verdicts.of_task(
                unit,
                TaskId(task_id),
                said,
                by=self._name_of(by),
                note=self.shown.value(note),
                owner_id=self.owner_id,
            ),
            name="settle_task",
        )
        return self.shown.task(settled)

    def _name_of(self, by: str | None) -> str:
        """Who answers or decides, as it is stored."""
        return self.shown.value(by) or self.owner_id

    def _own(self, connection: sa.Connection, task_id: TaskId | str) -> StoredTask:
        task = tasks.get(connection, TaskId(task_id))
        if task is None or task.owner_id != self.owner_id:
            raise NotFound("There is no such task.", id=task_id)
        return task


def _lower(text: str) -> str:
    """Character by character, so that places stay where they are."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(each if len(small := each.lower()) != 1 else small for each in text)


def _matches(piece: Piece, wanted: str) -> Iterator[Match]:
    """One for each line, by its first match."""
    offset = piece.offset
    for line in piece.text.splitlines(keepends=True):
        at = _lower(line).find(wanted)
        if at >= 0:
            begin, end = max(0, at - _AROUND), at + len(wanted) + _AROUND
            yield Match(offset=offset + at, line=line[begin:end].rstrip("\r\n"))
        offset += len(line)


class OutputStream(Stream[Piece]):
    """The output of a task while it runs; ends with the task, which `ended` then has.

    While the store is unavailable it waits, and goes on where it was.
    """

    def __init__(self, tasks: Tasks, task_id: TaskId, *, offset: int) -> None:
        super().__init__(self._follow())
        self.offset = offset
        self.ended: Task | None = None
        self._tasks = tasks
        self._task_id = task_id

    async def _follow(self) -> AsyncGenerator[Piece]:
        subscription = self._tasks.signals.subscribe(task_topic(self._task_id))
        while True:
            task, piece = await retry_while_unavailable(self._look)
            if piece.text:
                self.offset = piece.next_offset
                yield piece
            elif task.is_over:
                self.ended = task
                return
            else:
                await subscription.wait(0.2)

    async def _look(self) -> tuple[Task, Piece]:
        """In this order: what was written before the end is in the piece of a task that is over."""
        task = await self._tasks.get(self._task_id)
        return task, await self._tasks.output(self._task_id, offset=self.offset)


def _unless_removed(connection: sa.Connection, task_id: TaskId, piece: Piece) -> Piece:
    if piece.text or not piece.total:
        return piece
    return replace(piece, removed_at=retention.output_removed_at(connection, task_id))
