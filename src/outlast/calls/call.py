"""The call that is running, found by context variable from inside a tool, also in its threads."""

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import count
from typing import Any, Protocol

from pydantic_ai.exceptions import ApprovalRequired

from outlast.calls.questions import CallQuestions
from outlast.calls.running.threads import SharedThreads
from outlast.clock import monotonic
from outlast.containment import contained_thread
from outlast.errors import AttemptLost, InvalidInput
from outlast.ids import SessionId, TaskId, TurnId
from outlast.outgoing.addresses import Network
from outlast.store.files.session_files import SessionFiles
from outlast.values.secrets import Secrets

OWN_COST = "own_microdollars"
"""Among what a call has used: what its tool itself said that it costs."""


class Channel(Protocol):
    """Where a call's progress, output and files go while it runs. Callable from any thread; never blocks long."""

    def progress(self, progress: dict[str, Any]) -> None: ...

    def output(self, text: str) -> None: ...

    def artifact(self, name: str, data: bytes, media_type: str) -> str: ...


class Connections(Protocol):
    """The credentials of all owners. `value` runs on `loop` alone."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...

    async def value(self, owner_id: str, provider: str) -> str: ...

    async def check(self, owner_id: str, provider: str) -> None:
        """Raises what `value` would raise."""
        ...


@dataclass(frozen=True, slots=True)
class OpenOperation:
    """Work elsewhere that a call has set going: its task, and what completes it."""

    task_id: TaskId
    title: str
    url: str = field(repr=False)
    token: str = field(repr=False)
    is_new: bool


@dataclass(frozen=True, slots=True)
class WantedApproval:
    """What a call asks a person for. `spec`: what is kept of it, so that it can be run again when it is approved."""

    prompt: str
    details: Mapping[str, Any]
    spec: Mapping[str, Any]


class Operations(Protocol):
    """Opens operations elsewhere for calls. Its coroutines run on `loop` alone."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...

    async def open_for(
        self, call: "RunningCall", *, deadline: timedelta | None, title: str | None
    ) -> OpenOperation: ...

    async def withdraw(self, call: "RunningCall", task_id: TaskId) -> bool: ...


@dataclass(slots=True, eq=False)
class RunningCall:
    """One invocation in progress. `threads` are the thread jobs its tool started: a thread cannot be killed.

    `inner` is the coroutine that runs it; `own_thread` the job that is the tool itself, if it is a sync tool.
    `confirm` raises when the worker was taken for dead, and its calls were given to others.
    """

    session_id: SessionId
    turn_id: TurnId | None
    call_id: str
    tool: str
    args: Any
    secrets: Secrets
    channel: Channel
    confirm: Callable[[], Coroutine[Any, Any, None]] | None = None
    started: float = field(default_factory=monotonic)
    threads: set[Future[Any]] = field(default_factory=set[Future[Any]])
    own_thread: Future[Any] | None = None
    inner: asyncio.Task[Any] | None = None
    owner_id: str = ""
    """Whose share of the threads it takes."""
    connections: Connections | None = None
    """Where its tool finds its owner's credentials."""
    agent: str = ""
    networks: Sequence[Network] = ()
    """Those that the operator lets requests go to although they are not public."""
    files: SessionFiles | None = None
    """Where its tool finds the files of its session."""
    external: Operations | None = None
    """Where its tool opens operations elsewhere."""
    approval: "Callable[[ApprovalRequired], WantedApproval] | None" = None
    """What a person is asked if its code asks for an approval when it is a task already. None: nobody is."""
    is_approved: bool = False
    """A person has said that such calls may run: its code need not ask."""
    operations: list[OpenOperation] = field(default_factory=list[OpenOperation])
    """Those that it has opened and not withdrawn: its end names them."""
    repeat: int = 0
    """How many calls with its id the turn has had before: some providers count them anew with each response."""
    ordinals: Iterator[int] = field(default_factory=count)
    """The number of the next one, so that another attempt finds them again."""
    questions: CallQuestions | None = None
    """How its tool asks somebody."""
    shared_usage: object | None = None
    """The usage of its run, which its tool may hand to another agent."""
    used: dict[str, Any] = field(default_factory=dict[str, Any])
    """What its tool has added to that, and nobody has counted yet."""
    told: list[TaskId] = field(default_factory=list[TaskId])
    """Tasks whose outcome this call's result hands to the model."""
    is_waiting: bool = False
    """Its task waits for somebody, without this worker: that its code ends here is no end of the task."""
    slots: dict[tuple[str, int], asyncio.Semaphore] | None = None
    """Those of its worker, for tools that say how many calls of them run at once."""
    is_lost: bool = False
    """It was given to another worker, whatever code around it made of that."""

    async def ask(self) -> None:
        """Before its code starts, in the last moment: raises when it is no longer this worker's."""
        if self.confirm is None:
            return
        try:
            await self.confirm()
        except AttemptLost:
            self.is_lost = True
            raise

    @property
    def idempotency_key(self) -> str:
        """The same over every attempt of this call."""
        name = f"{self.session_id}/{self._place}/{self.call_id}"
        return hashlib.sha256(name.encode()).hexdigest()[:32]

    @property
    def key(self) -> str:
        """The same, for what it makes in its own session."""
        return f"{self._place}:{self.call_id}"

    @property
    def _place(self) -> str:
        return f"{self.turn_id}#{self.repeat}" if self.repeat else str(self.turn_id)

    @property
    def is_asking(self) -> bool:
        return self.questions is not None and self.questions.is_open

    def stop(self) -> None:
        """Before it is cancelled by whoever runs it."""
        if self.questions is not None:
            self.questions.stop()

    def busy_threads(self) -> list[Future[Any]]:
        return [each for each in self.threads if not each.done()]


