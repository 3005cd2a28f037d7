"""What a call asks somebody while it runs, one question at a time. For that it must be a task, and becomes one."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pydantic_ai.exceptions import ToolFailed

from outlast.errors import AttemptLost, InvalidInput, TooManyRequests
from outlast.events.signals import Signals, task_topic
from outlast.ids import TaskId
from outlast.store.database import Database, decided, retry_while_unavailable
from outlast.store.repositories import tasks
from outlast.store.unit import Unit
from outlast.transitions import questions
from outlast.transitions.tasks import requests
from outlast.transitions.tasks.requests import Given, Question
from outlast.values import clean
from outlast.values.foreign import schema as shown_schema
from outlast.values.secrets import Secrets

_CANNOT = "It has a question and cannot ask it: {why}"
_STOPPED = "it was told to stop."


class QuestionStopped(ToolFailed):
    """The call was told to stop while code beside it, such as its thread, waited for an answer."""


class Asking:
    """The tasks of a worker whose code waits for an answer: meanwhile they take no place."""

    def __init__(self) -> None:
        self.when_more: Callable[[], None] = lambda: None
        """Called when one more waits, and its place is free."""
        self._task_ids: set[TaskId] = set()

    def count(self, is_meant: Callable[[TaskId], bool]) -> int:
        """Of those that are meant. Safe from any thread."""
        return sum(map(is_meant, list(self._task_ids)))

    def begin(self, task_id: TaskId) -> None:
        self._task_ids.add(task_id)
        self.when_more()

    def end(self, task_id: TaskId) -> None:
        self._task_ids.discard(task_id)


@dataclass(frozen=True, slots=True)
class QuestionSource:
    """For all calls of a worker. Questions are asked on `loop` alone."""

    database: Database
    signals: Signals
    loop: asyncio.AbstractEventLoop
    asking: Asking = field(default_factory=Asking)

    def of_call(self, secrets: Secrets) -> "CallQuestions":
        return CallQuestions(self, secrets)


@dataclass(frozen=True, slots=True)
class _OwnTask:
    """The task that the call is. `asked` was opened in the commit that made it one."""

    task_id: TaskId
    attempt: int
    asked: Question | None


class CallQuestions:
    """One per call. Its questions have numbers: a call that is run again gets the answers that were given."""

    def __init__(self, source: QuestionSource, secrets: Secrets) -> None:
        self.wanted: asyncio.Future[Question] = source.loop.create_future()
        """The first question of a call that is no task yet: whoever runs it parks it with this."""
        self.is_open = False
        """It waits for an answer: that takes none of its time."""
        self._source = source
        self._secrets = secrets
        self._own_task: asyncio.Future[_OwnTask | str] = source.loop.create_future()
        self._next = 0
        self._one_at_a_time = asyncio.Lock()
        self._is_stopped = False
        self._beside: set[asyncio.Task[Any]] = set()

    def become_task(self, task_id: TaskId, attempt: int, asked: Question | None = None) -> None:
        """The call is a task, from now on or from its start."""
        if not self._own_task.done():
            self._own_task.set_result(_OwnTask(task_id, attempt, asked))

    def refuse(self, why: str) -> None:
        """It cannot become one."""
        if not self._own_task.done():
            self._own_task.set_result(why)

    def stop(self) -> None:
        """Before the call is cancelled: what it asks stays as it is, for whoever tells its end or runs it again."""
        self._is_stopped = True
        self.refuse(_STOPPED)
        for each in self._beside:
            each.cancel()

    async def ask(self, prompt: str, schema: dict[str, Any] | None) -> Any:
        number, self._next = self._next, self._next + 1
        async with self._one_at_a_time:
            try:
                return await self._ask(number, prompt, schema)
            except (InvalidInput, TooManyRequests) as exc:
                raise ToolFailed(_CANNOT.format(why=str(exc))) from exc

    async def ask_beside(self, prompt: str, schema: dict[str, Any] | None) -> Any:
        """The same for code that is not cancelled with its call: when that is told to stop, it is refused."""
        asking = asyncio.create_task(self.ask(prompt, schema), name="question")
        self._beside.add(asking)
        try:
            return await asking
        except asyncio.CancelledError:
            if not self._is_stopped:
                raise
            raise QuestionStopped(_CANNOT.format(why=_STOPPED)) from None
        finally:
            asking.cancel()
            self._beside.discard(asking)

    def ask_in_thread(self, prompt: str, schema: dict[str, Any] | None) -> Any:
        """The same for a sync tool, which waits in its own thread."""
        return asyncio.run_coroutine_threadsafe(self.ask_beside(prompt, schema), self._source.loop).result()

    async def _ask(self, number: int, prompt: str, schema: dict[str, Any] | None) -> Any:
        kept = requests.check_question(prompt, schema)
        question = Question(number, clean.text(self._secrets.mask(prompt)), shown_schema(self._secrets, kept))
        try:
            own = await self._task(question)
            return (await self._answer(own, question)).value
        except asyncio.CancelledError:
            if not self._is_stopped:  # its tool no longer waits, and goes on
                await decided(self._withdraw(question))
            raise

    async def _task(self, question: Question) -> _OwnTask:
        if not self._own_task.done() and not self.wanted.done():
            self.wanted.set_result(question)
        own = await asyncio.shield(self._own_task)
        if isinstance(own, str):
            raise ToolFailed(_CANNOT.format(why=own))
        return own

    async def _answer(self, own: _OwnTask, question: Question) -> Given:
        subscription = self._source.signals.subscribe(task_topic(own.task_id))
        self.is_open = True
        try:
            given = None if own.asked is question else await self._open(own, question)
            self._source.asking.begin(own.task_id)
            while given is None:
                given = await self._look(own, question)
                if given is None:
                    await subscription.wait()
            return given
        finally:
            self.is_open = False
            self._source.asking.end(own.task_id)

    async def _open(self, own: _OwnTask, question: Question) -> Given | None:
        ask = partial(questions.ask, task_id=own.task_id, question=question, attempt=own.attempt)
        return await retry_while_unavailable(lambda: self._source.database.transaction(ask, name="ask"))

    async def _look(self, own: _OwnTask, question: Question) -> Given | None:
        task = await retry_while_unavailable(
            lambda: self._source.database.glance(lambda connection: tasks.get(connection, own.task_id))
        )
        if task is None or not task.is_run_by(own.attempt):
            raise AttemptLost("The call was given to another worker, or is over.")
        return requests.given(task, question)

    async def _withdraw(self, question: Question) -> None:
        own = await asyncio.shield(self._own_task)
        if isinstance(own, str):
            return

        def withdraw(unit: Unit) -> None:
            task = tasks.get(unit.connection, own.task_id)
            if task is not None and task.request is not None and question.is_of(task.request):
                requests.withdraw(unit, own.task_id, task.request["id"], attempt=own.attempt)

        await retry_while_unavailable(lambda: self._source.database.transaction(withdraw, name="ask"))
