"""A call as a task: its tool is run, for the first time or after its worker died, without a turn or a model."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pydantic_ai import Agent, RunContext, ToolDefinition
from pydantic_ai.capabilities import CapabilityOrdering
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ToolFailed
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, UserPromptPart
from pydantic_ai.tools import DeferredToolResults
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

from outlast.agents.direct import cannot_be_run
from outlast.agents.host import TurnContext
from outlast.agents.lease import DepsLease
from outlast.agents.messages import history
from outlast.calls.call import CallThreads, RunningCall
from outlast.calls.confirmed import ConfirmedToolset
from outlast.calls.deferrable import as_functions, asking, schema_of
from outlast.calls.gates.earlier_calls import EarlierCalls
from outlast.calls.gates.gate import Answer, CallRequest, Run, Wait
from outlast.calls.gates.live_constraints import LiveConstraints
from outlast.calls.gates.offer import constrained_args
from outlast.calls.gates.standing import GateContext, gates_for
from outlast.calls.running.run_tasks import RunTasks
from outlast.calls.shared_usage import SharedUsage
from outlast.calls.within.channel import CallChannel
from outlast.calls.within.code import start as begin
from outlast.containment import Contained
from outlast.errors import AttemptLost
from outlast.runs.call_parts import CallParts, bind_channel
from outlast.runs.owned import Owned, SignalLatch
from outlast.runs.worker_parts import WorkerParts
from outlast.store.database import retry_while_unavailable
from outlast.store.repositories import outputs, tasks
from outlast.store.repositories.stored_task import Task, WakePolicy
from outlast.store.unit import Unit
from outlast.tool_hints import hints_of
from outlast.transitions.sessions.constraints import FREE
from outlast.transitions.tasks import requests
from outlast.transitions.tasks.many_tasks import Claimed


@dataclass
class _Functions(ConfirmedToolset):
    """The agent's tools, none of them kept back by pydantic-ai: their calls pass the gates."""

    kept_back: dict[str, ToolDefinition]

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        return as_functions(await self.wrapped.get_tools(ctx), self.kept_back)


@dataclass(frozen=True, slots=True)
class _Passing:
    """The gates of a call that is run without a turn. An approval that was given is not asked for again."""

    parts: WorkerParts
    task: Task

    @property
    def constraints(self) -> LiveConstraints:
        return LiveConstraints(self.parts.database, self.task.session_id, lambda: True)

    @property
    def approvals(self) -> DeferredToolResults | None:
        """What tells the tool itself that it was approved."""
        return DeferredToolResults(approvals={self.task.output_id: True}) if "approved" in self.task.spec else None

    async def run(
        self, running: RunningCall, ctx: RunContext[Any], given: ToolDefinition, handler: Any, args: Any
    ) -> Any:
        task = self.task
        request = CallRequest(
            task.session_id,
            task.owner_id,
            task.turn_id,
            task.agent,
            running.call_id,
            given,
            hints_of(given.metadata),
            raw_args=running.args,
            args=args,
            is_approved="approved" in task.spec,
            needs_approval=given.kind == "unapproved",
            is_external=given.kind == "external",
        )
        gates = gates_for(self._context())
        verdict = await gates.admit(request)
        if not isinstance(verdict, Run):
            return await self._kept(running, request, verdict)
        running.is_approved = request.is_approved or verdict.is_approved
        try:
            return await handler(args if verdict.args is None else verdict.args)
        except (ApprovalRequired, CallDeferred) as asked:
            verdict = await gates.admit(asking(request, asked))
            if isinstance(verdict, Run):
                raise
            return await self._kept(running, request, verdict)

    def _context(self) -> GateContext:
        task, database, files = self.task, self.parts.database, self.parts.files

        async def committed() -> Sequence[ModelMessage]:
            entries = await retry_while_unavailable(lambda: history.load(database, files, task.session_id))
            return [each.message for each in entries]

        return GateContext(
            task.session_id,
            task.owner_id,
            task.turn_id,
            task.agent,
            database,
            self.constraints,
            EarlierCalls(database, task.session_id, committed),
            self.parts.calls.connections,
        )

    async def _kept(self, running: RunningCall, request: CallRequest, verdict: Answer | Wait) -> Any:
        if isinstance(verdict, Answer):
            if verdict.failure is not None:
                raise ToolFailed(verdict.failure)
            return verdict.value
        runs, task = request.hints.deadline or self.parts.calls.deadline, self.task

        def wait(unit: Unit) -> bool:
            asked = requests.request_of(
                unit,
                verdict.kind,
                verdict.prompt,
                verdict.details,
                secrets=running.secrets,
                waits=verdict.deadline,
                runs=runs,
            )
            return requests.wait(unit, task.id, asked, attempt=task.attempt, spec=schema_of(request))

        await retry_while_unavailable(lambda: self.parts.database.transaction(wait, name="wait"))
        running.is_waiting = True
        return "(waits)"


