"""A child process that kills itself while much goes on: calls are parked, people are asked, messages and wakes wait.

Run again on the same folder it goes on with what the last one left, and dies at the next place.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, Tool
from pydantic_core import from_json

import outlast as public
from outlast import Outlast, Session, Settings, hints
from outlast.engines import sweep
from outlast.testing import ScriptedModel, call, gate, text, tool_returns
from tests.support.crashes import child
from tests.support.crashes.viewing_child import Watch
from tests.support.turns.background import BUDGET
from tests.support.turns.runtime import FAST

View = dict[str, Any]
WORDS = "".join(f"{number:04} " for number in range(40))
_SPOKEN = 20
"""Words after which one that is to die waits for its place."""


def asks_and_waits(view: View) -> bool:
    """Two calls run in the background, an approval and a question are open, two messages wait behind a sentence."""
    states = _states(view)
    asked = {each["request"]["kind"] for each in view["tasks"] if each["state"] == "awaiting_input"}
    return (
        [states.get(each) for each in ("c1", "c2")] == ["running"] * 2
        and asked == {"approval", "question"}
        and [each["kind"] for each in view["inbox"]] == ["message"] * 2
        and view["turns"][-1]["state"] == "running"
    )


def was_told_and_waits(view: View) -> bool:
    """What the dead one had begun goes on or is given up, both answers came, and their wakes wait behind a sentence."""
    states = _states(view)
    return (
        states == {"c1": "failed", "c2": "running", "c3": "succeeded", "c4": "succeeded"}
        and "wake" in {each["kind"] for each in view["inbox"]}
        and view["turns"][-1]["state"] == "running"
    )


PLACES: Mapping[str, Callable[[View], bool]] = {"asked": asks_and_waits, "told": was_told_and_waits}


def _states(view: View) -> dict[str, str]:
    return {each["call_id"]: each["state"] for each in view["tasks"]}


def opened(database: str, folder: Path, watch: Watch, *, dies: str | None = None) -> Outlast[Any, Any]:
    """`dies`: the place at which it kills itself. Without one the calls in the background come to their ends."""

    async def look_or_die() -> None:
        """One that is to die does not end its sentence before."""
        said[0] += 1
        while True:
            view = await watch.look()
            if dies is not None and view is not None and PLACES[dies](view):
                os.kill(os.getpid(), signal.SIGKILL)
            if dies is None or said[0] < _SPOKEN:
                return

    said = [0]

    async def survey() -> str:
        public.progress(1, 2)
        public.output("half\n")
        if dies is not None:
            await asyncio.Event().wait()
        return "surveyed"

    async def measure() -> str:
        return await survey()

    async def pay() -> str:
        return "paid"

    async def ask_colour() -> str:
        return f"painted {await public.ask('Which colour?')}"

    def answer(messages: Any) -> Any:
        if "c4" in dict(tool_returns(messages)):
            return [text(WORDS, chunk=5, pause=gate(look_or_die))]
        names = ("survey", "measure", "pay", "ask_colour")
        return [
            text(WORDS, chunk=5, pause=gate(watch.look)),
            *[call(name, call_id=f"c{at}") for at, name in enumerate(names, 1)],
        ]

    tools = [
        Tool(survey),
        Tool(measure, metadata=hints(read_only=True)),
        Tool(pay, metadata=hints(approve=True)),
        Tool(ask_colour, metadata=hints(read_only=True)),
    ]
    chosen: dict[str, Any] = {**FAST, "files": str(folder / "files"), "budget": BUDGET}
    agent = Agent(ScriptedModel(answer), tools=tools, name="agent")
    return Outlast(agent, database=database, settings=Settings(**chosen))


def run(database: str, folder: Path, place: str) -> None:
    """Run a child until it dies at this place."""
    log = folder / "child.log"
    code = child.run("tests.support.crashes.busy_child", database, str(folder), place, log=log)
    assert code == -signal.SIGKILL, f"it did not die: {log.read_text()}"


async def begin(session: Session) -> None:
    """Say two things behind the sentence that follows the parked calls."""
    await session.send("Go.", idempotency_key="m1")
    await _until(session, lambda view: len(view["tasks"]) == 4)
    await session.send("And then this.", when_busy="queue", idempotency_key="m2")
    await session.send("But first that.", when_busy="steer", idempotency_key="m3")


async def answer_all(outlast: Outlast[Any, Any], session: Session) -> None:
    """Also the question of the call that is run again."""
    await _until(session, lambda view: _states(view)["c1"] == "failed")
    await _until(session, lambda view: _states(view)["c4"] == "awaiting_input")
    for each in (await outlast.tasks.requests(session_id=session.id)).items:
        assert each.request is not None
        if each.request.kind == "question":
            await outlast.tasks.reply(each.id, "red", by="ada")
        else:
            await outlast.tasks.approve(each.id, by="ada")


async def _until(session: Session, holds: Callable[[View], bool]) -> None:
    async with session.events() as stream:
        while not holds(from_json(await session.view_json())):
            await anext(stream)


async def main(database: str, folder: str, place: str) -> None:
    sweep.LOOK_SECONDS, sweep.GRACE_SECONDS = 0.02, 0.0
    watch = Watch(Path(folder) / f"views-{place}")
    async with opened(database, Path(folder), watch, dies=place) as outlast:
        known = await outlast.sessions.list()
        session = watch.session = known[0] if known else await outlast.sessions.create()
        if known:
            await answer_all(outlast, session)
        else:
            await begin(session)
        await session.settled()
