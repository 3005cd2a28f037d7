"""Following a session from one server to the next, and showing it: what was told already is never told again."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from chaos.fleet import Member
from outlast.cli.demo.narration import Narrator
from outlast.cli.terminal import words
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


class Transcript:
    """What was said, part by part, without what the log takes back. With a narrator it is shown as it comes."""

    def __init__(self, narrator: Narrator | None = None) -> None:
        self.parts: dict[tuple[str | None, str], str] = {}
        self.open_words = 0
        """How many characters of the sentence that is being said are known."""
        self._narrator = narrator
        self._is_cut = False
        """Whether the sentence was cut off for the audience."""

    @property
    def said(self) -> str:
        return "\n".join(self.parts.values())

    def add(self, event: Event) -> None:
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
                self.parts[event.turn_id, data["part"]], self.open_words, self._is_cut = "", 0, False
            case "part.delta" if (event.turn_id, data["part"]) in self.parts:
                self._say((event.turn_id, data["part"]), data)
            case "part.ended":
                self.open_words = 0
                self._end_saying()
            case _:
                return

    def cut_off(self) -> None:
        """The words that are open end here for the audience; the rest may come later."""
        self._show(" ...")
        self._is_cut = True
        self._end_saying()

    def _say(self, part: tuple[str | None, str], data: dict[str, Any]) -> None:
        if data["offset"] != len(self.parts[part]):
            raise AssertionError(f"a gap or a repeat: {len(self.parts[part])} characters known, told {data['offset']}")
        self.parts[part] += data["text"]
        self.open_words = len(self.parts[part])
        self._show(f"... {data['text']}" if self._is_cut else data["text"])
        self._is_cut = False

    def _show(self, words: str) -> None:
        if self._narrator is not None:
            self._narrator.screen.say(words)

    def _end_saying(self) -> None:
        if self._narrator is not None:
            self._narrator.screen.end_saying()

    def _line(self, label: str, words: str) -> None:
        if self._narrator is not None:
            self._narrator.line(label, words)