current_call: ContextVar[RunningCall | None] = ContextVar("outlast_call", default=None)


def idempotency_key() -> str | None:
    """A key for the call that is running, to hand to services that deduplicate. None outside Outlast."""
    call = current_call.get()
    return None if call is None else call.idempotency_key


def secret(value: str) -> str:
    """Register a value, to be starred out wherever something is stored, shown, logged or sent to the model from now on,
    and give it back. Values of fewer than 6 characters are not taken. Does nothing outside Outlast.
    """
    call = current_call.get()
    if call is not None:
        call.secrets.add(value)
    return value


def progress(current: float, total: float | None = None, *, unit: str | None = None, label: str | None = None) -> None:
    """Say how far the call is. At most four a second are told; the last one wins. Does nothing outside Outlast."""
    call = current_call.get()
    if call is not None:
        call.channel.progress({"current": current, "total": total, "unit": unit, "label": label})


def cost(microdollars: int) -> None:
    """Say what the call itself costs, beside the models that it asks; what is said several times is added up.

    It counts once for each call, when that ends, is cancelled, or was run again. Does nothing outside Outlast.
    """
    if microdollars < 0:
        raise InvalidInput(f"A cost of {microdollars} microdollars is not possible: say 0 or more.")
    call = current_call.get()
    if call is not None:
        call.used[OWN_COST] = call.used.get(OWN_COST, 0) + microdollars


def output(text: str) -> None:
    """Raw output for people, kept while the call runs; the model reads it in pieces. Does nothing outside Outlast."""
    call = current_call.get()
    if call is not None:
        call.channel.output(text)


def artifact(name: str, data: bytes, media_type: str = "application/octet-stream") -> str | None:
    """Keep a file that the call made; gives its id. It is listed with its task or call and with the session's files.

    Does nothing outside Outlast.
    """
    call = current_call.get()
    return None if call is None else call.channel.artifact(name, data, media_type)


class CallThreads(SharedThreads):
    """The runtime's own threads for sync tools; each job is known to the call that started it."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        fn, call = contained_thread(fn), current_call.get()
        if call is None:
            return super().submit(fn, *args, **kwargs)
        is_tool = call.inner is not None and call.inner is _running_coroutine()
        job = partial(_confirmed(call, fn) if is_tool else fn, *args, **kwargs)
        future = self.submit_for(call.owner_id, job)
        call.threads.add(future)
        if is_tool:
            call.own_thread = future
        return future


def _confirmed(call: RunningCall, tool: Callable[..., Any]) -> Callable[..., Any]:
    """A sync tool may have waited for its thread: it asks again, there, in the last moment."""
    if call.confirm is None:
        return tool
    loop = asyncio.get_running_loop()

    def run(*args: Any, **kwargs: Any) -> Any:
        asyncio.run_coroutine_threadsafe(call.ask(), loop).result()
        return tool(*args, **kwargs)

    return run


def _running_coroutine() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # a thread without an event loop
        return None
