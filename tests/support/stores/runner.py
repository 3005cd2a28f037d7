"""The transactions of a runner, one by one: what the turn loop commits, without a model in between."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from outlast.errors import AttemptLost
from outlast.ids import TurnId, WorkerId
from outlast.limits import Limits
from outlast.runs.turns.turn_log import TurnLog
from outlast.store.database import Database
from outlast.store.files.file_store import FileStore
from outlast.store.repositories import inputs, messages, turns
from outlast.store.repositories.inputs import Input
from outlast.store.repositories.turns import TurnState
from outlast.store.unit import Unit
from outlast.transitions import turn
from outlast.transitions.turn import Claim
from outlast.transitions.turns.due import due_at_boundary, due_at_start
from outlast.values.secrets import Secrets
from tests.support.stores.store import under


class Runner:
    """One attempt. Every method is one transaction behind the fence; it raises `AttemptLost` when superseded."""

    def __init__(self, database: Database, claim: Claim, limits: Limits, files: Path) -> None:
        self.claim = claim
        self.has_begun = claim.fence.attempt > 1
        self.was_lost = False
        self._limits = limits
        self._log = TurnLog(
            database, FileStore(str(files)), claim.fence, Secrets(), timedelta(seconds=30), when_lost=self._lose
        )

    @property
    def turn_id(self) -> TurnId:
        return self.claim.fence.turn_id

    def _lose(self) -> None:
        self.was_lost = True

    async def deliver(self) -> Sequence[Input]:
        """Take what is due into the next request."""
        fence = self.claim.fence

        def take(unit: Unit) -> Sequence[Input]:
            session = unit.lock(fence.session_id)
            waiting = inputs.waiting(unit.connection, fence.session_id)
            due = due_at_boundary(waiting) if self.has_begun else due_at_start(waiting)
            for each in due:
                position = messages.append(
                    unit, session, turn_id=fence.turn_id, kind="request", body="{}", event=session.last_event
                )
                turn.deliver(unit, fence, [each], position)
            return due

        due = await self._log.commit("deliver", take)
        self.has_begun = True
        return due

    async def end(self) -> bool:
        """The model is done: end, unless something for this turn arrived. False: the turn goes on."""
        fence = self.claim.fence

        def end(unit: Unit) -> bool:
            if due_at_boundary(inputs.waiting(unit.connection, fence.session_id)):
                row = turns.get(unit.connection, fence.turn_id)
                if row is not None and row.stop_requested_at is None:
                    return False
            self._end(unit, TurnState.COMPLETED)
            return True

        return await self._log.commit("turn.end", end)

    async def finish(self, target: TurnState) -> None:
        """End as failed or stopped, whatever waits."""
        await self._log.commit("turn.end", lambda unit: self._end(unit, target))

    async def write(self) -> None:
        """Any write of an attempt."""
        await self._log.flush()

    async def crash(self) -> None:
        """Die; whoever finds out gives the turn back."""

        def give_back(unit: Unit) -> None:
            row = turns.get(unit.connection, self.turn_id)
            if row is None or row.attempt != self.claim.fence.attempt:
                raise AttemptLost("already given back")
            turn.requeue(under(self._limits, unit), row, has_crashed=True)

        await self._log.commit("give_back", give_back)

    def _end(self, unit: Unit, target: TurnState) -> None:
        turn.end(under(self._limits, unit), self.claim, target, {"usage": {}}, values={})


async def claimed(
    database: Database, turn_id: TurnId, limits: Limits, files: Path, *, worker: str = "wrk_1"
) -> Runner | None:
    claim = await database.transaction(lambda unit: turn.claim(unit, turn_id, WorkerId(worker)), name="claim")
    return None if claim is None else Runner(database, claim, limits, files)
