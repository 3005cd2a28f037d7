"""One run of the agent inside a turn: from committed history to an end, every step committed before the next.

A request is committed before it is sent, a response before its tools run, a call's end before the next
request. Whatever interrupts the run, a new run from the committed history goes on exactly there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.usage import UsageLimits

from outlast.agents import prompt
from outlast.agents.host import AgentHost
from outlast.agents.messages import history
from outlast.agents.messages.concealed import Concealed
from outlast.agents.messages.harmless import harmless
from outlast.agents.messages.window import Window
from outlast.agents.model_hook import ModelHook, around_requests
from outlast.agents.output import OutputTypes
from outlast.agents.resource import LiveResource
from outlast.agents.usage import shared
from outlast.calls.call import CallThreads
from outlast.calls.control.toolset import ControlToolset
from outlast.calls.gates.standing import gates_for
from outlast.calls.hook import CallHook
from outlast.events import foreign
from outlast.events.types import EventType
from outlast.runs.policy import LoopPolicy
from outlast.runs.turns import delivery
from outlast.runs.turns.boundary import HandOver, Step, StopAsked
from outlast.runs.turns.call_answers import CallAnswers
from outlast.runs.turns.responses import Responses, last_response
from outlast.runs.turns.resume import OpenCallBook
from outlast.runs.turns.turn_calls import TurnCalls
from outlast.runs.turns.turn_log import TurnLog
from outlast.runs.turns.turn_usage import TurnUsage
from outlast.store.repositories import inputs, turns
from outlast.store.repositories.inputs import Input
from outlast.store.repositories.spending import stored
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
    answers: CallAnswers
    responses: Responses
    used: TurnUsage
    control: ControlToolset
    instructions: str | None
    resource: LiveResource
    output_types: OutputTypes
    messages: list[ModelMessage]
    window: Window
    """What of history stands before them was read from."""
    own_from: int
    """Index in `messages` from which they belong to this turn."""
    is_leaving: bool = False
    is_stopping: bool = False
    """It ends by itself, because it was asked to stop."""
    is_too_long: bool = False
    shortened: int = 0
    """How often, because a provider refused a request as too long."""
    has_begun: bool = False
    has_fallen_silent: bool = False
    is_request_stored: bool = False
    hook: CallHook | None = None

    async def run(self, host: AgentHost, deps: Any, model: Model | str | None, waiting: Sequence[Input]) -> Step:
        """Run the agent from the committed history until it ends or is interrupted."""
        given, user_prompt, committed = self._feed(waiting)
        if given is None:
            return Step.NOTHING_TO_DO
        self.count_outputs()
        earlier, self.hook = self.hook, self._call_hook()
        if earlier is not None:
            self.hook.records.go_on_from(earlier.records)
        self.answers.records = self.hook.records
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
        self.responses.partial = None
        running: Any = None
        try:
            with Agent.using_thread_executor(self.threads):
                async with host.agent.iter(
                    user_prompt,
                    message_history=given,
                    deps=deps,
                    model=model,
                    usage=shared(self.used.total),
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
            self.responses.partial = last_response(running)
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
            open_calls=self.answers.book,
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
                await self.responses.stream(running, node, is_replay=is_replay)
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
        made = self.used.all_requests
        if made >= self.policy.max_requests:
            raise turn_failure.turn_limit(made)
        own: list[ModelRequestPart] = list(node.request.parts)
        if has_prompt:
            own = own[:-1] if isinstance(own[-1], UserPromptPart) else own
        own = await self.answers.put_back(own)
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
            turns.set_values(unit, self.claim.fence.turn_id, **self.used.columns(self.used.requests + 1))
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
        self.answers.book = OpenCallBook()
        if self.hook is not None:
            self.hook.open_calls = self.answers.book
        self.has_begun = True
        self.is_request_stored = False
        self.used.requests += 1
        return True

    @property
    def has_earlier_turns(self) -> bool:
        """Whether it is sent messages of other turns, beside a summary of such."""
        return self.own_from > (self.window.prefix is not None)

    def _over_its_ceiling(self, now: datetime) -> turn_failure.Failure | None:
        """The turn may ask its model no more: it has run too long, or cost too much."""
        policy, used = self.policy, self.used.total
        if now - (self.claim.turn.started_at or now) >= policy.longest:
            return turn_failure.too_long(policy.longest)
        if policy.most_cost is not None and (used.cost_microdollars or 0) >= policy.most_cost and used.requests:
            return turn_failure.too_dear()
        return None

    def take_inputs(self, unit: Unit) -> None:
        """For the end of a turn that fails: what it was started for must not start it again."""
        if not self.has_begun:
            delivery.take_along(unit, self.claim.fence)

    def take_written(self) -> None:
        self.messages += self.log.written
        self.log.written.clear()

    async def _journal(self, response: ModelResponse) -> None:
        """Commit the response. One with calls before any of them runs: this is their write-ahead journal."""
        if self.responses.arriving is not None:
            self.responses.arriving.end_all()
        await self.responses.keep(response)
        calls = history.calls_of(response)
        if calls:
            self.calls.repeats.count(calls)
            if self.hook is not None:
                self.hook.records.expect(call.tool_call_id for call in calls)
            await self.log.commit("journal", lambda unit: None)
            self.take_written()

    async def _stream_calls(self, running: Any, node: Any) -> None:
        async with node.stream(running.ctx) as stream:
            async for event in stream:
                if isinstance(event, FunctionToolCallEvent):
                    await self.answers.began(event.part, running)
                elif isinstance(event, FunctionToolResultEvent):
                    await self.answers.ended(event.part, event.content)

    def count_outputs(self) -> None:
        """What agents used that output functions and validators ran."""
        if self.hook is not None:
            self.used.take(self.hook.uses_of_outputs)

    async def _end(self, running: Any) -> Step:
        """End the turn, or go on if something for it arrived: decided under the session's lock."""
        trailing = running.all_messages()[-1]
        if isinstance(trailing, ModelRequest):
            parts = [*map(harmless, await self.answers.put_back(list(trailing.parts)))]
            await self.log.add_message(replace(trailing, parts=parts))
        open_now = history.open_calls([*self.messages, *running.all_messages()[-2:]])
        if open_now:
            await self.answers.answer_open(open_now)
        return await self._finish(running.result.output)

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
        data = {**foreign.masked(turn.END_EVENT[target], data, self.log.secrets), "usage": stored(self.used.total)}
        values = self.used.columns(self.used.requests)
        moved = turn.end(unit, self.claim, target, data, values=values, waiting=waiting)
        assert moved is Disposition.MOVED, "the fence was checked in this transaction"
        return Step.ENDED
