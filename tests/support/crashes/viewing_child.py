"""A child process that looks at the view of its session while it answers, and kills itself in mid-sentence."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, Tool
from pydantic_core import from_json

from outlast import Outlast, Session, Settings, hints
from outlast.testing import ScriptedModel, call, gate, text
from tests.support.crashes import child
from tests.support.turns.runtime import FAST

WORDS = 70
_LAST = 30
"""Words of the second answer that the child still says."""


class Watch:
    """Keeps a view for each position at which it found the session."""

    def __init__(self, kept: Path) -> None:
        self.positions: set[int] = set()
        self.session: Session | None = None
        self._kept = kept

    async def look(self) -> dict[str, Any] | None:
        """The model says its next word when the last one is in a view, or after a moment. Gives that view."""
        assert self.session is not None
        for _ in range(10):
            found = await self.session.view_json()
            view: dict[str, Any] = from_json(found)
            if view["as_of"] not in self.positions:
                self.positions.add(view["as_of"])
                with self._kept.open("ab") as file:
                    file.write(found + b"\n")
                return view
            await asyncio.sleep(0.002)
        return None


def opened(database: str, folder: Path, watch: Watch, *, dies: bool = False) -> Outlast[Any, Any]:
    said = 0

    async def next_word() -> None:
        nonlocal said
        said += 1
        await watch.look()
        if dies and said == WORDS + _LAST:
            os.kill(os.getpid(), signal.SIGKILL)

    async def survey() -> str:
        await watch.look()
        return "three metres"

    words = "".join(f"{number:04} " for number in range(WORDS))
    said_slowly: Callable[[], Any] = lambda: text(words, chunk=5, pause=gate(next_word))  # noqa: E731
    steps = [[said_slowly(), call("survey", call_id="c1")], [said_slowly(), call("survey", call_id="c2")]]
    model = ScriptedModel([*steps, [said_slowly()]], by="history")
    tool = Tool(survey, metadata=hints(read_only=True))
    chosen: dict[str, Any] = {**FAST, "files": str(folder / "files")}
    return Outlast(Agent(model, tools=[tool], name="agent"), database=database, settings=Settings(**chosen))


def run(database: str, folder: Path) -> None:
    """Run a child until it dies in its second answer."""
    log = folder / "child.log"
    code = child.run("tests.support.crashes.viewing_child", database, str(folder), log=log)
    assert code == -signal.SIGKILL, f"it did not die: {log.read_text()}"


async def main(database: str, folder: str) -> None:
    watch = Watch(Path(folder) / "views")
    async with opened(database, Path(folder), watch, dies=True) as outlast:
        watch.session = await outlast.sessions.create()
        await watch.session.send("How deep?", idempotency_key="m1")
        await watch.session.settled()
