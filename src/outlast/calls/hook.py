"""The per-run capability that sees every tool of an agent, unchanged, and gives each call its budget."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any, cast

import structlog
from pydantic_ai import RunContext, ToolDefinition, ToolReturn
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering, CombinedCapability
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ToolFailed
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.output import OutputContext
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.toolsets import AbstractToolset

from outlast.calls import opened, outcomes
from outlast.calls.call import RunningCall
from outlast.calls.control.toolset import ControlToolset, WithControlTools
from outlast.calls.deferrable import asking, hand_back, wanted_approval
from outlast.calls.gates.connection import HAD_BEGUN, connection_needed, wait_for
from outlast.calls.gates.gate import Answer, CallRequest, Run, Wait
from outlast.calls.gates.gates import Gates
from outlast.calls.gates.offer import as_constrained, constrained_args
from outlast.calls.gates.standing import GateContext
from outlast.calls.hosting import CallHost, OpenCalls, ShownResource
from outlast.calls.parking import NotParked, Parked, Parking
from outlast.calls.record import CallRecords, CallState, Unconfirmed
from outlast.calls.running.keeper import ToolsetKeeper
from outlast.calls.running.run_tasks import RunTasks
from outlast.calls.shared_usage import Uses
from outlast.calls.transient import is_transient
from outlast.calls.within.code import bounded_wait, close, closed, really, start, within
from outlast.calls.within.connection import ConnectionRequired
from outlast.clock import monotonic
from outlast.containment import Contained
from outlast.errors import AttemptLost, OutlastError
from outlast.store.database import decided
from outlast.tool_hints import UNSET, Hints, hints_of
from outlast.transitions.sessions.constraints import FREE
from outlast.transitions.tasks.parked import Reason
from outlast.values import clean
from outlast.values.redact import last_line

log = structlog.get_logger("outlast.calls")

PUT_BACK = "(recorded)"
"""Stands for a result that is already known; the loop puts the recorded one in its place."""


@dataclass(frozen=True, slots=True)
class CallPolicy:
    """How long calls may take. `budget` None: the turn waits for every call."""

    budget: timedelta | None
    deadline: timedelta
    grace: timedelta


@dataclass
class CallHook(RunTasks):
    """Runs each call in an asyncio task of its own. Within its budget a call ends as if this were not here."""

    host: CallHost
    open_calls: OpenCalls
    context: GateContext
    gates: Gates
    policy: CallPolicy
    parking: Parking
    control: ControlToolset
    instructions: str | None
    conceal: Callable[[ModelRequestContext], ModelRequestContext] | None = None
    resource: ShownResource | None = None
    keeper: ToolsetKeeper = field(default_factory=ToolsetKeeper)
    records: CallRecords = field(default_factory=CallRecords)
    kept_back: dict[str, ToolDefinition] = field(default_factory=dict[str, ToolDefinition])
    """The tools that ask for an approval or have their results from outside, as the agent gave them."""
    uses_of_outputs: list[Uses] = field(default_factory=list[Uses])
    """What output functions and validators used, for whoever counts it."""

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="outermost")

    def get_instructions(self) -> str | None:
        return self.instructions

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return WithControlTools(self.keeper.around(toolset), self.control, self.kept_back)

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """The model sees no tool that is denied, and no value that is registered, whenever that was."""
        request = request_context if self.conceal is None else self.conceal(request_context)
        chain = await self.context.constraints.now()
        if chain is FREE:
            return request
        if self.resource is not None and chain.binding is not None:
            request = await self.resource.shown(request, chain.binding)
        return as_constrained(request, chain, self.control.tools)

    async def before_tool_validate(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any
    ) -> Any:
        """Arguments that are missing, or wrong, are not yet anybody's fault."""
        chain = await self.context.constraints.now()
        is_judged = chain is not FREE and not self.open_calls.is_answered(call.tool_call_id)
        return constrained_args(chain, tool_def, args, self.control.tools) if is_judged else args

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        call_id, hints = call.tool_call_id, hints_of(tool_def.metadata)
        if self.open_calls.is_answered(call_id) or self.open_calls.is_masked(call_id):
            return PUT_BACK
        if hints.may_run_again or self._cannot_have_run(ctx, call):
            self.records.of(call_id).may_run_again = True
        elif self.open_calls.was_in_flight(call_id):
            return PUT_BACK
        request = self._request(ctx, call, tool_def, args, hints)
        if call.tool_name in self.control.tools:
            return await self._run(ctx, call, request, handler)
        verdict = await self.gates.admit(request)
        if isinstance(verdict, Answer) and hints.may_run_again and self.open_calls.was_in_flight(call_id):
            # The gate says that it was not run. But it had begun before the crash: what came of that is unknown.
            self.records.of(call_id).may_run_again = False
            return PUT_BACK
        if not isinstance(verdict, Run):
            return await self._answer(request, verdict)
        if verdict.is_approved:
            request = replace(request, is_approved=True)
        if request.is_external and not self._has_handler(ctx.root_capability):
            return await self._hand_out(request)
        hand_back(request)
        try:
            return await self._run(ctx, call, request, handler, args=verdict.args)
        except ConnectionRequired as missing:
            return await self._answer(request, wait_for(missing) or Answer(failure=clean.words_of(missing)))
        except (ApprovalRequired, CallDeferred) as asked:
            request = asking(request, asked)
            verdict = await self.gates.admit(request)
            if not isinstance(verdict, Run):
                return await self._answer(request, verdict)
            if request.is_external and not self._has_handler(ctx.root_capability):
                return await self._hand_out(request)
            if verdict.is_approved and not self._has_handler(ctx.root_capability):
                return await self._answer(request, Answer(failure=outcomes.ASKS_AGAIN))
            raise

    def _request(
        self, ctx: RunContext[Any], call: ToolCallPart, tool_def: ToolDefinition, args: Any, hints: Hints
    ) -> CallRequest:
        of, given = self.context, self.kept_back.get(call.tool_name)
        return CallRequest(
            of.session_id,
            of.owner_id,
            of.turn_id,
            of.agent,
            call.tool_call_id,
            given or tool_def,
            hints,
            raw_args=call.args,
            args=args,
            is_approved=ctx.tool_call_approved,
            needs_approval=given is not None and given.kind == "unapproved",
            is_external=given is not None and given.kind == "external",
        )

    def _cannot_have_run(self, ctx: RunContext[Any], call: ToolCallPart) -> bool:
        """Whether, in this attempt or an earlier one, nobody can have let it begin."""
        return call.tool_name in self.kept_back and not self._has_handler(ctx.root_capability)

    async def _answer(self, request: CallRequest, verdict: Answer | Wait) -> Any:
        """What the model gets of a call that a gate keeps from running; noted before it is told."""
        if isinstance(verdict, Wait):
            answer = await decided(self._make_wait(request, verdict))
            if isinstance(answer, Parked):
                return answer.handle
            verdict = Answer(failure=answer.reason or outcomes.CANNOT_WAIT)
        record = self.records.begin(request.call_id)
        if verdict.failure is not None:
            record.move(CallState.FAILED, verdict.failure)
            raise ToolFailed(verdict.failure)
        value = outcomes.normalise(verdict.value)
        record.move(CallState.SUCCEEDED, content_of(value))
        return value

    async def _hand_out(self, request: CallRequest) -> Any:
        """Its result comes from outside, as the completion of a task; noted before it is told."""

        async def make() -> Parked | NotParked:
            answer = await self.parking.hand_out(request)
            if isinstance(answer, Parked):
                self.records.begin(request.call_id).move(CallState.PARKED, answer)
            return answer

        answer = await decided(make())
        if isinstance(answer, Parked):
            return answer.handle
        words = outcomes.HANDED_OUT if request.has_begun else outcomes.CANNOT_WAIT
        return await self._answer(request, Answer(failure=words))

    async def _make_wait(self, request: CallRequest, wait: Wait) -> Parked | NotParked:
        answer = await self.parking.wait(request, wait)
        if isinstance(answer, Parked):
            self.records.begin(request.call_id).move(CallState.PARKED, answer)
        return answer

    async def _run(
        self, ctx: RunContext[Any], call: ToolCallPart, request: CallRequest, handler: Any, *, args: Any = None
    ) -> Any:
        """`args`: in place of those that were asked for."""
        running = self.host.begin(call)
        running.shared_usage, running.is_approved = ctx.usage, request.is_approved
        running.approval = None if request.is_approved else partial(wanted_approval, request)
        record = self.records.begin(call.tool_call_id)
        inner = start(running, handler, request.args if args is None else args)
        try:
            parked = await self._wait(running, inner, request)
            return parked.handle if parked is not None else await self._result(running, inner, request)
        except (asyncio.CancelledError, OutlastError):  # the latter: the attempt was lost meanwhile
            if record.state is not CallState.PARKED:
                await self._cancel(running, inner, request)
            raise

    async def handle_deferred_tool_calls(self, ctx: RunContext[Any], *, requests: DeferredToolRequests) -> None:
        """They are not run, unless another capability handles them: it may run them as it likes."""
        if not self._has_handler(ctx.root_capability):
            for call in requests.approvals:
                self.records.of(call.tool_call_id).move(CallState.DEFERRED, outcomes.NEEDS_APPROVAL)
            for call in requests.calls:
                record = self.records.of(call.tool_call_id)
                words = outcomes.HANDED_OUT if record.has_begun else outcomes.NEEDS_RESULT
                record.move(CallState.DEFERRED, words)
            return
        self.records.begin_elsewhere(*(call.tool_call_id for call in (*requests.calls, *requests.approvals)))

    def _has_handler(self, root: object) -> bool:
        """Whether a capability beside this one may handle deferred calls."""
        found = cast(CombinedCapability[Any], root).capabilities if isinstance(root, CombinedCapability) else [root]
        default = AbstractCapability.handle_deferred_tool_calls
        return any(each is not self and type(each).handle_deferred_tool_calls is not default for each in found)  # pyright: ignore

    async def wrap_output_process(
        self, ctx: RunContext[Any], *, output_context: OutputContext, output: Any, handler: Any
    ) -> Any:
        """An output function runs as a call of its own: once it has begun, nobody may say that it did not."""
        call = output_context.tool_call
        if call is not None:
            self.records.begin_elsewhere(call.tool_call_id)
        uses = Uses(ctx.usage)
        self.uses_of_outputs.append(uses)
        try:
            with uses.counting():
                return await handler(output)
        except Exception as exc:
            if call is not None:
                failed = outcomes.output_failed(call.tool_name, exc)
                self.records.of(call.tool_call_id).move(CallState.FAILED, failed)
            raise

    async def _wait(self, running: RunningCall, inner: asyncio.Task[Any], request: CallRequest) -> Parked | None:
        """Until the call ends, is parked, or runs into its deadline."""
        hints = request.hints
        deadline = hints.deadline or self.policy.deadline
        budget = self.policy.budget if hints.budget is UNSET else hints.budget
        asked = None if running.questions is None else running.questions.wanted
        pressed = None if budget is None else self.host.pressed
        await self._until(inner, deadline if budget is None else min(budget, deadline), pressed, asked)
        reason = _reason(asked, pressed)
        if not inner.done() and (reason == "question" or (budget is not None and budget < deadline)):
            answer = await self._park(running, inner, hints, budget or timedelta(), reason)
            if isinstance(answer, Parked):
                return answer
            if answer.reason is not None:
                self.host.say_waiting(running, answer.reason)
            if running.questions is not None:
                running.questions.refuse(outcomes.CANNOT_ASK)
            await self._until(inner, deadline - timedelta(seconds=monotonic() - running.started))
        if not inner.done():
            await self._cancel(running, inner, request)
            raise ToolFailed(f"The tool {running.tool!r} did not end within {deadline.total_seconds():g} s.")
        return None

    async def _until(self, inner: asyncio.Task[Any], limit: timedelta, *sooner: asyncio.Future[Any] | None) -> None:
        """`sooner`: what ends the wait too, unless it has been there already."""
        waited: set[asyncio.Future[Any]] = {inner, *(each for each in sooner if each is not None and not each.done())}
        await asyncio.wait(waited, timeout=limit.total_seconds(), return_when=asyncio.FIRST_COMPLETED)

    async def _park(
        self, running: RunningCall, inner: asyncio.Task[Any], hints: Hints, budget: timedelta, reason: Reason
    ) -> Parked | NotParked:
        """Once begun it is decided, also when the turn is cancelled meanwhile."""

        async def park() -> Parked | NotParked:
            answer = await self.parking.park(running, inner, hints, budget, reason=reason)
            if isinstance(answer, Parked):
                self.records.of(running.call_id).move(CallState.PARKED, answer)
                self.keeper.keep(inner)
            return answer

        return await decided(park())

    async def _result(
        self, running: RunningCall, ended: "asyncio.Task[Any] | Future[Any]", request: CallRequest
    ) -> Any:
        """What the model gets of a call that has ended; noted before it is told."""
        if running.is_lost:
            raise AttemptLost("The call was given to another worker.")
        try:
            with Contained():  # a value may run code of its own when it is read
                value = await self._value(running, ended)
        except AttemptLost:
            raise
        except Exception as exc:
            missing = connection_needed(exc)
            if missing is not None and missing.can_wait and request.hints.may_run_again:
                raise missing from None
            error = self._failed(request, outcomes.translate(running.tool, exc, running.secrets))
            if isinstance(error, outcomes.FAILURES):
                left = opened.left_open(running)
                error = error if left is None else _with_advice(error, [left])
                self.records.of(running.call_id).move(CallState.FAILED, clean.words_of(error, most=None))
            raise error from exc
        if running.tool not in self.control.tools:
            self.gates.ended(request, None)
        self.records.of(running.call_id).move(CallState.SUCCEEDED, content_of(value))
        return value

    async def _value(self, running: RunningCall, ended: "asyncio.Task[Any] | Future[Any]") -> Any:
        await closed(running, self.policy.grace)
        if ended.cancelled():
            raise outcomes.internal_error(running.tool, asyncio.CancelledError(), running.secrets)
        value = await self.host.view(running, outcomes.plain_value(ended.result(), running.secrets))
        return opened.with_operations(running, value)

    def _failed(self, request: CallRequest, error: BaseException) -> BaseException:
        if request.tool in self.control.tools:
            return error
        if is_transient(error):
            self.records.of(request.call_id).is_transient = True
        said = self.gates.ended(request, error)
        if connection_needed(error) is not None:
            said = [HAD_BEGUN, *said]
        return _with_advice(error, said) if said else error

    async def _cancel(self, running: RunningCall, inner: asyncio.Task[Any], request: CallRequest) -> None:
        """Cancel, and find out what really happened: ended, cancelled, or not confirmed within the grace."""
        had_ended = inner.done()
        running.stop()
        inner.cancel()
        threads = {asyncio.wrap_future(each) for each in running.busy_threads()}
        await bounded_wait({inner, *threads}, self.policy.grace)
        if not inner.done() or running.busy_threads():
            self.records.of(running.call_id).move(CallState.UNCONFIRMED, Unconfirmed(running, inner))
            return
        ended = really(running, inner)
        if had_ended or not (ended.cancelled() or ended.exception()):
            # Noted as its end, or as its error; the run that would be told is over. What takes too long is cancelled.
            await within(self._result(running, ended, request), f"end {running.call_id}", self.policy.grace)
        else:
            self.records.of(running.call_id).move(CallState.CANCELED)
            error = await within(close(running), f"close {running.call_id}", self.policy.grace)
            if error is not None:
                log.warning(
                    "what a cancelled call said last was not kept", call_id=running.call_id, error=last_line(error)
                )


def _reason(asked: asyncio.Future[Any] | None, pressed: asyncio.Future[None] | None) -> Reason:
    """Why a call that has not ended is parked now."""
    if asked is not None and asked.done():
        return "question"
    return "steering" if pressed is not None and pressed.done() else "budget"


def content_of(value: Any) -> Any:
    return cast(ToolReturn[Any], value).return_value if isinstance(value, ToolReturn) else value


def _with_advice(error: BaseException, said: Sequence[str]) -> BaseException:
    replacement = ToolFailed("\n".join((clean.words_of(error, most=None), *said)))
    replacement.__cause__ = error
    return replacement
