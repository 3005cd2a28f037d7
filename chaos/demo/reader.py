"""Following a session from one server to the next, and showing it: what was told already is never told again."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import ExitStack
from typing import Any

from chaos.fleet import Member
from outlast.cli import words
from outlast.cli.play import Speech, Stage
from outlast.client import Client
from outlast.errors import ServerFault, StoreUnavailable, Unreachable
from outlast.events.event import Event

_AWAY = (Unreachable, StoreUnavailable, ServerFault)
_PATIENCE = 1.0
_PAUSE_SECONDS = 0.05


class Reader:
    """Reads at one server; when that one is gone, at the next, after the last event that it has."""

    def __init__(self, servers: list[Member], session_id: str) -> None:
        self.position = 0
        self.connections: list[str] = []
        """The servers it has read from, in order."""
        self._servers = servers
        self._session_id = session_id

    async def events(self) -> AsyncGenerator[Event]:
        """Without an end: close it."""
        while True:
            for server in [each for each in self._servers if each.is_running]:
                try:
                    async with Client(server.url, server.token, patience=_PATIENCE) as client:
                        session = await client.sessions.get(self._session_id)
                        if self.connections[-1:] != [server.url]:
                            self.connections.append(server.url)
                        async with session.events(after=self.position) as stream:
                            async for event in stream:
                                self.position = event.number or self.position
                                yield event
                except _AWAY:
                    continue
            await asyncio.sleep(_PAUSE_SECONDS)


class Scene:
    """Shows events as they come and keeps what was said: part by part, without what the log takes back."""

    def __init__(self, stage: Stage) -> None:
        self.parts: dict[tuple[str | None, str], str] = {}
        self.open_words = 0
        """How many characters of the sentence that is being said are known."""
        self._stage = stage
        self._open = ExitStack()
        self._speech: Speech | None = None
        self._part: tuple[str | None, str] | None = None

    @property
    def said(self) -> str:
        return "\n".join(self.parts.values())

    def show(self, event: Event) -> None:
        data = event.data
        match event.type:
            case "turn.resumed":
                for part in data["dropped"]:
                    self.parts.pop((event.turn_id, part), None)
                news = "another worker goes on: the broken sentence is taken back and said anew"
                self._line("log", f"#{event.number} {news} (attempt {data['attempt']})")
            case "call.started" if data["tool"] != "survey":
                self._line("tool", f"{data['tool']}({words.arguments(data['args'])})")
            case "call.ended" if "task_id" in data:
                self._line("tool", f"{data['tool']} is past its budget: it goes on in the background")
            case "task.changed" if data["task"]["attempt"] > 1 and data["task"]["state"] == "running":
                self._line("task", f"{data['task']['title']} runs again on another worker: it only looks, so it may")
            case "task.ended":
                self._line("task", f"{data['task']['title']} has {data['task']['state']}, and wakes the conversation")
            case "part.started" if data["kind"] == "text":
                self._part = (event.turn_id, data["part"])
                self.parts[self._part], self.open_words = "", 0
            case "part.delta" if (event.turn_id, data["part"]) in self.parts:
                self._say((event.turn_id, data["part"]), data)
            case "part.ended":
                self.open_words = 0
                self.close()
            case _:
                return

    def break_off(self) -> None:
        """The words that are open end here for the audience; the rest may come later."""
        if self._speech is not None:
            self._speech.add(" ...")
        self.close()

    def close(self) -> None:
        self._speech = None
        self._open.close()

    def _say(self, part: tuple[str | None, str], data: dict[str, Any]) -> None:
        if data["offset"] != len(self.parts[part]):
            raise AssertionError(f"a gap or a repeat: {len(self.parts[part])} characters known, told {data['offset']}")
        if self._speech is None:
            self._speech = self._open.enter_context(self._stage.speech("agent"))
            if self.parts[part]:
                self._speech.add("... ")
        self.parts[part] += data["text"]
        self.open_words = len(self.parts[part])
        self._speech.add(data["text"])

    def _line(self, speaker: str, words: str) -> None:
        self.close()
        self._stage.line(speaker, words)
