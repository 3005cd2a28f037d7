"""Answering the last message anew: history is append-only, so the old answer is kept and marked as superseded.

One commit marks it and starts the turn. From then on the turn begins like one whose request was committed just
before a crash: history ends with what was said to the model, and nothing has answered it.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart

from outlast.agents.messages import history
from outlast.agents.messages.history import Entry
from outlast.errors import Conflict, SessionBusy
from outlast.handles.services.services import Services
from outlast.ids import SessionId, TurnId
from outlast.store.repositories import inputs, messages, summaries, turns
from outlast.store.repositories.turns import Origin
from outlast.store.unit import Unit
from outlast.transitions.turns import turn_start


async def regenerate(services: Services, session_id: SessionId, *, model: str | None, owner_id: str) -> TurnId:
    def look(connection: sa.Connection) -> tuple[int, int | None]:
        last = messages.last(connection, session_id)
        return 0 if last is None else last.position, inputs.last_message(connection, session_id)

    seen, said = await services.database.read(look)
    if said is None:
        said = _last_said(await history.load(services.database, services.files, session_id))

    def restart(unit: Unit) -> TurnId:
        return _restart(unit, session_id, keep=said, seen=seen, model=model, owner_id=owner_id)

    return await services.database.transaction(restart, name="regenerate")


def _restart(
    unit: Unit,
    session_id: SessionId,
    *,
    keep: int | None,
    seen: int,
    model: str | None,
    owner_id: str,
) -> TurnId:
    """`keep`: the position of the last message to the model. `seen`: the end of history when that was found."""
    session = unit.lock(session_id, owner_id=owner_id)
    if session.turn_id is not None or session.last_message != seen:
        raise SessionBusy("A turn is running: wait for its end or stop it, then regenerate.")
    if keep is None:
        raise Conflict("Nothing was said in this session yet: send a message instead.")
    last = turns.last_of(unit.connection, session_id)
    turn_start.release(unit, session)
    told = {} if last is None else {"regenerates": last.id}
    # A model by its name is one of an agent's own: after a change of agents it may mean another, or none.
    chosen = model or (session.model if last is None or last.agent != session.agent else last.model)
    turn_id = turn_start.start(unit, session, Origin.REGENERATE, told=told, model=chosen)
    messages.supersede(unit, session_id, after=keep, by=turn_id)
    summaries.drop_after(unit, session_id, keep)
    return turn_id


def _last_said(entries: Sequence[Entry]) -> int | None:
    """In a history from elsewhere: the last request that says something, and is not the answer to a call."""
    return next((entry.position for entry in reversed(entries) if _says_something(entry.message)), None)


def _says_something(message: ModelMessage) -> bool:
    if not isinstance(message, ModelRequest) or history.answered_in(message):
        return False
    return any(isinstance(part, UserPromptPart) for part in message.parts)
