"""A session in which everything happens: a model that does what it likes, a person who meddles, one who looks on."""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pydantic_ai import Tool
from pydantic_core import from_json

import outlast as public
from outlast import Outlast, Session, hints
from outlast.errors import OutlastError
from outlast.testing import ScriptedModel, call, error, gate, reasoning, text

MOST_STEPS = 60
"""So many requests the model answers with more than words."""


class Looker:
    """Keeps a view for each position at which it found the session."""

    def __init__(self) -> None:
        self.views: dict[int, dict[str, Any]] = {}
        self.session: Session | None = None

    async def look(self) -> None:
        assert self.session is not None
        found: dict[str, Any] = from_json(await self.session.view_json())
        self.views.setdefault(found["as_of"], found)


def model(dice: random.Random, looker: Looker) -> ScriptedModel:
    asked = 0

    def answer(_: Any) -> Any:
        nonlocal asked
        asked += 1
        words = f"{asked} " * dice.randint(1, 4)
        said: list[Any] = [text(words, chunk=2, pause=gate(looker.look))]
        if dice.random() < 0.3:
            said.insert(0, reasoning("hm " * 3, chunk=3))
        if asked > MOST_STEPS or dice.random() < 0.4:
            return said
        if dice.random() < 0.15:
            return [*said, error(503)]
        some = [_call(dice, f"c{asked}-{n}") for n in range(dice.randint(1, 2))]
        return [*said, *some]

    return ScriptedModel(answer)


def _call(dice: random.Random, call_id: str) -> Any:
    name = dice.choice(["look", "survey", "survey", "pay", "ask_colour", "charge", "unknown"])
    args: dict[str, Any] = (
        {} if name == "ask_colour" else {"seconds": dice.choice([0, 0.01, 0.06])} if name == "survey" else {"of": 3}
    )
    return call(name, call_id=call_id, **args)


def tools(dice: random.Random) -> list[Tool[Any]]:
    async def look(of: int) -> str:
        if dice.random() < 0.2:
            raise RuntimeError("It is dark.")
        return f"seen {of}"

    async def survey(seconds: float) -> str:
        public.progress(1, 2)
        public.output("half\n")
        await asyncio.sleep(seconds)
        public.progress(2, 2)
        return "surveyed"

    async def pay(of: int) -> str:
        return f"paid {of}"

    async def ask_colour() -> str:
        return f"painted {await public.ask('Which colour?')}"

    async def charge(of: int) -> str:
        await asyncio.sleep(0.03)
        return f"charged {of}"

    return [
        Tool(look, metadata=hints(read_only=True, narrate="Looking at {of}")),
        Tool(survey, metadata=hints(narrate={"running": "Surveying", "done": "Surveyed"})),
        Tool(pay, metadata=hints(approve=True)),
        Tool(ask_colour),
        Tool(charge),
    ]


class Person:
    """Does at random what a person can do, also what is refused at that moment."""

    def __init__(self, outlast: Outlast[Any, Any], session: Session, dice: random.Random) -> None:
        self._outlast, self._session, self._dice = outlast, session, dice
        self._said = 0

    async def act(self) -> None:
        session, dice = self._session, self._dice
        deeds: list[Callable[[], Any]] = [
            *[self._send] * 4,
            *[self._decide] * 3,
            *(self._inbox, self._settle, self._cancel),
            *(session.stop, session.resume, session.retry, session.regenerate),
            lambda: session.spawn("survey", {"seconds": 0.02}),
        ]
        with suppress(OutlastError):
            await dice.choice(deeds)()

    async def _send(self) -> None:
        self._said += 1
        mode: Any = self._dice.choice(["steer", "steer", "queue", "interrupt"])
        await self._session.send(f"Message {self._said}", when_busy=mode, idempotency_key=f"k{self._said}")

    async def _inbox(self) -> None:
        for each in await self._session.inbox():
            if self._dice.random() < 0.5:
                await self._session.edit_input(each.id, f"{each.text}, again")
            else:
                await self._session.remove_input(each.id)

    async def _settle(self) -> None:
        await self._session.refresh()
        for each in self._session.interrupted_calls:
            verdict: Any = self._dice.choice(["worked", "failed", "try_again"])
            await self._session.settle_call(each.call_id, verdict, by="ada")

    async def _cancel(self) -> None:
        for each in await self._session.tasks():
            if not each.is_over:
                await self._outlast.tasks.cancel(each.id, wait=0)
                return

    async def _decide(self) -> None:
        for each in (await self._outlast.tasks.requests(session_id=self._session.id)).items:
            if each.request is not None and each.request.kind == "question":
                await self._outlast.tasks.reply(each.id, "red", by="ada")
            elif self._dice.random() < 0.7:
                await self._outlast.tasks.approve(each.id, by="ada")
            else:
                await self._outlast.tasks.refuse(each.id, by="ada", reason="no")

    async def leave(self) -> None:
        """Let all that is open come to its end."""
        while True:
            with suppress(OutlastError):
                await self._session.resume()
            await self._decide()
            await self._settle()
            outcome = await self._session.result(wait=0.2, until="settled")
            open_tasks = [each for each in await self._session.tasks() if not each.is_over]
            await self._session.refresh()
            if (outcome is None or outcome.is_over) and not open_tasks and self._session.state == "idle":
                return
