"""What a session has had so far, and waits for: its turns, its log, its history, its inbox and its tasks."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import sqlalchemy as sa
from pydantic_ai.messages import ModelMessage

from outlast import paging
from outlast.agents.messages import history
from outlast.agents.messages.history import StoredMessage
from outlast.errors import InvalidInput, NotFound
from outlast.events.outcome import Outcome
from outlast.events.stream import EventStream
from outlast.handles import reading
from outlast.handles.one_session import view
from outlast.handles.one_session.files import FilesOfSession
from outlast.handles.one_session.seen import SeenSession
from outlast.handles.services.services import Services
from outlast.handles.turn import Turn, is_settled, last_outcome, settled
from outlast.ids import InputId, TurnId
from outlast.paging import Page
from outlast.store.repositories import events, inputs, messages, task_facts, tasks, turns
from outlast.store.repositories.inputs import Input, InputKind
from outlast.store.repositories.sessions import SessionRow
from outlast.store.repositories.stored_task import Task as StoredTask
from outlast.store.repositories.turns import TurnRow
from outlast.wire.event import EventAnswer
from outlast.wire.task import Task
from outlast.wire.turn import TurnSummary, Until
from outlast.wire.view import SessionView

T = TypeVar("T")


class ReadSession(SeenSession):
    """A session to read: nothing here changes it. Each look is at what is stored now, and of the owner alone."""

    def __init__(self, services: Services, row: SessionRow) -> None:
        super().__init__(services, row)
        self._database = services.database

    async def settled(self, *, wait: float | None = None) -> Outcome | None:
        """Wait until nothing runs and nothing that will wake the session is open; the last turn's outcome."""
        return await settled(self._services, self.id, self.owner_id, wait=wait)

    async def is_settled(self) -> bool:
        """Whether nothing runs and nothing that will wake the session is open, now."""
        return await self._read(partial(is_settled, session_id=self.id, owner_id=self.owner_id))

    async def result(self, *, wait: float | None = None, until: Until = "turn") -> Outcome | None:
        """The outcome of the latest turn, at its end or after `wait` seconds; None if there was no turn yet.

        `until="settled"` waits until nothing that will wake the session is open either, as `settled` does.
        """
        if until not in ("turn", "settled"):
            raise InvalidInput(f"until={until!r} is not known: use turn or settled.")
        if until == "settled":
            return await self.settled(wait=wait)
        return await last_outcome(self._services, self.id, self.owner_id, wait=wait)

    def events(self, *, after: int = 0, follow: bool = True, types: Sequence[str] = ()) -> EventStream:
        """Replay from a position, then follow; of these `types` only, if some are named. Use it in `async with`."""
        return reading.stream(self._services, self.id, self.owner_id, after=after, follow=follow, types=types)

    async def snapshot(self) -> dict[str, Any]:
        """The session's state in a few fields: what a reader needs who cannot have all events."""
        return await reading.snapshot(self._services, self.id, self.owner_id)

    async def view(self, *, turns: int = 30, before: str | None = None) -> SessionView:
        """The session as people see it: its last turns, or those before another one, what waits, and its open tasks.

        All of one moment: `events(after=view.as_of)` goes on from exactly there. A page has at most 1 MiB; what is
        larger is shown as its beginning. `next` is the `before` of the page of older turns.
        """
        return SessionView.model_validate_json(await self.view_json(turns=turns, before=before))

    async def view_json(self, *, turns: int = 30, before: str | None = None) -> bytes:
        """The same as JSON."""
        asked = view.Asked(min(max(turns, 1), view.MOST_TURNS), None if before is None else TurnId(before))
        return await view.read(self._services, self.id, self.owner_id, asked)

    async def block_json(self, turn_id: TurnId | str, number: int) -> bytes:
        """A block of a turn, whole, as JSON: the `href` of one that was cut."""
        return await view.read_block(self._services, self.id, self.owner_id, TurnId(turn_id), number)

    @property
    def files(self) -> FilesOfSession:
        """Its files by name: those that were given, those of messages, and those that tools made."""
        return FilesOfSession(self._services, self.id, self.owner_id)

    def turn(self, turn_id: TurnId | str) -> Turn:
        return Turn(self._services, self.id, TurnId(turn_id), owner_id=self.owner_id)

    async def turns(self, *, before: TurnId | str | None = None, limit: int = 50) -> Page[Turn]:
        """The last turns, or those before another one; oldest first. `next` is the turn to read on before."""
        rows, following = await self._latest(before, limit)
        return Page([self.turn(row.id) for row in rows], following)

    async def turn_list(self, *, before: TurnId | str | None = None, limit: int = 50) -> Page[TurnSummary]:
        """The last turns in a few words, or those before another one; oldest first. `next`: give it as `before`."""
        rows, following = await self._latest(before, limit)
        show = self._services.shown.error
        return Page([TurnSummary.of(replace(row, error=show(row.error))) for row in rows], following)

    async def _latest(self, before: TurnId | str | None, limit: int) -> tuple[Sequence[TurnRow], TurnId | None]:
        begin, most = None if before is None else await self.turn(before).begins_after() + 1, paging.clamp(limit)
        rows = await self._read(partial(turns.latest, session_id=self.id, before=begin, limit=most + 1))
        shown = rows[-most:]
        return shown, shown[0].id if len(rows) > most else None

    async def log(
        self,
        *,
        after: int = 0,
        before: int | None = None,
        turn_id: str | None = None,
        task_id: str | None = None,
        types: Sequence[str] = (),
        limit: int = 1_000,
    ) -> Sequence[EventAnswer]:
        """A page of the log: after a position, or (`before`) the last events before one; of a turn, a task, types."""
        wanted = events.Chosen(after, before, turn_id, task_id, types, min(max(limit, 1), 1_000))
        found = await self._read(partial(events.chosen, session_id=self.id, wanted=wanted))
        return [EventAnswer.of(self._services.shown.event(each)) for each in found]

    async def first_turn(self) -> Turn | None:
        """The turn that the session began with, as it was made last; None if it had none yet."""
        return await self._turn_from(0)

    async def turn_after(self, turn_id: TurnId | str) -> Turn | None:
        """The turn that came next after another one, whether it runs or is over.

        If that was made again, what it was made last.
        """
        return await self._turn_from(await self.turn(turn_id).begins_after() + 1)

    async def _turn_from(self, after: int) -> Turn | None:
        found = await self._read(lambda connection: turns.next_of(connection, self.id, after=after))
        return None if found is None else self.turn(found.id)

    async def history(self) -> list[ModelMessage]:
        """What the model sees of the conversation so far, as pydantic-ai has it."""
        await self._row()
        found = await history.load(self._database, self._services.files, self.id)
        return [self._services.shown.history(each.message) for each in found]

    async def messages(self, *, after: int | str = 0, limit: int = 100) -> Page[StoredMessage]:
        """The stored messages after a position, in order, as JSON; `next` is the position to go on after."""
        begin, most = _position(after), paging.clamp(limit)
        rows = await self._read(partial(messages.page, session_id=self.id, after=begin, limit=most + 1))
        show = self._services.shown.message
        shown = [await history.stored(self._services.files, row, show) for row in rows[:most]]
        return Page(shown, str(shown[-1].position) if len(rows) > most else None)

    async def inbox(self, *, is_whole: bool = False) -> list[Input]:
        """The messages that wait, in the order in which they were accepted; the `is_whole` one has results too."""
        waiting = inputs.placed(await self._read(lambda connection: inputs.waiting(connection, self.id)))
        wanted = (each for each in waiting if is_whole or each.kind is InputKind.MESSAGE)
        return [self._services.shown.input(each) for each in wanted]

    async def input(self, input_id: InputId | str) -> Input:
        found = await self._read(lambda connection: inputs.get_placed(connection, self.id, InputId(input_id)))
        if found is None:
            raise NotFound("There is no such input.", id=input_id)
        return self._services.shown.input(found)

    async def tasks(self) -> list[Task]:
        def read(connection: sa.Connection) -> tuple[Sequence[StoredTask], Collection[str]]:
            found = task_facts.with_facts(connection, tasks.page(connection, session_id=self.id, limit=500))
            return found, reading.unserved(connection, found)

        found, unserved = await self._read(read)
        return [self._services.shown.task(each, unserved=unserved) for each in found]

    async def _row(self) -> SessionRow:
        return await self._database.read(self._there, is_single=True)

    async def _read(self, fn: Callable[[sa.Connection], T]) -> T:
        """Read something of a session that is still there."""

        def read(connection: sa.Connection) -> T:
            self._there(connection)
            return fn(connection)

        return await self._database.read(read)

    def _there(self, connection: sa.Connection) -> SessionRow:
        return reading.there(connection, self.id, self.owner_id)


def _position(given: int | str) -> int:
    try:
        return min(max(0, int(given)), 2**31 - 1)
    except ValueError as exc:
        raise InvalidInput(f"{given!r} is not a position: use the `next` of the last page, or none.") from exc
