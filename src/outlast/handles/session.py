"""A session as a program holds it: a handle on what is stored, valid across restarts."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal, Unpack

from outlast.clock import monotonic
from outlast.events.outcome import Outcome
from outlast.handles.one_session import constrained, export
from outlast.handles.one_session.read import ReadSession
from outlast.handles.one_session.regenerate import regenerate
from outlast.handles.one_session.spawn import spawn
from outlast.handles.schedules import What, make
from outlast.handles.sending import send
from outlast.handles.turn import Sent, Turn, seconds_left
from outlast.ids import InputId, TurnId
from outlast.store.repositories.inputs import Input
from outlast.store.unit import Unit
from outlast.timing import when as whens
from outlast.tool_hints import UNSET, Unset
from outlast.transitions import cancel, sub_sessions, turn, verdicts
from outlast.transitions.schedules import changes
from outlast.transitions.sessions import constraints, profile
from outlast.transitions.sessions.profile import Profile
from outlast.transitions.turns import inbox
from outlast.wire.constraints import Permissions
from outlast.wire.message import SendOptions
from outlast.wire.schedule import MissedPolicy, OverlapPolicy, Schedule
from outlast.wire.task import Task
from outlast.wire.turn import Verdict


class Session(ReadSession):
    """A conversation that outlives processes. Its attributes are as of the last look: `refresh` looks again."""

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

    async def export(self) -> dict[str, Any]:
        """The whole session as one JSON document, for `Sessions.import_` here or elsewhere. Secrets are masked."""
        return await export.export(self._services, await self._row())

    async def stop(self, *, cascade: bool = False, by: str | None = None) -> Outcome | None:
        """Stop the running turn and hold the session. Returns when the turn has ended; None if none ran.

        One whose turn is over and whose tasks are open is held too: they go on, and their ends start no turn. With
        `cascade` they are asked to cancel in the same commit; what becomes of each, its task tells. `by` says who stops
        it, else the owner does: of a sub-session that is told to the session that gave it its work.
        """

        def stop(unit: Unit) -> TurnId | None:
            if cascade:
                cancel.lock_tree(unit, self.id)
            stopping = turn.request_stop(unit, self.id, owner_id=self.owner_id, by=by)
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
