"""Inputs on their way from the inbox into history: each becomes a message of its own, in the commit that says so."""

from collections.abc import Sequence

from pydantic_ai.messages import ModelRequest

from outlast.agents import prompt
from outlast.agents.messages import history
from outlast.store.repositories import inputs, messages
from outlast.store.repositories.inputs import Input
from outlast.store.unit import Unit
from outlast.transitions import turn
from outlast.transitions.turn import Fence
from outlast.transitions.turns.due import due_at_start


def append(unit: Unit, fence: Fence, due: Sequence[Input]) -> None:
    """Add each to history and mark it delivered there."""
    session = unit.lock(fence.session_id)
    for each in due:
        body = history.encode_small(ModelRequest(parts=[prompt.render(each)]), beside=prompt.files_of(each))
        position = messages.append(
            unit, session, turn_id=fence.turn_id, kind="request", body=body, event=session.last_event
        )
        turn.deliver(unit, fence, [each], position)


def take_along(unit: Unit, fence: Fence) -> None:
    """A turn that fails before its first request takes what it was started for, or that starts it again."""
    append(unit, fence, due_at_start(inputs.waiting_for(unit, fence.session_id)))
