"""The per-run capability: it sees every tool of an agent, unchanged, and runs each call so that it can be owned."""

import asyncio
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol, cast

from pydantic_ai import RunContext, ToolDefinition, ToolReturn
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ToolCallPart

from outlast.calls.breaker import ADVICE, MOST, REFUSED, Breaker
from outlast.calls.call import RunningCall, current_call
from outlast.ids import SessionId, TurnId
from outlast.tools import outcomes
from outlast.tools.hints import hints_of
from outlast.tools.redact import Secrets

PUT_BACK = "(recorded)"
"""Stands for a result that is already known; the loop puts the recorded one in its place."""


class OpenCalls(Protocol):
    """What is known of the calls that were open when this attempt began."""

    def is_answered(self, call_id: str) -> bool:
        """Its end stands in the log."""
        ...

    def was_in_flight(self, call_id: str) -> bool:
        """It was journaled and has no end."""
        ...


@dataclass(frozen=True, slots=True)
class Unconfirmed:
    """A call that was told to cancel and has not ended: somebody must go on owning it."""

    call: RunningCall
    inner: asyncio.Task[Any]


@dataclass(slots=True)
class CallEnds:
    """How the calls of a cancelled run ended, by call id."""

    finished: dict[str, Any] = field(default_factory=dict[str, Any])
    canceled: set[str] = field(default_factory=set[str])
    unconfirmed: dict[str, Unconfirmed] = field(default_factory=dict[str, Unconfirmed])


@dataclass
class CallHook(AbstractCapability[Any]):
    """Runs each call in an asyncio task of its own. Within its time a call ends as if this were not here."""

    session_id: SessionId
    turn_id: TurnId
    open_calls: OpenCalls
    breaker: Breaker
    secrets: Secrets
    grace: timedelta
    ends: CallEnds = field(default_factory=CallEnds)
    unknown: set[str] = field(default_factory=set[str])

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="outermost")

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        call_id = call.tool_call_id
        if self.open_calls.is_answered(call_id):
            return PUT_BACK
        if self.open_calls.was_in_flight(call_id) and not hints_of(tool_def.metadata).may_run_again:
            self.unknown.add(call_id)
            return PUT_BACK
        if self.breaker.refuses(call.tool_name, call.args):
            raise ToolFailed(REFUSED.format(count=MOST))
        running = RunningCall(self.session_id, self.turn_id, call_id, call.tool_name, call.args, self.secrets)
        inner = self._begin(running, handler, args)
        try:
            await asyncio.wait({inner})
        except asyncio.CancelledError:
            await self._cancel(running, inner)
            raise
        return self._result(running, inner)

    def _begin(self, running: RunningCall, handler: Any, args: Any) -> asyncio.Task[Any]:
        token = current_call.set(running)
        try:
            running.inner = asyncio.create_task(handler(args), name=f"call {running.tool} {running.call_id}")
        finally:
            current_call.reset(token)
        return running.inner

    def _result(self, running: RunningCall, inner: asyncio.Task[Any]) -> Any:
        try:
            value = outcomes.settle(running.tool, inner.result(), self.secrets)
        except asyncio.CancelledError as exc:
            raise self._failed(running, outcomes.internal_error(running.tool, exc, self.secrets)) from exc
        except Exception as exc:
            raise self._failed(running, outcomes.translate(running.tool, exc, self.secrets)) from exc
        self.breaker.record(running.tool, running.args, is_failure=False)
        self.ends.finished[running.call_id] = _content(value)
        return value

    def _failed(self, running: RunningCall, error: BaseException) -> BaseException:
        if isinstance(error.__cause__, TimeoutError | ConnectionError):
            return error
        count = self.breaker.record(running.tool, running.args, is_failure=True)
        return _with_advice(error, count) if count >= MOST else error

    async def _cancel(self, running: RunningCall, inner: asyncio.Task[Any]) -> None:
        """Cancel, and find out what really happened: ended, cancelled, or not confirmed within the grace."""
        inner.cancel()
        threads = {asyncio.wrap_future(each) for each in running.busy_threads()}
        await _bounded_wait({inner, *threads}, self.grace)
        if not inner.done() or running.busy_threads():
            self.ends.unconfirmed[running.call_id] = Unconfirmed(running, inner)
            return
        try:
            value = outcomes.settle(running.tool, really(running, inner).result(), self.secrets)
        except (Exception, asyncio.CancelledError):
            self.ends.canceled.add(running.call_id)
        else:
            self.ends.finished[running.call_id] = _content(value)


def really(call: RunningCall, inner: asyncio.Task[Any]) -> asyncio.Task[Any] | Future[Any]:
    """Where the true end of a call is: a sync tool's thread ends as it ends, though its await was cancelled."""
    thread = call.own_thread
    return thread if inner.cancelled() and thread is not None and not thread.cancelled() else inner


async def _bounded_wait(waited: set[Any], limit: timedelta) -> None:
    """Wait for all, at most this long, whoever cancels meanwhile."""
    loop = asyncio.get_running_loop()
    end = loop.time() + limit.total_seconds()
    while loop.time() < end:
        try:
            await asyncio.wait(waited, timeout=end - loop.time())
        except asyncio.CancelledError:
            continue
        return


def _content(value: Any) -> Any:
    return cast(ToolReturn[Any], value).return_value if isinstance(value, ToolReturn) else value


def _with_advice(error: BaseException, count: int) -> BaseException:
    advice = ADVICE.format(count=count)
    replacement = ToolFailed(f"{error}\n{advice}")
    replacement.__cause__ = error
    return replacement
