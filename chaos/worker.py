"""One worker process: a real `Outlast` on the round's database, driven over a socket, killed at a given place."""

import asyncio
import json
import os
import signal
import socket
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from chaos.commit_places import CommitPlaces
from chaos.ledger import Ledger
from chaos.plan import Kill, Moment
from chaos.script import make_agent
from outlast import Outlast, OutlastError, Session, Settings
from outlast.ids import SessionId
from outlast.limits import Limits
from outlast.runtime import LOCAL_OWNER
from outlast.store import tables
from outlast.store.repositories import inputs
from outlast.store.repositories.inputs import InputKind, InputState
from outlast.store.sqlite import opening
from outlast.store.sqlite.database import SqliteDatabase
from outlast.store.unit import Unit
from outlast.transitions import turn
from outlast.transitions.turns import inbox

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Caps:
    """How many turns may run at once, and how often one may be claimed under workers that die."""

    per_worker: int = 64
    per_owner: int = 64
    claims: int = 1_000

    @property
    def limits(self) -> Limits:
        """Other limits are too high for this traffic to meet: they have tests of their own."""
        return Limits(
            max_inbox=1_000,
            max_busy_per_minute=1_000_000,
            max_running_per_owner=self.per_owner,
            max_queued_per_owner=10_000,
            max_woken=10_000,
        )


@dataclass(frozen=True, slots=True)
class Job:
    """What a worker process is told at its start."""

    folder: Path
    number: int
    kill: Kill | None
    caps: Caps


@dataclass(slots=True)
class Trap:
    """Ends this process at the nth time it is at a place, so that nothing after that instant happens."""

    kill: Kill | None
    seen: int = 0

    def at(self, place: str, moment: Moment) -> None:
        if self.kill is not None and (place, moment) == (self.kill.place, self.kill.moment):
            self.seen += 1
            if self.seen == self.kill.nth:
                os.kill(os.getpid(), signal.SIGKILL)


def settings(caps: Caps) -> Settings:
    """The limits of the round, and short waits."""
    limits = caps.limits
    return Settings(
        max_claims=caps.claims,
        max_inbox=limits.max_inbox,
        max_busy_messages_per_minute=limits.max_busy_per_minute,
        max_turns_per_worker=caps.per_worker,
        max_turns_per_owner=limits.max_running_per_owner,
        max_queued_turns_per_owner=limits.max_queued_per_owner,
        max_woken_turns=limits.max_woken,
        max_spawned_per_session=2,
        public_url="http://chaos.example",
        model_backoff=timedelta(milliseconds=10),
        wake_company=timedelta(milliseconds=50),
        stop_grace=timedelta(milliseconds=100),
        abandon_after=timedelta(seconds=2),
        drain=timedelta(milliseconds=150),
    )


