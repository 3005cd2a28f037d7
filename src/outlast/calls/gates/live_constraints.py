"""What constrains the calls of a session at this moment: read when a call is about to run, along its ancestors."""

from collections.abc import Callable
from functools import partial

from outlast.ids import SessionId
from outlast.store.database import Database, retry_while_unavailable
from outlast.transitions.sessions.constraints import FREE, Chain, chain_of


class LiveConstraints:
    """Of one session. A session that nothing can constrain costs no read."""

    def __init__(self, database: Database, session_id: SessionId, may_hold: Callable[[], bool]) -> None:
        """`may_hold`: as the last commit of whoever runs the calls has seen it, under the session's lock."""
        self._database = database
        self._read = partial(chain_of, session_id=session_id)
        self._may_hold = may_hold

    async def now(self) -> Chain:
        if not self._may_hold():
            return FREE
        return await retry_while_unavailable(lambda: self._database.glance(self._read))
