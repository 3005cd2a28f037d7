"""Calls that were told to cancel and have not ended when their turn does: somebody goes on owning them."""

from collections.abc import Iterable, Mapping
from datetime import timedelta

from outlast.calls.record import Unconfirmed
from outlast.calls.within.channel import CallChannel
from outlast.clock import monotonic
from outlast.ids import TaskId
from outlast.runs.call_parts import CallParts, bind_channel
from outlast.runs.owned import Owned
from outlast.store.repositories.stored_task import REPEAT, NewTask, WakePolicy
from outlast.store.unit import Unit
from outlast.transitions.tasks import task_moves
from outlast.transitions.tasks.parked import facts_of
from outlast.transitions.turn import Claim


def make_tasks(unit: Unit, claim: Claim, owned: Mapping[TaskId, Unconfirmed], parts: CallParts) -> None:
    """A silent task of each, in the commit that ends their turn, so that their ends are told somewhere."""
    fence = claim.fence
    for task_id, unconfirmed in owned.items():
        call = unconfirmed.call
        ran_for = timedelta(seconds=monotonic() - call.started)
        new = NewTask(
            task_id,
            title=f"{call.tool} (cancel requested)",
            turn_id=fence.turn_id,
            call_id=call.call_id,
            tool=call.tool,
            agent=claim.agent,
            spec={"args": call.args, "parked": facts_of("stop", ran_for), REPEAT: call.repeat},
            wake=WakePolicy.SILENT,
            is_cancel_requested=True,
            ran_for=ran_for,
        )
        task_moves.make(unit, fence.session_id, new, worker_id=parts.worker_id)


def own_as_tasks(owned: Mapping[TaskId, Unconfirmed], parts: CallParts) -> None:
    """After that commit: each is watched to its end under the task that it is now."""
    for task_id, unconfirmed in owned.items():
        channel = unconfirmed.call.channel
        if isinstance(channel, CallChannel):
            bind_channel(channel, parts, task_id, attempt=1)
        parts.parked.own(Owned(unconfirmed.call, unconfirmed.inner, task_id), is_canceled=True)


def own_without_task(left: Iterable[Unconfirmed], parts: CallParts) -> None:
    """Those that nobody took over, as when the attempt was lost, are still watched to their end."""
    for unconfirmed in left:
        parts.parked.own(Owned(unconfirmed.call, unconfirmed.inner, None), is_canceled=True)
