"""The body of one process of the cluster: a worker that runs turns, or an API process that runs none."""

import asyncio
import json
import os
import socket
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from pydantic_ai import Agent, RunContext

from chaos.ledger import Ledger
from chaos.plan import Moment
from chaos.script import Effects, make_agent
from chaos.worker import Room, settings
from outlast import Outlast, Settings, ids
from outlast.api.app import create_app
from outlast.errors import StoreUnavailable
from outlast.ids import WorkerId
from outlast.observe import logs

STALL_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Post:
    """What a process is told at its start. With a `port` it serves HTTP, without one it runs turns."""

    folder: Path
    url: str
    number: int
    port: int | None


def main(post: Post, channel: socket.socket) -> None:
    """Until the driver closes its end of `channel`, or is gone. All output goes to the run's log."""
    log = os.open(post.folder / "workers.log", os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    logs.configure(is_json=True, level="info")
    _note_names(post)
    try:
        asyncio.run(_live(post, channel))
    except StoreUnavailable as exc:
        print(f"not started: {exc}", flush=True)
        sys.exit(1)


def runtime(post: Post) -> Outlast[object, str]:
    return Outlast(_agent(post), database=post.url, settings=_settings(post))


async def _live(post: Post, channel: socket.socket) -> None:
    leaving = asyncio.Event()
    asyncio.get_running_loop().add_reader(channel, leaving.set)
    async with runtime(post) as outlast:
        if post.port is None:
            await leaving.wait()
        else:
            await _serve(outlast, post.port, leaving)
    asyncio.get_running_loop().remove_reader(channel)


class _Server(uvicorn.Server):
    """Ends when it is told to, not by signals."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


async def _serve(outlast: Outlast[object, str], port: int, leaving: asyncio.Event) -> None:
    config = uvicorn.Config(create_app(outlast), log_config=None, access_log=False, timeout_graceful_shutdown=1)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        server = _Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listening]), name="server")
        await leaving.wait()
        server.should_exit = True
        await serving


def _settings(post: Post) -> Settings:
    """Room for all the traffic: what happens at the limits is shown elsewhere."""
    changes = {"run_work": post.port is None, "files": str(post.folder / "files"), "max_requests_per_minute": 1_000_000}
    return settings(Room()).model_copy(update=changes)


def _agent(post: Post) -> Agent[object, str]:
    ledger = Ledger(post.folder / "ledger.jsonl", post.number)
    agent = make_agent(ledger, _nowhere)
    effects = Effects(ledger, _nowhere)

    @agent.tool
    async def stall(context: RunContext[object], name: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Blocks the event loop of its worker, as a careless tool does."""
        effects.begin(context)
        time.sleep(STALL_SECONDS)  # noqa: ASYNC251 - that is the fault
        return effects.finish(context)

    return agent


def _nowhere(place: str, moment: Moment) -> None:
    """No place is special here: faults come from outside."""


def _note_names(post: Post) -> None:
    """Write down every name under which this process works: a second one means that others took it for dead."""
    plain = ids.worker_id
    file = os.open(post.folder / "names.jsonl", os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)

    def named() -> WorkerId:
        name = plain()
        line = {"worker_id": name, "process": post.number, "at_us": time.time_ns() // 1_000}
        os.write(file, json.dumps(line).encode() + b"\n")
        return name

    ids.worker_id = named
