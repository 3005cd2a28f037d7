"""A session as a program holds it: a handle on what is stored, valid across restarts."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal, TypeVar, Unpack

import sqlalchemy as sa
from pydantic_ai.messages import ModelMessage

from outlast import paging
from outlast.agents.messages import history
from outlast.agents.messages.history import StoredMessage
from outlast.clock import monotonic
from outlast.errors import InvalidInput, NotFound
from outlast.events.outcome import Outcome
from outlast.events.stream import EventStream
from outlast.handles import reading
from outlast.handles.one_session import constrained, export, view
from outlast.handles.one_session.files import FilesOfSession
from outlast.handles.one_session.regenerate import regenerate
from outlast.handles.one_session.seen import SeenSession
from outlast.handles.one_session.spawn import spawn
from outlast.handles.schedules import What, make
from outlast.handles.sending import send
from outlast.handles.services.services import Services
from outlast.handles.turn import Sent, Turn, is_settled, last_outcome, seconds_left, settled
from outlast.ids import InputId, TurnId
from outlast.paging import Page
from outlast.store.repositories import events, inputs, messages, task_facts, tasks, turns
from outlast.store.repositories.inputs import Input, InputKind
from outlast.store.repositories.sessions import SessionRow
from outlast.store.repositories.stored_task import Task as StoredTask
from outlast.store.unit import Unit
from outlast.timing import when as whens
from outlast.tool_hints import UNSET, Unset
from outlast.transitions import cancel, sub_sessions, turn, verdicts
from outlast.transitions.schedules import changes
from outlast.transitions.sessions import constraints, profile
from outlast.transitions.sessions.profile import Profile
from outlast.transitions.turns import inbox
from outlast.wire.constraints import Permissions
from outlast.wire.event import EventAnswer
from outlast.wire.message import SendOptions
from outlast.wire.schedule import MissedPolicy, OverlapPolicy, Schedule
from outlast.wire.task import Task
from outlast.wire.turn import TurnSummary, Until, Verdict
from outlast.wire.view import SessionView

T = TypeVar("T")


class Session(SeenSession):
    """A conversation that outlives processes. Its attributes are as of the last look: `refresh` looks again."""

    def __init__(self, services: Services, row: SessionRow) -> None:
        super().__init__(services, row)
        self._database = services.database

    def __repr__(self) -> str:
        return f"<Session {self.id} {self.state}>"

    async def refresh(self) -> "Session":
        """Look again, and give this session back."""
        self._seen = await self._row()
        return self

    async def update(
        self,
        *,
        title: str | Unset | None = UNSET,
        metadata: Mapping[str, Any] | Unset = UNSET,
        is_archived: bool | Unset = UNSET,
        read_to: int | Unset = UNSET,
        model: str | Unset | None = UNSET,
        agent: str | Unset = UNSET,
        permissions: Permissions | Unset | None = UNSET,
        is_dry_run: bool | Unset = UNSET,
    ) -> "Session":
        """Set what is given, all or nothing; `metadata` and `permissions` are replaced as a whole.

        `read_to` only ever moves on. `agent` is changed while no turn runs or waits, and raises `SessionBusy` else. The
        next turn is the new agent's, with the history so far; a model that it does not offer is given up for its own.
        """
        shown = self._services.shown.value
        new = Profile(shown(title), shown(metadata), model, is_archived, read_to, agent)
        models = await self._offered(model, agent)
        profile.check(new, models=models)
        given = {"permissions": permissions, "is_dry_run": is_dry_run}
        limits: dict[str, Any] = {name: each for name, each in given.items() if not isinstance(each, Unset)}
        limited = constrained.constrained(**limits)

        def change(unit: Unit) -> None:
            profile.change(unit, self.id, new, models=models, owner_id=self.owner_id)
            if new.is_archived is True:
                changes.pause_all(unit, self.id)
            constraints.change(unit, self.id, limited, owner_id=self.owner_id, names=limits)

        await self._database.transaction(change, name="update")
        return await self.refresh()

    async def _offered(self, model: str | Unset | None, agent: str | Unset = UNSET) -> Sequence[str]:
        """The models of the agent that is given, or of the session's; asked for where one of both is."""
        if not isinstance(agent, Unset):
            return await self._services.agents.models_of(agent)
        if not isinstance(model, str):
            return ()
        return await self._services.agents.find_models((await self._row()).agent) or ()

    async def send(self, text: str, **options: Unpack[SendOptions]) -> Sent:
        """Accept a message. Returns when it is committed; the answer comes with `Sent.outcome()`."""
        return await send(self._services, self.id, text, owner_id=self.owner_id, **options)

    async def ask(self, text: str, *, wait: float | None = None, **options: Unpack[SendOptions]) -> Outcome:
        """Send, wait until the session has settled, at most `wait` seconds in all; the outcome of its last turn."""
        until = None if wait is None else monotonic() + wait
        sent = await self.send(text, **options)
        return await sent.outcome(wait=seconds_left(until), settle=True)

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
        begin, most = None if before is None else await self.turn(before).begins_after() + 1, paging.clamp(limit)
        read = partial(turns.latest, session_id=self.id, before=begin, limit=most + 1)
        rows = await self._read(read)
        shown = [self.turn(row.id) for row in rows[-most:]]
        return Page(shown, shown[0].id if len(rows) > most else None)

    async def turn_list(self, *, before: TurnId | str | None = None, limit: int = 50) -> Page[TurnSummary]:
        """The last turns in a few words, or those before another one; oldest first. `next`: give it as `before`."""
        begin, most = None if before is None else await self.turn(before).begins_after() + 1, paging.clamp(limit)
        rows = await self._read(partial(turns.latest, session_id=self.id, before=begin, limit=most + 1))
        show = self._services.shown.error
        shown = [TurnSummary.of(replace(row, error=show(row.error))) for row in rows[-most:]]
        return Page(shown, shown[0].id if len(rows) > most else None)

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

    async def export(self) -> dict[str, Any]:
        """The whole session as one JSON document, for `Sessions.import_` here or elsewhere. Secrets are masked."""
        return await export.export(self._services, await self._row())

    async def stop(self, *, cascade: bool = False) -> Outcome | None:
        """Stop the running turn and hold the session. Returns when the turn has ended; None if none ran.

        One whose turn is over and whose tasks are open is held too: they go on, and their ends start no turn. With
        `cascade` they are asked to cancel in the same commit; what becomes of each, its task tells.
        """

        def stop(unit: Unit) -> TurnId | None:
            if cascade:
                cancel.lock_tree(unit, self.id)
            stopping = turn.request_stop(unit, self.id, owner_id=self.owner_id)
            if cascade:
                cancel.request_all(unit, self.id, owner_id=self.owner_id)
            return stopping

        turn_id = await self._database.transaction(stop, name="hold")
        return None if turn_id is None else await self.turn(turn_id).outcome()

    async def resume(self) -> Turn | None:
        """End a hold; what waited starts a turn."""
        turn_id = await self._database.transaction(
            lambda unit: turn.resume(unit, self.id, owner_id=self.owner_id),
            name="resume",
        )
        return None if turn_id is None else self.turn(turn_id)

    async def withdraw_always(self, rule_id: str) -> "Session":
        """Calls that this rule of `permissions.always` is about need an approval again; those that run go on."""
        withdraw = partial(constraints.withdraw_always, session_id=self.id, rule_id=rule_id, owner_id=self.owner_id)
        await self._database.transaction(withdraw, name="update")
        return await self.refresh()

    async def retry(self) -> Turn:
        """Go on from the last committed message after a turn that failed or was stopped."""
        turn_id = await self._database.transaction(
            lambda unit: turn.retry(unit, self.id, owner_id=self.owner_id),
            name="retry",
        )
        return self.turn(turn_id)

    async def regenerate(self, *, model: str | None = None) -> Turn:
        """Answer the last message anew. The model no longer sees what it had answered; the log and `messages` do.

        Refused while a turn runs. The calls of the old answer are not undone, and its tasks go on.
        """
        profile.check(Profile(model=model), models=await self._offered(model))
        return self.turn(await regenerate(self._services, self.id, model=model, owner_id=self.owner_id))

    async def settle_call(
        self, call_id: str, verdict: Verdict | str, *, note: str = "", by: str | None = None
    ) -> Input:
        """Say what became of a call that may or may not have taken effect; the model is told who said so.

        `by` says who says so; else the owner does.
        """
        said, shown = verdicts.parse(verdict), self._services.shown.value
        return await self._database.transaction(
            lambda unit: verdicts.of_call(
                unit,
                self.id,
                call_id,
                said,
                by=shown(by) or self.owner_id,
                note=shown(note),
                owner_id=self.owner_id,
            ),
            name="settle_call",
        )

    async def inbox(self, *, is_whole: bool = False) -> list[Input]:
        """The messages that wait, in the order in which they were accepted; the `is_whole` one has results too."""
        waiting = await self._read(lambda connection: inputs.waiting(connection, self.id))
        wanted = (each for each in waiting if is_whole or each.kind is InputKind.MESSAGE)
        return [self._services.shown.input(each) for each in wanted]

    async def input(self, input_id: InputId | str) -> Input:
        found = await self._read(lambda connection: inputs.get(connection, self.id, InputId(input_id)))
        if found is None:
            raise NotFound("There is no such input.", id=input_id)
        return self._services.shown.input(found)

    async def edit_input(self, input_id: InputId | str, text: str) -> Input:
        text = self._services.shown.value(text)
        return await self._database.transaction(
            lambda unit: inbox.edit(unit, self.id, InputId(input_id), text, owner_id=self.owner_id),
            name="edit",
        )

    async def remove_input(self, input_id: InputId | str) -> None:
        def remove(unit: Unit) -> None:
            session = unit.lock(self.id, owner_id=self.owner_id)
            sub_sessions.lock_parent(unit, session)
            inbox.remove(unit, self.id, InputId(input_id), owner_id=self.owner_id)
            sub_sessions.work_changed(unit, session)

        await self._database.transaction(remove, name="remove")

    async def spawn(
        self,
        tool: str,
        args: Mapping[str, Any] | None = None,
        *,
        title: str | None = None,
        group: str | None = None,
        wake: Literal["on_terminal", "silent"] | None = None,
        idempotency_key: str | None = None,
    ) -> Task:
        """Set a tool of its agent going as a background task. Returns when that is kept; its end wakes the session.

        So many of a session and of an owner run at once; others wait in order, and `place` says their number.
        Raises `InvalidInput` for a tool that is not there or arguments that do not fit it, `Forbidden` where its
        permissions deny it, `TooManyTasks` when too many are open. With an `idempotency_key` it is made once.
        """
        return await spawn(
            self._services,
            self.id,
            tool,
            args,
            owner_id=self.owner_id,
            title=title,
            group=group,
            wake=wake,
            key=idempotency_key,
        )

    async def schedule(
        self,
        text: str | None = None,
        *,
        tool: str | None = None,
        args: Mapping[str, Any] | None = None,
        condition: Mapping[str, Any] | None = None,
        cron: str | None = None,
        at: datetime | str | None = None,
        delay: timedelta | str | None = None,
        zone: str = "UTC",
        title: str | None = None,
        missed: MissedPolicy = "run_once",
        overlap: OverlapPolicy = "skip",
        wake: Literal["on_terminal", "silent"] | None = None,
        group: str | None = None,
        by: str | None = None,
        idempotency_key: str | None = None,
    ) -> Schedule:
        """Say a text to this session, or run a tool of its agent, at the times of exactly one of cron, at and delay.

        With a `condition`, such as `{"kind": "changed"}`, the tool is a monitor: it wakes the session only when its
        result meets that. Returns when it is kept; `outlast.schedules` edits, pauses, triggers and deletes it.
        """
        what = What(text, tool, args, condition, wake, group)
        when = whens.parse(cron=cron, at=at, delay=delay, zone=zone)
        return await make(
            self._services,
            self.id,
            what,
            when,
            owner_id=self.owner_id,
            title=title,
            missed=missed,
            overlap=overlap,
            by=by,
            key=idempotency_key,
        )

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
