"""A session as a client holds it: a handle on what the server keeps."""

import builtins
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, Unpack
from urllib.parse import quote
from uuid import uuid4

from pydantic_core import to_jsonable_python

from outlast.client.connection import path
from outlast.client.files import FilesOfSession
from outlast.client.schedules import Schedules
from outlast.client.seen import SeenSession
from outlast.client.sending import send
from outlast.client.streams import EventStream
from outlast.client.turn import Sent, Turn, deadline, is_settled, long_poll, outcome_of, seconds_left, settled
from outlast.errors import NotFound
from outlast.events.outcome import Outcome
from outlast.paging import Page
from outlast.tool_hints import UNSET, Unset
from outlast.wire.constraints import Permissions
from outlast.wire.event import EventAnswer, EventPage
from outlast.wire.forms import ListOf
from outlast.wire.message import InputAnswer, SendOptions, StoredMessage
from outlast.wire.schedule import MissedPolicy, OverlapPolicy, Schedule
from outlast.wire.session import SessionAnswer
from outlast.wire.task import Task
from outlast.wire.turn import TurnAnswer, TurnSummary, Until, Verdict
from outlast.wire.view import SessionView


class Session(SeenSession):
    """A conversation that outlives processes. What `seen` says is as of the last look: `refresh` looks again."""

    def __repr__(self) -> str:
        return f"<Session {self.id} {self.state}>"

    @property
    def files(self) -> FilesOfSession:
        """Its files by name: those that were given, those of messages, and those that tools made."""
        return FilesOfSession(self._connection, self.id)

    async def refresh(self) -> "Session":
        """Look again, and give this session back."""
        self.seen = SessionAnswer.model_validate(await self._connection.get(self._path))
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

        `read_to` only ever moves on. `agent` is changed while no turn runs or waits, and raises `SessionBusy` else.
        """
        given: dict[str, Any] = {
            "title": title,
            "metadata": metadata,
            "is_archived": is_archived,
            "read_to": read_to,
            "model": model,
            "agent": agent,
            "permissions": permissions,
            "is_dry_run": is_dry_run,
        }
        changes = {name: to_jsonable_python(value) for name, value in given.items() if value is not UNSET}
        answer = await self._connection.ask("PATCH", self._path, body=changes, is_repeatable=True)
        self.seen = SessionAnswer.model_validate(answer)
        return self

    async def send(self, text: str, **options: Unpack[SendOptions]) -> Sent:
        """Have a message accepted, once, also over a connection that is cut; the answer comes with `Sent.outcome()`."""
        return await send(self._connection, self.id, text, **options)

    async def ask(self, text: str, *, wait: float | None = None, **options: Unpack[SendOptions]) -> Outcome:
        """Send, wait until the session has settled, at most `wait` seconds in all; the outcome of its last turn."""
        until = deadline(wait)
        sent = await self.send(text, **options)
        return await sent.outcome(wait=seconds_left(until), settle=True)

    async def settled(self, *, wait: float | None = None) -> Outcome | None:
        """Wait until nothing runs and nothing that will wake the session is open; the last turn's outcome."""
        return await settled(self._connection, self.id, wait=wait)

    async def is_settled(self) -> bool:
        """Whether nothing runs and nothing that will wake the session is open, now."""
        return await is_settled(self._connection, self.id)

    async def result(self, *, wait: float | None = None, until: Until = "turn") -> Outcome | None:
        """The outcome of the latest turn, at its end or after `wait` seconds; None if there was no turn yet."""
        if until == "settled":
            return await self.settled(wait=wait)
        end = deadline(wait)
        while True:
            left = seconds_left(end)
            try:
                answer = await self._connection.get(f"{self._path}/result", wait=long_poll(left), until=until)
            except NotFound:
                await self.refresh()
                return None
            outcome = outcome_of(answer)
            if outcome.is_over or left == 0:
                return outcome

    def events(self, *, after: int = 0, follow: bool = True, types: Sequence[str] = ()) -> EventStream:
        """Replay from a position, then follow; of these `types` only, if some are named. Use it in `async with`.

        Over as many connections as it takes.
        """
        return EventStream(self._connection, self.id, after=after, follow=follow, types=types)

    async def turn_list(self, *, before: str | None = None, limit: int = 50) -> Page[TurnSummary]:
        """The last turns in a few words, or those before another one; oldest first. `next`: give it as `before`."""
        answer = await self._connection.get(f"{self._path}/turns", before=before, limit=limit)
        found = ListOf[TurnSummary].model_validate(answer)
        return Page(found.items, found.next)

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
        answer = await self._connection.get(
            f"{self._path}/events",
            after=after,
            before=before,
            turn=turn_id,
            task=task_id,
            types=",".join(types) or None,
            limit=min(max(limit, 1), 1_000),
        )
        return EventPage.model_validate(answer).items

    async def view(self, *, turns: int = 30, before: str | None = None) -> SessionView:
        """The session as people see it: its last turns, or those before another one, what waits, and its open tasks.

        All of one moment: `events(after=view.as_of)` goes on from exactly there. A page has at most 1 MiB; what is
        larger is shown as its beginning. `next` is the `before` of the page of older turns.
        """
        return SessionView.model_validate(await self._connection.get(f"{self._path}/view", turns=turns, before=before))

    def turn(self, turn_id: str) -> Turn:
        return Turn(self._connection, self.id, turn_id)

    async def messages(self, *, after: int | str = 0, limit: int = 100) -> Page[StoredMessage]:
        """The stored messages after a position, in order, as JSON; `next` is the position to go on after."""
        answer = await self._connection.get(f"{self._path}/messages", after=after, limit=limit)
        found = ListOf[StoredMessage].model_validate(answer)
        return Page(found.items, found.next)

    async def stop(self, *, cascade: bool = False, by: str | None = None) -> Outcome | None:
        """Stop the running turn and hold the session. Returns when the turn has ended; None if none ran.

        One whose turn is over and whose tasks are open is held too: they go on unless `cascade`. `by` says who
        stops it, beside the name of the key.
        """
        answer = TurnAnswer.model_validate(await self._post("stop", {"cascade": cascade, "by": by}))
        return None if answer.turn_id is None else await self.turn(answer.turn_id).outcome()

    async def resume(self) -> Turn | None:
        """End a hold; what waited starts a turn."""
        answer = TurnAnswer.model_validate(await self._post("resume"))
        return None if answer.turn_id is None else self.turn(answer.turn_id)

    async def withdraw_always(self, rule_id: str) -> "Session":
        """Calls that this rule of `permissions.always` is about need an approval again; those that run go on."""
        await self._connection.ask("DELETE", f"{self._path}/always/{quote(rule_id, safe='')}")
        return await self.refresh()

    async def retry(self) -> Turn:
        """Go on from the last committed message after a turn that failed or was stopped."""
        return self.turn((await self._post("retry"))["turn_id"])

    async def regenerate(self, *, model: str | None = None) -> Turn:
        """Answer the last message anew. The model no longer sees what it had answered; the log and `messages` do.

        Refused while a turn runs. The calls of the old answer are not undone, and its tasks go on.
        """
        return self.turn((await self._post("regenerate", {"model": model}))["turn_id"])

    async def settle_call(
        self, call_id: str, verdict: Verdict | str, *, note: str = "", by: str | None = None
    ) -> InputAnswer:
        """Say what became of a call that may or may not have taken effect; the model is told who said so.

        `by` stands beside the name of the key: whoever has that says so.
        """
        answer = await self._connection.ask(
            "POST",
            path("sessions", self.id, "calls", call_id, "settle"),
            body={"verdict": verdict, "note": note, "by": by},
        )
        return InputAnswer.model_validate(answer)

    async def inbox(self, *, is_whole: bool = False) -> builtins.list[InputAnswer]:
        """The messages that wait, in the order in which they were accepted; the `is_whole` one has results too."""
        answer = await self._connection.get(f"{self._path}/inbox", whole=is_whole or None)
        return ListOf[InputAnswer].model_validate(answer).items

    async def input(self, input_id: str) -> InputAnswer:
        return InputAnswer.model_validate(await self._connection.get(path("sessions", self.id, "inbox", input_id)))

    async def edit_input(self, input_id: str, text: str) -> InputAnswer:
        answer = await self._connection.ask(
            "PATCH", path("sessions", self.id, "inbox", input_id), body={"text": text}, is_repeatable=True
        )
        return InputAnswer.model_validate(answer)

    async def remove_input(self, input_id: str) -> None:
        await self._connection.ask("DELETE", path("sessions", self.id, "inbox", input_id))

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
        """Set a tool of its agent going as a background task, once, also over a connection that is cut."""
        body = {"tool": tool, "args": dict(args or {}), "title": title, "group": group, "wake": wake}
        answer = await self._connection.ask(
            "POST", f"{self._path}/tasks", body=body, key=idempotency_key or str(uuid4())
        )
        return Task.model_validate(answer)

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
        idempotency_key: str | None = None,
    ) -> Schedule:
        """Say a text to this session, or run a tool of its agent, at the times of exactly one of cron, at and delay.

        With a `condition` the tool is a monitor. It is made once, also over a connection that is cut;
        `client.schedules` edits, pauses, triggers and deletes it.
        """
        return await Schedules(self._connection).create(
            self.id,
            text,
            tool=tool,
            args=args,
            condition=condition,
            cron=cron,
            at=at,
            delay=delay,
            zone=zone,
            title=title,
            missed=missed,
            overlap=overlap,
            wake=wake,
            group=group,
            idempotency_key=idempotency_key or str(uuid4()),
        )

    async def tasks(self) -> builtins.list[Task]:
        answer = await self._connection.get("/v1/tasks", session=self.id, limit=500)
        return ListOf[Task].model_validate(answer).items

    async def export(self) -> dict[str, Any]:
        """The whole session as a document that `Sessions.import_` takes."""
        return await self._connection.get(f"{self._path}/export")

    async def _post(self, verb: str, body: Any = None) -> Any:
        return await self._connection.ask("POST", f"{self._path}/{verb}", body=body)