def main(job: Job, channel: socket.socket) -> None:
    """The body of the process. Says nothing on the driver's terminal: all output goes to the round's log."""
    log = os.open(job.folder / "workers.log", os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    asyncio.run(_serve(job, channel))


async def _serve(job: Job, channel: socket.socket) -> None:
    trap = Trap(job.kill)
    _watch_from_the_first_commit(trap)
    ledger = Ledger(job.folder / "ledger.jsonl", job.number)
    reader, writer = await asyncio.open_connection(sock=channel)
    agent = make_agent(ledger, trap.at)
    async with Outlast(agent, database=job.folder / "outlast.db", settings=settings(job.caps)) as runtime:
        await Service(runtime, reader, writer).run()
    writer.close()
    ledger.close()


def _watch_from_the_first_commit(trap: Trap) -> None:
    """The watcher must be there when the runtime reconciles, which it does while it opens."""
    open_sqlite = opening.open_sqlite
    places = CommitPlaces(trap.at)

    async def watched(*args: Any, **options: Any) -> SqliteDatabase:
        database = await open_sqlite(*args, **options)
        database.watcher = places
        return database

    opening.open_sqlite = watched


@dataclass(slots=True)
class Service:
    """Answers commands, each in a coroutine of its own, until the driver says `leave` or is gone."""

    runtime: Outlast[object, str]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    running: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    async def run(self) -> None:
        self._say({"ready": os.getpid()})
        try:
            while line := await self.reader.readline():
                command: Json = json.loads(line)
                if command["op"] == "leave":
                    return
                running = asyncio.create_task(self._answer(command), name=f"command {command['op']}")
                self.running.add(running)
                running.add_done_callback(self.running.discard)
        finally:
            for running in self.running:
                running.cancel()

    def _say(self, line: Json) -> None:
        self.writer.write(json.dumps(line).encode() + b"\n")

    async def _answer(self, command: Json) -> None:
        commands: dict[str, Callable[[Json], Coroutine[Any, Any, Any]]] = {
            "create": self._create,
            "send": self._send,
            "wake": self._wake,
            "stop": self._stop,
            "resume": self._resume,
            "retry": self._retry,
            "cancel": self._cancel,
            "settle_task": self._settle_task,
            "needs": self._needs,
            "say": self._say_for,
            "complete": self._complete,
            "schedule": self._schedule,
            "pause": self._change_schedule,
            "unpause": self._change_schedule,
            "edit": self._change_schedule,
            "unschedule": self._change_schedule,
            "follow": self._follow,
            "look": self._look,
        }
        try:
            answer = await commands[command["op"]](command)
        except OutlastError as exc:
            self._say({"id": command["id"], "refused": exc.code})
        else:
            self._say({"id": command["id"], "answer": answer})

    async def _session(self, command: Json) -> Session:
        return await self.runtime.sessions.get(command["session"])

    async def _create(self, command: Json) -> str:
        return (await self.runtime.sessions.create()).id

    async def _send(self, command: Json) -> str:
        session = await self._session(command)
        sent = await session.send(command["text"], when_busy=command["mode"], idempotency_key=command["key"])
        return sent.input.id

    async def _wake(self, command: Json) -> str:
        session_id, key = SessionId(command["session"]), command["key"]

        def wake(unit: Unit) -> str:
            unit.lock(session_id)
            known = inputs.by_key(unit.connection, session_id, key)
            if known is not None:
                return known.id
            text = command["text"]
            return inbox.notify(unit, session_id, InputKind.WAKE, text, idempotency_key=key).id

        return await self.runtime.database.transaction(wake, name="nudge")

    async def _stop(self, command: Json) -> str | None:
        """Answers when the wish is committed, as the caller who does not wait for the end sees it."""
        session_id = SessionId(command["session"])
        return await self.runtime.database.transaction(
            lambda unit: turn.request_stop(unit, session_id, owner_id=LOCAL_OWNER),
            name="hold",
        )

    async def _resume(self, command: Json) -> str | None:
        resumed = await (await self._session(command)).resume()
        return None if resumed is None else resumed.id

    async def _retry(self, command: Json) -> str:
        return (await (await self._session(command)).retry()).id

    async def _cancel(self, command: Json) -> str:
        return (await self.runtime.tasks.cancel(command["task"], wait=5.0)).state.value

    async def _settle_task(self, command: Json) -> str:
        return (await self.runtime.tasks.settle(command["task"], "worked", by="Ada")).state.value

    async def _needs(self, command: Json) -> list[list[str | None]]:
        asking = (await self.runtime.tasks.requests(limit=100)).items
        needs: list[list[str | None]] = [
            [each.id, each.session_id, each.request.kind, each.request.id] for each in asking if each.request
        ]
        outside = await self.runtime.tasks.list(kind="external", state="open", limit=100)
        return [*needs, *([each.id, each.session_id, "external", None] for each in outside)]

    async def _say_for(self, command: Json) -> str:
        tasks, task_id, by = self.runtime.tasks, command["task"], command["by"]
        match command["what"]:
            case "reply":
                said = await tasks.reply(task_id, command["value"], by=by, request_id=command["request"])
            case "approve":
                said = await tasks.approve(task_id, by=by)
            case _:
                said = await tasks.refuse(task_id, by=by, reason=command["value"])
        return said.state.value

    async def _complete(self, command: Json) -> bool:
        """By a token of the operation, as a stranger does who was sent its URL; without one as its owner."""
        completions, task_id = self.runtime.completions, command["task"]
        owner_id: str | None = LOCAL_OWNER
        if command["token"] is not None:
            owner_id = await completions.owner_by(task_id, command["token"])
            assert owner_id is not None, "a token that was sent out opens its operation"
        done = await completions.complete(task_id, success=True, result=command["value"], owner_id=owner_id)
        return done.applied

    async def _schedule(self, command: Json) -> str:
        session, tool, key = await self._session(command), command.get("tool"), command["key"]
        if tool == "minute":
            made = await session.schedule(
                tool="again",
                args={"name": key},
                cron="* * * * *",
                missed="run_all",
                overlap="allow",
                wake="silent",
                idempotency_key=key,
            )
        elif tool is not None:
            made = await session.schedule(tool=tool, args={"name": key}, delay="1 second", idempotency_key=key)
        else:
            made = await session.schedule(command["text"], delay="1 second", idempotency_key=key)
        return made.id

    async def _change_schedule(self, command: Json) -> str | None:
        """Refused when it has ended, or is not there any more."""
        schedule_id, all_ = command["schedule"], self.runtime.schedules
        match command["op"]:
            case "pause":
                return (await all_.pause(schedule_id)).state
            case "unpause":
                return (await all_.resume(schedule_id)).state
            case "edit":
                return (await all_.edit(schedule_id, delay="1 second")).state
            case _:
                await all_.delete(schedule_id)
                return None

    async def _rest(self) -> None:
        """Pause what would fire for ever, if its next time is not just now."""
        soon = datetime.now(UTC) + timedelta(seconds=2)
        for each in (await self.runtime.schedules.list(state="active", limit=200)).items:
            if each.cron is not None and each.next_at is not None and each.next_at > soon:
                await self.runtime.schedules.pause(each.id)

    async def _follow(self, command: Json) -> None:
        session = await self._session(command)
        async with session.events(after=command["after"]) as stream:
            async for event in stream:
                told = [event.number, event.type, event.turn_id, event.data]
                self._say({"reader": command["reader"], "event": told})
                await self.writer.drain()
                await asyncio.sleep(command["pause"])

    async def _look(self, command: Json) -> Json:
        """What is still open, and where each log ends. What would fire for ever is paused for it."""
        await self._rest()

        def look(connection: sa.Connection) -> Json:
            open_turns = sa.select(tables.turns.c.id).where(tables.turns.c.ended_at.is_(None))
            open_tasks = sa.select(tables.tasks.c.id).where(tables.tasks.c.ended_at.is_(None))
            due_inputs = (
                sa.select(tables.inputs.c.id)
                .join(tables.sessions, tables.sessions.c.id == tables.inputs.c.session_id)
                .where(tables.inputs.c.state == InputState.WAITING.value, ~tables.sessions.c.is_held)
            )
            due = sa.select(tables.schedules.c.id).where(tables.schedules.c.due_at.is_not(None))
            still_open = [connection.execute(each).scalars() for each in (open_turns, open_tasks, due_inputs, due)]
            ends = connection.execute(sa.select(tables.sessions.c.id, tables.sessions.c.last_event))
            return {
                "open": [each for found in still_open for each in found],
                "ends": {row.id: row.last_event for row in ends},
            }

        return await self.runtime.database.read(look)
