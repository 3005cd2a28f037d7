"""A call as a task: its tool is run, for the first time or after its worker died, without a turn or a model."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic_ai import Agent, RunContext, ToolDefinition
from pydantic_ai.capabilities import CapabilityOrdering
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolCallPart, UserPromptPart
from pydantic_ai.toolsets import AbstractToolset

from outlast.agents.direct import cannot_be_run
from outlast.agents.host import TurnContext
from outlast.agents.lease import DepsLease
from outlast.calls.call import CallThreads, RunningCall
from outlast.calls.channel import CallChannel
from outlast.calls.confirmed import ConfirmedToolset
from outlast.calls.hook import start as begin
from outlast.calls.run_tasks import RunTasks
from outlast.calls.shared_usage import SharedUsage
from outlast.containment import Contained
from outlast.errors import AttemptLost
from outlast.runs.call_parts import CallParts, bind_channel
from outlast.runs.parked import Owned, SignalLatch
from outlast.runs.worker_parts import WorkerParts
from outlast.store.database import retry_while_unavailable
from outlast.store.repositories import outputs, tasks
from outlast.store.repositories.tasks import Task, WakePolicy
from outlast.transitions.many_tasks import Claimed


@dataclass
class _Capture(RunTasks):
    """Starts the one call and lets the run go: the call goes on without it."""

    running: RunningCall
    inner: asyncio.Task[Any] | None = None

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="outermost")

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return ConfirmedToolset(toolset)

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        self.running.shared_usage = ctx.usage
        self.inner = begin(self.running, handler, args)
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
    call = host.direct.caller(running)
    if call is None:
        run = _run(host.agent, parts.threads, running, lease)
        inner = asyncio.create_task(run, name=f"run {running.tool} {task.id}")
    else:
        inner = begin(running, partial(_call, call, parts.threads, lease), None)
    calls.parked.own(
        Owned(
            running,
            inner,
            task.id,
            attempt=task.attempt,
            when_over=lease.leave,
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
        may_write=lambda unit: tasks.holds(unit, task.id, task.attempt),
        tell_progress=lambda progress: None,
        attempt=task.attempt,
        offset=offset,
    )
    bind_channel(channel, parts, task.id, attempt=task.attempt)
    if offset:
        which = f"attempt {task.attempt}" if task.attempt > 1 else "tried again"
        channel.output(f"\n[{which}: the call runs again from its start]\n")
    args, secrets = task.spec.get("args"), parts.home.secrets
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
    )


async def _call(call: Callable[[], Awaitable[Any]], threads: CallThreads, lease: DepsLease, _: None) -> Any:
    await lease.open()  # as for any call, though a tool without a context cannot see what it gives
    with Agent.using_thread_executor(threads):
        return await call()


async def _run(agent: Agent[Any, Any], threads: CallThreads, running: RunningCall, lease: DepsLease) -> Any:
    """One tool without a model: a history that ends in its call, and only the step that executes calls."""
    capture = _Capture(running)
    call = ToolCallPart(tool_name=running.tool, args=running.args, tool_call_id=running.call_id)
    history = [ModelRequest(parts=[UserPromptPart(content="(run again)")]), ModelResponse(parts=[call])]
    value = await lease.open()
    try:
        with Contained(), Agent.using_thread_executor(threads):
            async with agent.iter(
                message_history=history, deps=value, usage=SharedUsage(), capabilities=[capture]
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
    if capture.inner is None:
        raise cannot_be_run(running.tool)
    if running.is_lost:
        raise AttemptLost("The call was given to another worker.")
    return capture.inner.result()
