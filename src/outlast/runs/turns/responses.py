"""The responses of a turn's model: told while they arrive, then kept in history, or left out of the log."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pydantic_ai.messages import ModelResponse, PartStartEvent

from outlast.agents.messages.plain_message import make_response_plain
from outlast.agents.usage import usage_of
from outlast.events.event import Draft
from outlast.events.types import EventType
from outlast.runs.turns.response_log import ResponseLog
from outlast.runs.turns.turn_log import TurnLog
from outlast.runs.turns.turn_usage import TurnUsage
from outlast.store.repositories import events, messages
from outlast.store.unit import Unit
from outlast.transitions.turn import Claim
from outlast.transitions.turns import turn_failure


@dataclass(slots=True)
class Responses:
    """One after the other, in one attempt."""

    claim: Claim
    log: TurnLog
    used: TurnUsage
    idle_timeout: timedelta
    arriving: ResponseLog | None = None
    """The one that is told and not kept yet."""
    partial: ModelResponse | None = None
    """The last that a run of the agent had when it ended, whole or not."""
    is_streamed: bool = True
    """Whether the model is asked to stream its responses; found out by asking."""
    number: int = 0

    async def stream(self, running: Any, node: Any, *, is_replay: bool) -> None:
        """Send the request of `node` and tell its response. Raises a failure when nothing comes for too long."""
        self.number += 1
        response = ResponseLog(self.log, f"{self.claim.fence.attempt}.{self.number}")
        self.arriving = None if is_replay else response
        seconds = self.idle_timeout.total_seconds()
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
        said = last_response(running)
        if said is not None:
            make_response_plain(said)
        if response is not None and said is not None:
            for index, part in enumerate(said.parts):
                response.take(PartStartEvent(index=index, part=part))

    def ask_whole_from_now_on(self) -> None:
        """The model refused to stream: the request is there, was not sent, and is asked again."""
        self.is_streamed = False
        self.arriving = None
        self.used.requests -= 1

    async def keep(self, response: ModelResponse) -> None:
        """Append a response to history with the next commit."""
        self.arriving = None
        make_response_plain(response)
        usage = usage_of(response)
        self.used.total.add(usage)
        await self.log.add_message(response, lambda position: [self._completed(response, usage, position)])
        self.used.pay_for_response(usage)

    def _completed(self, response: ModelResponse, usage: dict[str, Any], position: int) -> Draft:
        data = {
            "message": position,
            "model": response.model_name,
            "usage": usage,
            "finish": response.finish_reason,
        }
        return Draft(EventType.RESPONSE_COMPLETED, data, self.claim.fence.turn_id)

    async def drop(self, reason: str, **data: Any) -> None:
        """Leave a response that did not arrive whole out of the log, and tell those who read part of it."""
        fence = self.claim.fence

        def drop(unit: Unit) -> None:
            last = messages.last(unit.connection, fence.session_id)
            after = max(self.claim.turn.first_event, last.event if last is not None else 0)
            dropped = events.drop_parts(unit, fence.session_id, fence.turn_id, after=after)
            told = {"reason": reason, "dropped": dropped, **data}
            unit.append(fence.session_id, [Draft(EventType.RESPONSE_DROPPED, told, fence.turn_id)])
            self.arriving = None

        self.partial = None
        self.log.discard_parts()
        await self.log.commit("drop", drop)


def last_response(running: Any) -> ModelResponse | None:
    if running is None:
        return None
    said = running.all_messages()
    last = said[-1] if said else None
    return last if isinstance(last, ModelResponse) else None
