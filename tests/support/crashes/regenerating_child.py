"""A child process that answers a message anew and kills itself with SIGKILL at a named commit.

A place is as in `tests.support.crashes.crash`.
"""

import signal
from collections.abc import Sequence
from pathlib import Path

from pydantic_ai import Agent, Tool
from pydantic_ai.messages import ModelMessage

from outlast import hints
from outlast.testing import ScriptedModel, Step, call, tool_returns
from tests.support.crashes import child
from tests.support.crashes.crash import Place
from tests.support.turns.runtime import Runtime


def answering() -> Agent[None, str]:
    """Calls a tool and says how many results it has seen: what is superseded must not be among them."""

    def answer(messages: Sequence[ModelMessage]) -> Step:
        seen = tool_returns(messages)
        return f"Seen {len(seen)}." if seen else call("look")

    def look() -> str:
        return "a river"

    return Agent(ScriptedModel(answer), tools=[Tool(look, metadata=hints(read_only=True))], name="agent")


def run_until(folder: Path, place: str) -> None:
    """Run a child until it dies at the place."""
    log = folder / "child.log"
    code = child.run("tests.support.crashes.regenerating_child", str(folder), place, log=log)
    assert code == -signal.SIGKILL, f"{place} was not reached: {log.read_text()}"


async def main(folder: str, place: str) -> None:
    async with Runtime(Path(folder) / "outlast.db")(agent=answering()) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Look.")
        outlast.database.watcher = Place(place).passes_commit
        await session.regenerate()
        await session.settled()
