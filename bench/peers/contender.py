"""Somebody who does turns over HTTP, and what that takes of the machine."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx2
import psutil

from bench.turn_work import PROMPT

_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Call:
    """A request as every contender has it."""

    path: str
    json: Mapping[str, Any] | None = None
    form: Mapping[str, str] | None = None


@dataclass(slots=True)
class Contender:
    """A running server. A turn is one message in a conversation that is there, streamed until it has ended."""

    name: str
    store: str
    url: str
    processes: Callable[[], Sequence[int]]
    """Its process ids, the database's among them; their children are counted too."""
    new: Call | None
    """Makes a conversation; without it any name will do."""
    id_field: str
    turn: Callable[[str], Call]
    end: str
    """Stands in the stream of a turn that has ended well, and in no other."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    def client(self, connections: int) -> httpx2.AsyncClient:
        limits = httpx2.Limits(max_connections=connections, max_keepalive_connections=connections)
        return httpx2.AsyncClient(base_url=self.url, headers=dict(self.headers), timeout=_SECONDS, limits=limits)

    async def conversation(self, client: httpx2.AsyncClient, name: str) -> str:
        if self.new is None:
            return name
        answer = await client.post(self.new.path, json=self.new.json)
        answer.raise_for_status()
        return answer.json()[self.id_field]

    async def take_turn(self, client: httpx2.AsyncClient, conversation: str) -> None:
        call = self.turn(conversation)
        content: dict[str, Any] = {"json": call.json} if call.form is None else {"data": call.form}
        async with client.stream("POST", call.path, headers={"Accept": "text/event-stream"}, **content) as answer:
            said = [line async for line in answer.aiter_lines()]
        text = "\n".join(said)
        has_ended = answer.is_success and self.end in text and "event: error" not in text
        assert has_ended, f"{self.name}: {text[-2_000:]}"

    def cpu_seconds(self) -> float:
        """Of its processes and of all their children, those that have ended too."""
        return sum(_tree(psutil.Process(pid)) for pid in self.processes())


def graph_turn(thread: str) -> Call:
    """A turn on a server that speaks LangGraph's API."""
    content = {"messages": [{"role": "user", "content": PROMPT}]}
    asked = {"assistant_id": "turn", "input": content, "stream_mode": ["messages-tuple"]}
    return Call(f"/threads/{thread}/runs/stream", asked)


GRAPHS = json.dumps({"dependencies": ["."], "graphs": {"turn": "./graph.py:graph"}})


def _tree(process: psutil.Process) -> float:
    times = process.cpu_times()
    used = times.user + times.system + times.children_user + times.children_system
    for each in process.children():
        with suppress(psutil.NoSuchProcess):  # it ended just now: its parent's times have it when it is asked next
            used += _tree(each)
    return used
