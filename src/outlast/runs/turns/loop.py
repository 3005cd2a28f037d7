"""One run of the agent inside a turn: from committed history to an end, every step committed before the next.

A request is committed before it is sent, a response before its tools run, a call's end before the next
request. Whatever interrupts the run, a new run from the committed history goes on exactly there.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import structlog
from pydantic_ai import Agent
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import (
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    PartStartEvent,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.usage import UsageLimits

from outlast.agents import prompt
from outlast.agents.host import AgentHost
from outlast.agents.messages import history
from outlast.agents.messages.concealed import Concealed
from outlast.agents.messages.harmless import harmless, harmless_content
from outlast.agents.messages.plain_message import make_response_plain
from outlast.agents.messages.window import Window
from outlast.agents.model_hook import ModelHook, around_requests
from outlast.agents.output import OutputTypes
from outlast.agents.resource import LiveResource
from outlast.agents.usage import shared, usage_of
from outlast.calls import outcomes
from outlast.calls.call import CallThreads
from outlast.calls.control.toolset import ControlToolset
from outlast.calls.gates.breaker import mark_transient
from outlast.calls.gates.standing import gates_for
from outlast.calls.hook import CallHook
from outlast.calls.record import CallRecord, CallState
from outlast.calls.shared_usage import take_used
from outlast.events import foreign
from outlast.events.event import Draft
from outlast.events.outcome import Usage
from outlast.events.types import EventType
from outlast.runs.policy import LoopPolicy
from outlast.runs.turns import delivery
from outlast.runs.turns.boundary import HandOver, Step, StopAsked
from outlast.runs.turns.call_log import CallLog
from outlast.runs.turns.response_log import ResponseLog
from outlast.runs.turns.resume import OpenCallBook, Recorded
from outlast.runs.turns.turn_calls import TurnCalls
from outlast.runs.turns.turn_log import TurnLog
from outlast.store.repositories import events, inputs, messages, spending, turns
from outlast.store.repositories.inputs import Input
from outlast.store.repositories.spending import Spent, stored
from outlast.store.repositories.turns import Disposition, Origin, TurnState
from outlast.store.unit import Unit
from outlast.tool_hints import UNSET
from outlast.transitions import turn
from outlast.transitions.turn import Claim
from outlast.transitions.turns import turn_failure
from outlast.transitions.turns.due import due_at_boundary, due_at_start

log = structlog.get_logger("outlast.turns")


@dataclass(slots=True)
class TurnRun:
    """The state of a turn in this process. `messages` is what is committed, in order."""

    claim: Claim
    log: TurnLog
    policy: LoopPolicy
    threads: CallThreads
    calls: TurnCalls
    call_log: CallLog
    control: ControlToolset
    instructions: str | None
    resource: LiveResource
    output_types: OutputTypes
    messages: list[ModelMessage]
    window: Window
    """What of history stands before them was read from."""
    book: OpenCallBook
    own_from: int
    """Index in `messages` from which they belong to this turn."""
    requests: int = 0
    requests_of_calls: int = 0
    """Those of agents that its tools ran."""
    responses: int = 0
    is_leaving: bool = False
    is_stopping: bool = False
    """It ends by itself, because it was asked to stop."""
    is_too_long: bool = False
    shortened: int = 0
    """How often, because a provider refused a request as too long."""
    is_streamed: bool = True
    """Whether the model is asked to stream its responses; found out by asking."""
    has_begun: bool = False
    has_fallen_silent: bool = False
    is_request_stored: bool = False
    response: ResponseLog | None = None
    hook: CallHook | None = None
    partial: ModelResponse | None = None
    usage: Usage = field(default_factory=Usage)

    async def run(self, host: AgentHost, deps: Any, model: Model | str | None, waiting: Sequence[Input]) -> Step:
        """Run the agent from the committed history until it ends or is interrupted."""
        given, user_prompt, committed = self._feed(waiting)
        if given is None:
            return Step.NOTHING_TO_DO
        self.count_outputs()
        earlier, self.hook = self.hook, self._call_hook()
        if earlier is not None:
            self.hook.records.go_on_from(earlier.records)
        model_hook = ModelHook(
            self.policy.context_window,
            self.policy.compact_above,
            lambda data: self.log.add(EventType.HISTORY_COMPACTED, data),
            committed,
            self.is_too_long,
            measure_tools=None if host.is_measured else host.measure_tools,
            overhead_of=host.overhead_of,
        )
        self.is_too_long = False
        self.partial = None
        running: Any = None
        try:
            with Agent.using_thread_executor(self.threads):
                async with host.agent.iter(
                    user_prompt,
                    message_history=given,
                    deps=deps,
                    model=model,
                    usage=shared(self.usage),
                    usage_limits=UsageLimits(request_limit=None),
                    capabilities=[
                        self.hook,
                        *around_requests(
                            model_hook, host.model_for(model), given, is_one_of_several=host.is_one_of_several
                        ),
                    ],
                ) as running:
                    # With open calls pydantic-ai begins at their response, which is stored already.
                    is_replay = committed is not None or bool(history.open_calls(given))
                    return await self._nodes(running, user_prompt, is_replay=is_replay)
        except UnexpectedModelBehavior:
            if (
                host.agent.output_type is not str
                or not self.has_fallen_silent
                or history.closing_line("", self.messages[self.own_from :]) is None
            ):
                raise
            return await self._finish("")
        finally:
            self.partial = _last_response(running)
            await self.hook.end_tasks()

    def _feed(self, waiting: Sequence[Input]) -> tuple[list[ModelMessage] | None, str | None, ModelResponse | None]:
        """What pydantic-ai is given: history, a prompt, or a committed final response that need not be asked again."""
        last = self.messages[-1] if self.messages else None
        self.is_request_stored = isinstance(last, ModelRequest)
        if self.is_request_stored or (last is not None and history.open_calls(self.messages)):
            return self.messages, None, None
        due = due_at_boundary(waiting) if self.has_begun else due_at_start(waiting)
        if due:
            return self.messages, due[0].text, None
        if isinstance(last, ModelResponse) and len(self.messages) > self.own_from:
            return self.messages[:-1], None, last
        if self.claim.turn.origin is Origin.RETRY and last is not None:
            return self.messages, prompt.CONTINUE, None
        return None, None, None

    def _call_hook(self) -> CallHook:
        calls = self.policy.calls
        if self.claim.budget is not UNSET:
            calls = replace(calls, budget=self.claim.budget)
        own, is_whole = self.messages[self.own_from :], self.window.is_whole
        context = self.calls.gate_context(self.messages, own, is_whole=is_whole)
        return CallHook(
            host=self.calls,
            open_calls=self.book,
            context=context,
            gates=gates_for(context),
            policy=calls,
            parking=self.calls,
            control=self.control,
            instructions=self.instructions,
            conceal=Concealed(self.log.secrets),
            resource=self.resource,
        )

    async def _nodes(self, running: Any, user_prompt: str | None, *, is_replay: bool) -> Step:
        has_prompt = user_prompt is not None
        async for node in running:
            if Agent.is_model_request_node(node):
                if not is_replay:
                    if not await self._deliver(running, node, has_prompt=has_prompt):
                        return Step.NOTHING_TO_DO
                    has_prompt = False
                await self._stream_response(running, node, is_replay=is_replay)
            elif Agent.is_call_tools_node(node):
                if not is_replay:
                    await self._journal(node.model_response)
                is_replay = False
                self.has_fallen_silent = history.says_nothing(node.model_response)
                await self._stream_calls(running, node)
        return await self._end(running)

    async def _deliver(self, running: Any, node: Any, *, has_prompt: bool) -> bool:
        """Commit the request, with the inputs that are due in it, before it is sent. False: there is none."""
        if self.is_leaving:
            raise HandOver
        self.count_outputs()
        made = self.requests + self.requests_of_calls
        if made >= self.policy.max_requests:
            raise turn_failure.turn_limit(made)
        own: list[ModelRequestPart] = list(node.request.parts)
        if has_prompt:
            own = own[:-1] if isinstance(own[-1], UserPromptPart) else own
        own = await self._put_back(own)
        if own and not self.is_request_stored:
            own = [*map(harmless, own)]
            await self.log.add_message(ModelRequest(parts=own))
        is_continuation = has_prompt and self.claim.turn.origin is Origin.RETRY

        def deliver(unit: Unit) -> list[Input] | turn_failure.Failure | None:
            if self.log.stop_reason is not None:
                return None
            if (over := self._over_its_ceiling(unit.now)) is not None:
                return over
            waiting = inputs.waiting_for(unit, self.claim.fence.session_id)
            due = due_at_boundary(waiting) if self.has_begun else due_at_start(waiting)
            if has_prompt and not due and not is_continuation:
                return None
            delivery.append(unit, self.claim.fence, due)
            turns.set_values(unit, self.claim.fence.turn_id, **self._counted(self.requests + 1))
            return due

        due = await self.log.commit("deliver" if not self.has_begun or has_prompt else "request", deliver)
        if self.log.stop_reason is not None:
            self.is_stopping = True
            raise StopAsked(self.log.stop_reason)
        if due is None:
            return False
        if isinstance(due, turn_failure.Failure):
            raise due
        prompts = [await prompt.render_whole(self.log.files, each) for each in due]
        if is_continuation and not due:
            prompts = [prompt.notice(prompt.CONTINUE)]
            await self.log.add_message(ModelRequest(parts=list(prompts)))
            await self.log.flush()
        else:
            self.log.written += [ModelRequest(parts=[each]) for each in prompts]
        request = history.masked(ModelRequest(parts=[*own, *prompts]), self.log.secrets)
        node.request.parts = list(request.parts)
        self.take_written()
        self.calls.relax()
        self.book = OpenCallBook()
        if self.hook is not None:
            self.hook.open_calls = self.book
        self.has_begun = True
        self.is_request_stored = False
        self.requests += 1
        return True

    @property
    def has_earlier_turns(self) -> bool:
        """Whether it is sent messages of other turns, beside a summary of such."""
        return self.own_from > (self.window.prefix is not None)

    def _over_its_ceiling(self, now: datetime) -> turn_failure.Failure | None:
        """The turn may ask its model no more: it has run too long, or cost too much."""
        policy, cost = self.policy, self.usage.cost_microdollars
        if now - (self.claim.turn.started_at or now) >= policy.longest:
            return turn_failure.too_long(policy.longest)
        if policy.most_cost is not None and (cost or 0) >= policy.most_cost and self.usage.requests:
            return turn_failure.too_dear()
        return None

    def take_inputs(self, unit: Unit) -> None:
        """For the end of a turn that fails: what it was started for must not start it again."""
        if not self.has_begun:
            delivery.take_along(unit, self.claim.fence)

    async def _put_back(self, parts: list[ModelRequestPart]) -> list[ModelRequestPart]:
        """Recorded and uncertain answers in the places of calls that were open when this run began."""
        uncertain = [call_id for call_id in self.book.in_flight if self._is_uncertain(call_id)]
        for call_id in uncertain:
            tool = self.book.in_flight[call_id].tool_name
            await self.log_end(outcomes.interrupted(tool, call_id, outcomes.MAY_HAVE_RUN))
        return self.book.put_back(parts, uncertain)

    def _is_uncertain(self, call_id: str) -> bool:
        """It was in flight and was not run again: its tool must not be, is gone, or no longer takes its arguments."""
        return self.book.was_in_flight(call_id) and not self.record_of(call_id).may_run_again

    def record_of(self, call_id: str) -> CallRecord:
        """What this run knows of a call; before the first run nothing has begun."""
        return CallRecord() if self.hook is None else self.hook.records.of(call_id)

    def take_written(self) -> None:
        self.messages += self.log.written
        self.log.written.clear()

    async def _stream_response(self, running: Any, node: Any, *, is_replay: bool) -> None:
        self.responses += 1
        response = ResponseLog(self.log, f"{self.claim.fence.attempt}.{self.responses}")
        self.response = None if is_replay else response
        seconds = self.policy.idle_timeout.total_seconds()
        slack = seconds / 100
        loop = asyncio.get_running_loop()
        idle = asyncio.timeout(seconds + slack)
        try:
            if not self.is_streamed:
                async with idle:
                    await self._ask_whole(running, node, None if is_replay else response)
                return
            async with idle, node.stream(running.ctx) as stream:
                async for event in stream:
                    # Not at every delta: a timer that is moved leaves the old one in the loop's heap.
                    if (idle.when() or 0) < loop.time() + seconds:
                        idle.reschedule(loop.time() + seconds + slack)
                    if not is_replay:
                        response.take(event)
        except TimeoutError as exc:
            if idle.expired():
                raise turn_failure.idle(seconds) from exc
            raise

    async def _ask_whole(self, running: Any, node: Any, response: ResponseLog | None) -> None:
        """For a model that cannot stream: what it says is told when all of it is there, each part at once."""
        await node.run(running.ctx)
        said = _last_response(running)
        if said is not None:
            make_response_plain(said)
        if response is not None and said is not None:
            for index, part in enumerate(said.parts):
                response.take(PartStartEvent(index=index, part=part))

    def ask_whole_from_now_on(self) -> None:
        """The model refused to stream: the request is there, was not sent, and is asked again."""
        self.is_streamed = False
        self.response = None
        self.requests -= 1

    async def _journal(self, response: ModelResponse) -> None:
        """Commit the response. One with calls before any of them runs: this is their write-ahead journal."""
        if self.response is not None:
            self.response.end_all()
        await self.keep(response)
        calls = history.calls_of(response)
        if calls:
            if self.hook is not None:
                self.hook.records.expect(call.tool_call_id for call in calls)
            await self.log.commit("journal", lambda unit: None)
            self.take_written()

    async def keep(self, response: ModelResponse) -> None:
        """Append a response to history with the next commit."""
        self.response = None
        make_response_plain(response)
        usage = usage_of(response)
        self.usage.add(usage)
        await self.log.add_message(response, lambda position: [self._completed(response, usage, position)])
        self.log.also(lambda unit: spending.add(unit, self.claim.owner_id, usage))

    def _completed(self, response: ModelResponse, usage: dict[str, Any], position: int) -> Draft:
        data = {
            "message": position,
            "model": response.model_name,
            "usage": usage,
            "finish": response.finish_reason,
        }
        return Draft(EventType.RESPONSE_COMPLETED, data, self.claim.fence.turn_id)

    async def _stream_calls(self, running: Any, node: Any) -> None:
        async with node.stream(running.ctx) as stream:
            async for event in stream:
                if isinstance(event, FunctionToolCallEvent):
                    if event.part.tool_call_id not in self.book.started:
                        definition = running.ctx.deps.tool_manager.get_tool_def(event.part.tool_name)
                        await self.call_log.began(event.part, definition)
                elif isinstance(event, FunctionToolResultEvent):
                    await self._call_ended(event.part, event.content)

    async def _call_ended(self, part: ToolReturnPart, content: Any) -> None:
        call_id = part.tool_call_id
        if self.book.is_answered(call_id) or self._is_uncertain(call_id):
            return
        if self.record_of(call_id).is_transient:
            mark_transient(part)
        part, content = self.clean(harmless(part)), self.log.secrets.mask(harmless_content(content))
        await self.log_end(part, content)
        self.book.recorded[call_id] = Recorded(part, content)

    def clean(self, part: ToolReturnPart) -> ToolReturnPart:
        """Without registered values."""
        (same,) = history.masked(ModelRequest(parts=[part]), self.log.secrets).parts
        return same if isinstance(same, ToolReturnPart) else part

    async def log_end(self, part: ToolReturnPart, content: Any = None) -> None:
        record = self.record_of(part.tool_call_id)
        parked = record.parked
        has_run = part.outcome == "interrupted" and part.content not in outcomes.NEVER_RAN
        is_unknown = has_run and not record.may_run_again
        task_id = None if parked is None else parked.task_id
        used = self.calls.used(part.tool_call_id) if parked is None else None  # else it counts with the task's end
        usage = None if used is None else stored(used)
        await self.call_log.ended(part, content, task_id=task_id, is_unknown=is_unknown, usage=usage)
        if used is not None:
            self.count(used)

    def count(self, used: Spent) -> None:
        """What agents used that the turn's own code ran; the owner pays for it with the next commit."""
        self.usage.add(stored(used))
        self.requests_of_calls += used.requests
        self.log.also(lambda unit: spending.add_spent(unit, self.claim.owner_id, used))

    def count_outputs(self) -> None:
        """The same of output functions and validators, of which some may have failed."""
        for each in self.hook.uses_of_outputs if self.hook is not None else ():
            used = take_used(each)
            if used is not None:
                self.count(used)

    async def _end(self, running: Any) -> Step:
        """End the turn, or go on if something for it arrived: decided under the session's lock."""
        trailing = running.all_messages()[-1]
        if isinstance(trailing, ModelRequest):
            parts = [*map(harmless, await self._put_back(list(trailing.parts)))]
            await self.log.add_message(replace(trailing, parts=parts))
        open_now = history.open_calls([*self.messages, *running.all_messages()[-2:]])
        if open_now:
            await self._answer_open(open_now)
        return await self._finish(running.result.output)

    async def _answer_open(self, open_now: Sequence[ToolCallPart]) -> None:
        """Calls that the agent's output leaves open: an approval, or a result from outside, is asked for with it."""
        parts: list[ModelRequestPart] = []
        for call in open_now:
            record = self.record_of(call.tool_call_id)
            if record.state is CallState.DEFERRED:
                part = record.came_to(call.tool_name, call.tool_call_id)
                await self.log_end(part)
            else:
                part = outcomes.interrupted(call.tool_name, call.tool_call_id, outcomes.CANCELED)
            parts.append(part)
        await self.log.add_message(ModelRequest(parts=parts))

    async def _finish(self, output: Any) -> Step:
        self.count_outputs()
        stored_output = self.output_types.dump(output)
        data: dict[str, Any] = {"output": stored_output.value}
        if stored_output.type_name is not None:
            data["output_type"] = stored_output.type_name
        if stored_output.fields is not None:
            data["output_fields"] = stored_output.fields
        closing = history.closing_line(output, self.messages[self.own_from :])
        if closing is not None:
            data["text"] = closing
        data = await self.log.pack(EventType.TURN_COMPLETED, data)

        def end(unit: Unit) -> Step:
            waiting = inputs.waiting_for(unit, self.claim.fence.session_id)
            if due_at_boundary(waiting):
                row = turns.get(unit.connection, self.claim.fence.turn_id)
                if row is not None and row.stop_requested_at is None:
                    return Step.GOES_ON
            return self.end_turn(unit, TurnState.COMPLETED, data, waiting=waiting)

        step = await self.log.commit("turn.end", end)
        self.take_written()
        return step

    def end_turn(
        self, unit: Unit, target: TurnState, data: dict[str, Any], *, waiting: Sequence[Input] | None = None
    ) -> Step:
        data = {**foreign.masked(turn.END_EVENT[target], data, self.log.secrets), "usage": stored(self.usage)}
        values = self._counted(self.requests)
        moved = turn.end(unit, self.claim, target, data, values=values, waiting=waiting)
        assert moved is Disposition.MOVED, "the fence was checked in this transaction"
        return Step.ENDED

    def _counted(self, requests: int) -> dict[str, Any]:
        return {"requests": requests, "usage": turns.encode(stored(self.usage))}

    async def drop_partial(self, reason: str, **data: Any) -> None:
        """Leave a response that did not arrive whole out of the log, and tell those who read part of it."""
        fence = self.claim.fence

        def drop(unit: Unit) -> None:
            last = messages.last(unit.connection, fence.session_id)
            after = max(self.claim.turn.first_event, last.event if last is not None else 0)
            dropped = events.drop_parts(unit, fence.session_id, fence.turn_id, after=after)
            unit.append(
                fence.session_id,
                [
                    Draft(
                        EventType.RESPONSE_DROPPED,
                        {"reason": reason, "dropped": dropped, **data},
                        fence.turn_id,
                    )
                ],
            )
            self.response = None

        self.partial = None
        self.log.discard_parts()
        await self.log.commit("drop", drop)


def _last_response(running: Any) -> ModelResponse | None:
    if running is None:
        return None
    said = running.all_messages()
    last = said[-1] if said else None
    return last if isinstance(last, ModelResponse) else None
