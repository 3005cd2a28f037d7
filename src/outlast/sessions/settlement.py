"""A person says what became of a call that may or may not have taken effect."""

from enum import StrEnum

import sqlalchemy as sa
from pydantic_core import to_json

from outlast.errors import Conflict, InvalidInput, NotFound
from outlast.events.types import EventType
from outlast.ids import SessionId
from outlast.sessions import inbox, turn
from outlast.sessions.inbox import Limits
from outlast.store import inputs, interrupted
from outlast.store.inputs import Input, InputKind
from outlast.store.tables import events
from outlast.store.unit import Unit
from outlast.tools import row_json


class Verdict(StrEnum):
    WORKED = "worked"
    FAILED = "failed"
    TRY_AGAIN = "try_again"


_SAYS = {
    Verdict.WORKED: "it took effect",
    Verdict.FAILED: "it did not take effect",
    Verdict.TRY_AGAIN: "it should be tried again",
}


def settle(
    unit: Unit,
    session_id: SessionId,
    call_id: str,
    verdict: Verdict,
    *,
    by: str,
    note: str,
    owner_id: str,
    limits: Limits,
) -> Input:
    """Once per call; the word goes to the model like any other input and starts a turn if the session is idle."""
    session = unit.lock(session_id, owner_id=owner_id)
    if verdict not in _SAYS:
        raise InvalidInput(f"{verdict!r} is not a verdict: use worked, failed or try_again.")
    tool = _interrupted_tool(unit, session_id, call_id)
    key = f"settle:{call_id}"
    if inputs.by_key(unit.connection, session_id, key) is not None:
        raise Conflict("This call was already settled.", call_id=call_id)
    interrupted.remove(session, call_id)
    text = f"{by} says of the call {call_id} ({tool}), whose effect was unknown: {_SAYS[verdict]}."
    turn.release(unit, session)
    return inbox.notify(
        unit,
        session_id,
        InputKind.SETTLEMENT,
        f"{text} {note}".strip(),
        body={"call_id": call_id, "verdict": verdict},
        idempotency_key=key,
        limits=limits,
    )


def _interrupted_tool(unit: Unit, session_id: SessionId, call_id: str) -> str:
    found = unit.connection.execute(
        sa.select(events.c.data).where(
            events.c.session_id == session_id,
            events.c.type == EventType.CALL_ENDED.value,
            events.c.data.contains(f'"call_id":{to_json(call_id).decode()}', autoescape=True),
        )
    ).scalars()
    for data in map(row_json.read_object, found):
        if data.get("call_id") == call_id:
            if data["outcome"] != "interrupted":
                raise Conflict(f"The call ended as {data['outcome']}: there is nothing to settle.")
            return data["tool"]
    raise NotFound("There is no such call.", id=call_id)
