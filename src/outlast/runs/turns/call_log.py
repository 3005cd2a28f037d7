"""What the log says of a turn's calls: that they began, and how each ended, with its result."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import ToolDefinition
from pydantic_ai.messages import ToolCallPart, ToolReturnPart
from pydantic_core import to_jsonable_python

from outlast.agents.messages import history
from outlast.calls.narration import Narration, of_call
from outlast.events.types import EventType
from outlast.ids import TaskId
from outlast.runs.turns.resume import OpenCallBook
from outlast.runs.turns.turn_calls import TurnCalls
from outlast.runs.turns.turn_log import TurnLog
from outlast.store.repositories import interrupted
from outlast.transitions.turns import inbox
from outlast.values import clean
from outlast.values.digest import object_of


@dataclass(frozen=True, slots=True)
class CallLog:
    """One per attempt. Ends wait a few milliseconds to share a commit, like all that is said of a turn."""

    log: TurnLog
    calls: TurnCalls
    narrations: dict[str, Narration] = field(default_factory=dict[str, Narration])

    async def began(self, call: ToolCallPart, definition: ToolDefinition | None = None) -> None:
        said = of_call(definition, call.tool_name, call.args, self.log.secrets.mask)
        self.narrations[call.tool_call_id] = said
        data = {
            "call_id": call.tool_call_id,
            "tool": call.tool_name,
            "args": object_of(call.args),
            **_given(narration=said.of("running")),
        }
        await self.log.add_large(EventType.CALL_STARTED, data)

    async def ended(
        self,
        part: ToolReturnPart,
        content: Any = None,
        *,
        task_id: TaskId | None = None,
        is_unknown: bool = False,
        usage: Mapping[str, Any] | None = None,
    ) -> None:
        """The end of a call; wakes whose news its result carries to the model are withdrawn in the same commit.

        With a task it goes on there: parked, or without a word to its cancel. `is_unknown`: nobody knows its effect.
        """
        outcome = "parked" if task_id is not None and part.outcome == "success" else part.outcome
        said = self.narrations.pop(part.tool_call_id, None)
        data: dict[str, Any] = {
            "call_id": part.tool_call_id,
            "tool": part.tool_name,
            "outcome": outcome,
            "part": history.encode_part(part),
            **_given(
                narration=None if said is None else said.of_outcome(outcome),
                content=to_jsonable_python(content, fallback=clean.words_of) if content else None,
                artifacts=self.calls.artifacts(part.tool_call_id),
                task_id=task_id,
                usage=usage,
            ),
            **({"is_unknown": is_unknown} if outcome == "interrupted" else {}),
        }
        await self.log.add_large(EventType.CALL_ENDED, data)
        if is_unknown:
            fence, call_id, tool = self.log.fence, part.tool_call_id, part.tool_name
            self.log.also(
                lambda unit: interrupted.add(unit, fence.session_id, call_id=call_id, tool=tool, turn_id=fence.turn_id)
            )
        told = self.calls.told(part.tool_call_id)
        if told and part.outcome == "success":
            session_id = self.log.fence.session_id
            self.log.also(lambda unit: inbox.withdraw_wakes(unit, session_id, told))

    async def tell_parked(self, book: OpenCallBook) -> None:
        """The ends as calls of those that were parked by an attempt that could not tell it any more."""
        for call_id, task_id in book.untold.items():
            await self.ended(book.recorded[call_id].part, task_id=task_id)


def _given(**values: Any) -> Mapping[str, Any]:
    return {name: value for name, value in values.items() if value}
