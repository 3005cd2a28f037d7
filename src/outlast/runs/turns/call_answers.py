"""What the calls of a turn came to, on its way into the log and into history."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_ai.messages import ModelRequest, ModelRequestPart, ToolCallPart, ToolReturnPart

from outlast.agents.messages import history
from outlast.agents.messages.harmless import harmless, harmless_content
from outlast.calls import outcomes
from outlast.calls.gates.breaker import mark_transient
from outlast.calls.record import CallRecord, CallRecords, CallState
from outlast.runs.turns.call_log import CallLog
from outlast.runs.turns.resume import OpenCallBook, Recorded
from outlast.runs.turns.turn_calls import TurnCalls
from outlast.runs.turns.turn_log import TurnLog
from outlast.runs.turns.turn_usage import TurnUsage
from outlast.store.repositories.spending import stored


@dataclass(slots=True)
class CallAnswers:
    """Every call is answered once, in words that are true of it."""

    log: TurnLog
    call_log: CallLog
    calls: TurnCalls
    used: TurnUsage
    book: OpenCallBook
    """What the run began with: calls that were open then."""
    records: CallRecords | None = None
    """What the run knows of its calls; None before the first run."""

    def record_of(self, call_id: str) -> CallRecord:
        """What this run knows of a call; before the first run nothing has begun."""
        return CallRecord() if self.records is None else self.records.of(call_id)

    async def put_back(self, parts: list[ModelRequestPart]) -> list[ModelRequestPart]:
        """Recorded and uncertain answers in the places of calls that were open when this run began."""
        uncertain = [call_id for call_id in self.book.in_flight if self._is_uncertain(call_id)]
        for call_id in uncertain:
            tool = self.book.in_flight[call_id].tool_name
            await self.log_end(outcomes.interrupted(tool, call_id, outcomes.MAY_HAVE_RUN))
        return self.book.put_back(parts, uncertain)

    def _is_uncertain(self, call_id: str) -> bool:
        """It was in flight and was not run again: its tool must not be, is gone, or no longer takes its arguments."""
        return self.book.was_in_flight(call_id) and not self.record_of(call_id).may_run_again

    async def began(self, call: ToolCallPart, running: Any) -> None:
        if call.tool_call_id not in self.book.started:
            await self.call_log.began(call, running.ctx.deps.tool_manager.get_tool_def(call.tool_name))

    async def ended(self, part: ToolReturnPart, content: Any) -> None:
        """The run told how a call ended."""
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
            self.used.add_spent(used)

    async def answer_open(self, open_now: Sequence[ToolCallPart]) -> None:
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
