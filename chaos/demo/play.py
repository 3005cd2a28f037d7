"""The play: a cluster is started, an agent walks along a river, and whatever carries it is killed on the way."""

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import asyncpg

from chaos.demo import app
from chaos.demo.reader import Reader, Transcript
from chaos.fleet import Fleet, Member
from outlast.cli.demo.narration import Narrator
from outlast.client import Client
from tests.support.stores.postgres import Installation, postgres_version

APP = "chaos.demo.app:app"
NAME = "demo"
OUTLAST = os.path.relpath(Path(sys.executable).with_name("outlast"))
WALK = "Walk along the river and write down the level at each station."
HOW_MUCH = "How much water passes the bridge in a day?"
FULL, FAST = 0.03, 0.002
SERVERS, WORKERS = 2, 3


class Untrue(Exception):
    """The demo would have to claim what is not so."""


class Play:
    """One cluster and what becomes of it. Raises if what it claims is not so."""

    def __init__(
        self, narrator: Narrator, postgres: Installation, folder: Path, *, is_fast: bool = False, is_brief: bool = False
    ) -> None:
        """`is_brief`: the first act only, and nobody is replaced."""
        self._narrator = narrator
        self._is_brief = is_brief
        self._postgres = postgres
        self._folder = folder
        environment = {
            app.DATABASE: postgres.url(NAME),
            app.FOLDER: str(folder),
            app.PACE: str(FAST if is_fast else FULL),
        }
        self._fleet = Fleet(folder, environment)
        self._servers: list[Member] = []
        self._workers: list[Member] = []
        self._starting: set[asyncio.Task[None]] = set()

    async def show(self, *, is_staying: bool) -> None:
        async with self._fleet:
            try:
                await self._open()
                await self._walk()
                if is_staying:
                    await self._stay()
            finally:
                for each in self._starting:
                    each.cancel()
                if self._starting:
                    await asyncio.wait(self._starting)
                self._narrator.line("", "Stopping: servers and workers get SIGTERM, then PostgreSQL.")

    async def _open(self) -> None:
        self._narrator.title("A cluster on this machine")
        self._narrator.line("start", f"{postgres_version()}, from the wheel, in {self._postgres.folder}")
        connection = await self._connected("postgres")
        await connection.execute(f"CREATE DATABASE {NAME}")
        await connection.close()
        if not self._is_brief:
            await self._fleet.run("upgrade", "db", "upgrade", APP)
            self._narrator.line("start", "outlast db upgrade: the tables are there")
        workers = WORKERS - 1 if self._is_brief else WORKERS
        servers = [self._new_server(f"server {at}") for at in range(1, SERVERS + 1)]
        await asyncio.gather(*servers, *(self._new_worker(f"worker {at}") for at in range(1, workers + 1)))
        self._servers.sort(key=lambda each: each.name)

    async def _new_server(self, name: str) -> None:
        server = await self._fleet.api(name, APP)
        self._servers.append(server)
        self._narrator.line("start", f"{server.name} (process {server.pid}): {server.url}, outlast serve --no-worker")

    async def _new_worker(self, name: str) -> None:
        worker = await self._fleet.worker(name, APP)
        self._workers.append(worker)
        self._narrator.line("start", f"{worker.name} (process {worker.pid}): outlast worker")

    async def _walk(self) -> None:
        """A turn during which a worker, a server and the database fail; then a task whose worker is killed."""
        self._narrator.title("An agent at work, and what carries it is killed")
        async with Client(self._servers[0].url, self._servers[0].token) as client:
            session = await client.sessions.create()
            self._narrator.line("you", WALK)
            await session.send(WALK)
        transcript, reader = Transcript(self._narrator), Reader(self._servers, session.id)
        async with aclosing(reader.events()) as events:
            await self._first_turn(events, reader, transcript)
            if not self._is_brief:
                await self._second_turn(events, session.id, transcript)
        await self._prove(session.id, reader, transcript)

    async def _first_turn(self, events: Any, reader: Reader, transcript: Transcript) -> None:
        faults: list[Callable[[str], Awaitable[str]]] = [self._kill_worker, self._kill_server, self._crash_database]
        done = stations = 0
        running = ""
        async for event in events:
            transcript.add(event)
            if event.type in ("turn.started", "turn.resumed"):
                running = event.data["worker_id"]
            stations += event.type == "call.ended"
            if stations == done < len(faults) and transcript.open_words >= app.PAUSE_AT:
                transcript.cut_off()
                self._narrator.line("", await faults[done](running if done == 0 else reader.connections[-1]))
                app.gate_of(self._folder, str(done)).touch()
                done += 1
            if event.type == "turn.completed":
                break
            if event.type == "turn.failed":
                raise Untrue(f"the turn failed: {event.data}")
        if done != len(faults):
            raise Untrue(f"the turn ended after {done} faults")

    async def _kill_worker(self, worker_id: str) -> str:
        pid = await self._value("SELECT pid FROM workers WHERE id = $1", worker_id)
        await self._kill_and_replace(self._workers, pid, self._new_worker)
        return "It ran the turn and is gone in the middle of a sentence. The others notice within two seconds."

    async def _kill_server(self, url: str) -> str:
        [server] = [each for each in self._servers if each.is_running and each.url == url]
        await self._kill_and_replace(self._servers, server.pid, self._new_server)
        other = next(each for each in self._servers if each.is_running)
        return f"It streamed to you. The reader asks {other.url} for what comes after the last event it has."

    async def _crash_database(self, _: str) -> str:
        self._narrator.line("✗", "PostgreSQL crashes (pg_ctl -m immediate) and is started again")
        await asyncio.to_thread(self._postgres.restart, "immediate")
        return "Every connection is gone. What runs waits at its next commit until the database is back."

    async def _kill_and_replace(self, among: list[Member], pid: int, start: Callable[[str], Awaitable[None]]) -> None:
        [member] = [each for each in among if each.pid == pid]
        among.remove(member)
        await self._fleet.kill(member)
        self._narrator.line("✗", f"kill -9 {pid}: {member.name}")
        if not self._is_brief:
            starting = asyncio.ensure_future(start(f"new {member.name}"))
            self._starting.add(starting)
            starting.add_done_callback(self._starting.discard)

    async def _second_turn(self, events: Any, session_id: str, transcript: Transcript) -> None:
        """A call is parked, its worker is killed, another one runs it again, and its end wakes the conversation."""
        self._narrator.title("A tool that takes longer than a turn, and its worker is killed")
        self._narrator.line("you", HOW_MUCH)
        server = next(each for each in self._servers if each.is_running)
        async with Client(server.url, server.token) as client:
            await (await client.sessions.get(session_id)).send(HOW_MUCH)
        ends = 0
        async for event in events:
            transcript.add(event)
            if event.type == "turn.failed":
                raise Untrue(f"the turn failed: {event.data}")
            if event.type == "task.changed" and event.data["task"]["attempt"] == 2:
                app.gate_of(self._folder, app.SURVEY).touch()
            if event.type == "turn.completed":
                ends += 1
                if ends == 2:
                    return
                query = "SELECT pid FROM workers JOIN tasks ON workers.id = tasks.worker_id WHERE session_id = $1"
                await self._kill_and_replace(self._workers, await self._value(query, session_id), self._new_worker)
                self._narrator.line("", "It had the task. Nobody waits for the tool: the conversation is free.")

    async def _prove(self, session_id: str, reader: Reader, transcript: Transcript) -> None:
        self._narrator.title("What is left")
        meant = "\n".join([*app.STORY, app.FAREWELL, *(() if self._is_brief else (app.PROMISE, app.CAME_TO))])
        stored = Transcript()
        server = next(each for each in self._servers if each.is_running)
        async with Client(server.url, server.token) as client:
            log = [e async for e in (await client.sessions.get(session_id)).events(follow=False)]
        for event in log:
            stored.add(event)
        if not transcript.said == stored.said == meant:
            raise Untrue(f"shown {transcript.said!r}, stored {stored.said!r}")
        book = Counter((self._folder / "book.txt").read_text().splitlines())
        if book != Counter(f"level at {each}" for each in app.STATIONS):
            raise Untrue(f"the book says {book}")
        read = f"You read {len(transcript.said)} characters over {len(reader.connections)} servers"
        self._narrator.line("answer", f"{read}: exactly what the agent said, nothing missing and nothing twice.")
        lines = f"book.txt has {sum(book.values())} lines, one for each station"
        self._narrator.line("ledger", f"{lines}: no tool that may not run twice did.")
        workers = "a worker" if self._is_brief else "two workers"
        self._narrator.line("", f"Killed: {workers}, a server, PostgreSQL. The log has {len(log)} events.")

    async def _stay(self) -> None:
        self._narrator.title("The cluster stays up until you press Ctrl-C")
        if self._starting:
            await asyncio.wait(self._starting)
        for each in self._servers:
            # To be copied: in one line, whatever the width.
            self._narrator.copyable(f"{OUTLAST} ps --url {each.url} --token {each.token}")
        self._narrator.line("", f"Its processes: {', '.join(str(e.pid) for e in self._fleet.members if e.is_running)}.")
        await asyncio.Event().wait()

    async def _value(self, query: str, *values: Any) -> Any:
        connection = await self._connected(NAME)
        try:
            return await connection.fetchval(query, *values)
        finally:
            await connection.close()

    async def _connected(self, name: str) -> Any:
        driver: Any = asyncpg
        return await driver.connect(host=str(self._postgres.folder), user="postgres", database=name)
