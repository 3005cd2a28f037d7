"""A process that is made to die: it runs parked calls on a database and is killed at a place in them.

The scene says which tool is called and where the process kills itself with SIGKILL. Run again on the same folder
it goes on with what the last one left.
"""

import asyncio
import os
import resource
import signal
import threading
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, Tool
from pydantic_ai.messages import ModelMessage

import outlast as public
from outlast import Outlast, Settings, hints
from outlast.ids import InputId, SessionId, TaskId
from outlast.store.database import Moment
from outlast.store.repositories import inputs
from outlast.store.unit import Unit
from outlast.testing import ScriptedModel, call, tool_returns

PRINTED = 50 * 1024 * 1024
LINE = "x" * 1023 + "\n"


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _peak_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Scene:
    """What the tools do in this process. Each run of one adds a line to `runs` in the folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name
        self.loop = asyncio.get_running_loop()
        self.is_parked = asyncio.Event()
        self.is_written = asyncio.Event()
        self.may_print = threading.Event()
        self.has_output = threading.Event()
        self.is_asked = asyncio.Event()
        self.journals = 0

    def note(self, text: str) -> int:
        """Gives how many lines stand there now."""
        runs = self.folder / "runs"
        with runs.open("a") as file:
            file.write(f"{text}\n")
        return len(runs.read_text().splitlines())

    async def once(self) -> str:
        """Not to be repeated. It ends, and the process dies before that is committed."""
        self.note(public.idempotency_key() or "")
        await self.is_parked.wait()
        return "done once"

    async def repeatable(self) -> str:
        """May run again. The first run says something and dies."""
        count = self.note(public.idempotency_key() or "")
        public.output(f"run {count}\n")
        if count == 1:
            await self.is_parked.wait()
            await self.is_written.wait()
            die()
        return f"done in run {count}"

    async def deadly(self) -> str:
        """May run again, and dies each time."""
        self.note(public.idempotency_key() or "")
        await self.is_parked.wait()
        die()
        return "never"

    def printer(self) -> str:
        """May run again. Prints a lot and dies half-way the first time."""
        count = self.note(public.idempotency_key() or "")
        assert self.may_print.wait(30)
        before = _peak_memory()
        for at in range(PRINTED // len(LINE)):
            public.output(LINE)
            if count == 1 and at == PRINTED // len(LINE) // 2:
                # What was printed so far is on its way: die after its commit, not before the first one.
                self.has_output.clear()
                public.output(LINE)
                assert self.has_output.wait(30)
                die()
        (self.folder / "growth").write_text(str(_peak_memory() - before))
        return "printed"

    async def checked(self, river: str) -> str:
        """Not to be repeated. It ends once the model has asked what became of it."""
        self.note(river)
        await self.is_asked.wait()
        return f"{river} is high"

    def watch(self, name: str, moment: Moment) -> None:
        if (name, moment) == ("journal", "after"):
            self.journals += 1
            if self.journals == 2:
                self.loop.call_soon_threadsafe(self.is_asked.set)
        if (name, moment) == ("output", "after"):
            self.loop.call_soon_threadsafe(self.is_written.set)
            self.has_output.set()
        if (name, moment) == ("task.end", "before") and self.name == "once":
            die()


def die_at_the_first_withdrawal(folder: Path) -> None:
    """Inside the transaction that would commit the answer of `check_background` and take back two wakes."""
    plain = inputs.withdraw_wakes

    def withdraw_wakes(unit: Unit, session_id: SessionId, task_ids: Sequence[TaskId]) -> list[InputId]:
        gone = plain(unit, session_id, task_ids)
        if len(gone) == 2 and not (folder / "withdrew").exists():
            (folder / "withdrew").touch()
            die()
        return gone

    inputs.withdraw_wakes = withdraw_wakes


def ask_about_both(messages: list[ModelMessage]) -> Any:
    returns: dict[str, Any] = dict(tool_returns(messages))
    if "c1" not in returns:
        return [call("checked", river=river, call_id=call_id) for river, call_id in (("Elbe", "c1"), ("Oder", "c2"))]
    if "q0" not in returns:
        task_ids = [returns[each]["task_id"] for each in ("c1", "c2")]
        return call("check_background", task_id=task_ids, wait_seconds=300, call_id="q0")
    return "I see."


def steps(tool: str) -> Any:
    if tool == "checked":
        return ask_about_both

    def answer(messages: list[ModelMessage]) -> Any:
        if not tool_returns(messages):
            return call(tool, call_id="c1")
        return "It goes on." if messages[-1].parts[-1].part_kind == "tool-return" else "I see."

    return answer


def agent_of(scene: Scene) -> Agent[None, str]:
    again = hints(idempotent=True)
    tools = [
        Tool(scene.once),
        Tool(scene.repeatable, metadata=again),
        Tool(scene.deadly, metadata=again),
        Tool(scene.printer, metadata=again),
        Tool(scene.checked),
    ]
    return Agent(ScriptedModel(steps(scene.name)), tools=tools, name="agent")


async def main(place: str, name: str) -> None:
    folder = Path(place)
    scene = Scene(folder, name)
    if name == "checked":
        die_at_the_first_withdrawal(folder)
    settings = Settings(durability="normal", budget=timedelta(milliseconds=20), wake_company=timedelta(0))
    async with Outlast(agent_of(scene), database=folder / "app.db", settings=settings) as outlast:
        outlast.database.watcher = scene.watch
        known = await outlast.sessions.list()
        session = known[0] if known else await outlast.sessions.create()
        if not known:
            await (await session.send("Go.")).outcome()
        scene.is_parked.set()
        scene.may_print.set()
        await session.settled()
