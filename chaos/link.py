"""The driver's end of the wire: requests that outlive the worker they were sent to."""

import asyncio
import json
import multiprocessing
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from typing import Any

from chaos.worker import Job, main

Json = dict[str, Any]

# Workers are forked from a server that has imported everything and done nothing: a start takes milliseconds.
_PROCESSES = multiprocessing.get_context("forkserver")
_EXIT_SECONDS = 20.0


def prepare() -> None:
    """Once per driver, before the first worker."""
    _PROCESSES.set_forkserver_preload(["chaos.worker"])


class Refused(Exception):
    """The worker answered that it does not accept this."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class WorkerGone(Exception):
    """The worker ended before it answered: whether it did what was asked is not known."""


@dataclass(slots=True)
class Worker:
    """A running worker process and the connection to it."""

    process: BaseProcess
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    take_event: Callable[[str, Any], None]
    waiting: dict[int, asyncio.Future[Json]] = field(default_factory=dict[int, asyncio.Future[Json]])
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    listening: asyncio.Task[None] | None = None
    last_id: int = 0

    @classmethod
    async def start(cls, job: Job, take_event: Callable[[str, Any], None]) -> "Worker":
        ours, theirs = socket.socketpair()
        process = _PROCESSES.Process(target=main, args=(job, theirs), name=f"worker {job.number}", daemon=True)
        await asyncio.to_thread(process.start)
        theirs.close()
        reader, writer = await asyncio.open_connection(sock=ours, limit=1 << 24)
        worker = cls(process, reader, writer, take_event)
        worker.listening = asyncio.create_task(worker._listen(), name=f"listen to worker {job.number}")
        return worker

    async def ask(self, op: str, **fields: Any) -> Any:
        """The worker's answer. Raises `Refused`, or `WorkerGone` when there will be none."""
        if self.gone.is_set():
            raise WorkerGone
        self.last_id += 1
        number = self.last_id
        future = self.waiting[number] = asyncio.get_running_loop().create_future()
        self.say(op, id=number, **fields)
        answer = await future
        if "refused" in answer:
            raise Refused(answer["refused"])
        return answer["answer"]

    def say(self, op: str, **fields: Any) -> None:
        self.writer.write(json.dumps({"op": op, **fields}).encode() + b"\n")

    async def end(self) -> int:
        """Wait for the process to be over; gives its exit code. One that does not end is killed."""
        await asyncio.to_thread(self.process.join, _EXIT_SECONDS)
        if self.process.is_alive():
            self.process.kill()
            await asyncio.to_thread(self.process.join)
        if self.listening is not None:
            await asyncio.wait({self.listening})
        self.writer.close()
        code = self.process.exitcode
        assert code is not None
        self.process.close()
        return code

    async def _listen(self) -> None:
        try:
            while line := await self.reader.readline():
                if not line.endswith(b"\n"):
                    break  # the worker died in the middle of a line: nobody was told
                self._take(json.loads(line))
        except ConnectionError:
            pass  # the same end as no more lines
        finally:
            self.gone.set()
            self.ready.set()
            for future in self.waiting.values():
                if not future.done():
                    future.set_exception(WorkerGone())
            self.waiting.clear()

    def _take(self, line: Json) -> None:
        if "ready" in line:
            self.ready.set()
        elif "event" in line:
            self.take_event(line["reader"], line["event"])
        else:
            future = self.waiting.pop(line["id"])
            if not future.done():
                future.set_result(line)


@dataclass(slots=True)
class Link:
    """Whatever worker there is at the moment. Clients ask here and need not know that workers die."""

    worker: Worker | None = None
    wanted: str | None = None
    """The place at which the present worker will die: traffic that leads there is welcome."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    is_over: bool = False

    def connect(self, worker: Worker | None, wanted: str | None) -> None:
        self.worker, self.wanted = worker, wanted
        self.changed.set()
        self.changed = asyncio.Event()

    async def ask(self, op: str, **fields: Any) -> Any:
        """Ask until somebody answers: as a client does who repeats a request with the same key."""
        while True:
            worker = await self.current()
            try:
                return await worker.ask(op, **fields)
            except WorkerGone:
                await worker.gone.wait()
                while self.worker is worker:
                    await self.changed.wait()

    async def current(self) -> Worker:
        while self.worker is None or self.worker.gone.is_set():
            await self.changed.wait()
        return self.worker
