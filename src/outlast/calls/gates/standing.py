"""The gates that every call passes, in their order. To add one: a module beside this, and its name in `GATES`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic_ai.messages import ModelMessage

from outlast.calls.call import Connections
from outlast.calls.gates.approval import ApprovalGate
from outlast.calls.gates.breaker import Breaker
from outlast.calls.gates.connection import ConnectionGate
from outlast.calls.gates.dry_run import DryRunGate
from outlast.calls.gates.earlier_calls import EarlierCalls
from outlast.calls.gates.gate import Gate
from outlast.calls.gates.gates import Gates
from outlast.calls.gates.live_constraints import LiveConstraints
from outlast.calls.gates.permission import PermissionGate
from outlast.calls.gates.prerequisite import PrerequisiteGate
from outlast.ids import SessionId, TurnId
from outlast.store.database import Database


@dataclass(frozen=True, slots=True)
class GateContext:
    """What gates are made from: whose calls they are, where to read, and the messages of the turn so far."""

    session_id: SessionId
    owner_id: str
    turn_id: TurnId | None
    agent: str
    database: Database
    constraints: LiveConstraints
    earlier: EarlierCalls
    connections: Connections | None = None
    messages: Sequence[ModelMessage] = ()


GATES: Sequence[Callable[[GateContext], Gate]] = (
    lambda context: Breaker(context.messages),
    lambda context: PermissionGate(context.constraints),
    lambda context: PrerequisiteGate(context.earlier, context.constraints),
    lambda context: DryRunGate(context.constraints),
    lambda context: ConnectionGate(context.connections),
    lambda context: ApprovalGate(context.constraints),
)


def gates_for(context: GateContext) -> Gates:
    """Made anew for each run: a gate may keep what it has read, or counted, until the run ends."""
    return Gates([make(context) for make in GATES])