@dataclass
class _Capture(RunTasks):
    """Starts the one call and lets the run go: the call goes on without it."""

    running: RunningCall
    passing: "_Passing"
    inner: asyncio.Task[Any] | None = None
    kept_back: dict[str, ToolDefinition] = field(default_factory=dict[str, ToolDefinition])
    refused: ToolFailed | None = None
    """By the session's constraints, before its arguments were read."""

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="outermost")

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return _Functions(toolset, self.kept_back)

    async def before_tool_validate(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any
    ) -> Any:
        chain = await self.passing.constraints.now()
        try:
            return args if chain is FREE else constrained_args(chain, tool_def, args)
        except ToolFailed as refused:
            self.refused = refused
            raise

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        self.running.shared_usage = ctx.usage
        given = self.kept_back.get(call.tool_name, tool_def)
        self.inner = begin(self.running, partial(self.passing.run, self.running, ctx, given, handler), args)
        try:
            await asyncio.wait({self.inner})
        except asyncio.CancelledError:
            self.inner.cancel()
            await asyncio.wait({self.inner})
            raise
        return "(done)"


async def start(parts: WorkerParts, claimed: Claimed, latch: SignalLatch) -> asyncio.Task[Any]:
    """What it comes to is told by the task; what this gives ends with the tool."""
    task, calls = claimed.task, parts.calls
    host = parts.hosts[task.agent]
    await host.enter()
    lease = host.lease(TurnContext(task.owner_id, task.session_id, task.turn_id, task.agent))
    running = await _running(calls, task)
    is_free = not claimed.is_constrained and host.direct.is_ungated(task.tool or "")
    call = host.direct.caller(running) if is_free else None
    if call is None:
        run = _run(host.agent, parts.threads, _Capture(running, _Passing(parts, task)), lease)
        inner = asyncio.create_task(run, name=f"run {running.tool} {task.id}")
    else:
        inner = begin(running, partial(_call, call, parts.threads, lease), None)
    calls.parked.own(
        Owned(
            running,
            inner,
            task.id,
            attempt=task.attempt,
            when_over=lease.let_go,
            is_silent=task.wake is WakePolicy.SILENT,
        ),
        deadline_in=claimed.deadline_in,
        progress_deadline=task.progress_seconds,
        is_unasked=not latch.has_heard and task.cancel_requested_at is None,
    )
    latch.close()
    return inner


async def _running(parts: CallParts, task: Task) -> RunningCall:
    assert task.tool is not None
    session_id, call_id = task.session_id, task.output_id
    offset = 0
    is_again = task.attempt > 1 or "retry_of" in task.links
    if is_again:
        offset = await retry_while_unavailable(
            lambda: parts.home.database.read(
                lambda connection: outputs.total(connection, session_id, call_id), is_single=True
            )
        )
    channel = CallChannel(
        parts.home,
        session_id,
        call_id,
        may_write=lambda unit: tasks.may_write(unit, task.id, task.attempt),
        tell_progress=lambda progress: None,
        attempt=task.attempt,
        offset=offset,
    )
    bind_channel(channel, parts, task.id, attempt=task.attempt)
    if offset:
        which = f"attempt {task.attempt}" if task.attempt > 1 else "tried again"
        channel.output(f"\n[{which}: the call runs again from its start]\n")
    args, secrets = task.spec.get("args"), parts.home.secrets
    questions = None if parts.questions is None else parts.questions.of_call(secrets)
    if questions is not None:
        questions.become_task(task.id, task.attempt)
    return RunningCall(
        session_id,
        task.turn_id,
        call_id,
        task.tool,
        args,
        secrets,
        channel,
        parts.confirm_call,
        owner_id=task.owner_id,
        connections=parts.connections,
        slots=parts.slots,
        agent=task.agent,
        networks=parts.networks,
        files=parts.files,
        external=parts.external,
        questions=questions,
        repeat=task.repeat,
    )


async def _call(call: Callable[[], Awaitable[Any]], threads: CallThreads, lease: DepsLease, _: None) -> Any:
    await lease.open()  # as for any call, though a tool without a context cannot see what it gives
    with Agent.using_thread_executor(threads):
        return await call()


async def _run(agent: Agent[Any, Any], threads: CallThreads, capture: _Capture, lease: DepsLease) -> Any:
    """One tool without a model: a history that ends in its call, and only the step that executes calls."""
    running = capture.running
    call = ToolCallPart(tool_name=running.tool, args=running.args, tool_call_id=running.call_id)
    said = [ModelRequest(parts=[UserPromptPart(content="(run again)")]), ModelResponse(parts=[call])]
    value = await lease.open()
    try:
        with Contained(), Agent.using_thread_executor(threads):
            async with agent.iter(
                message_history=said,
                deps=value,
                usage=SharedUsage(),
                capabilities=[capture],
                deferred_tool_results=capture.passing.approvals,
            ) as run:
                async for node in run:
                    if Agent.is_call_tools_node(node):
                        async with node.stream(run.ctx) as stream:
                            async for _ in stream:
                                continue
                        break
    except asyncio.CancelledError:
        # What the tool made of its cancel counts: it may have ended all the same.
        if capture.inner is None or not capture.inner.done():
            raise
    finally:
        await capture.end_tasks()
    if capture.refused is not None:
        raise capture.refused
    if capture.inner is None:
        raise cannot_be_run(running.tool)
    if running.is_lost:
        raise AttemptLost("The call was given to another worker.")
    return capture.inner.result()
