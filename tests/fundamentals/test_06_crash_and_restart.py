"""A process that is killed: accepted means kept, finished means never redone, and the rest is told as it is."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, Tool

from outlast import Outlast, Session, Verdict, hints
from outlast.testing import ScriptedModel, call, gate, text

Start = Callable[..., Outlast[Any, Any]]

pytestmark = pytest.mark.timeout(300)  # a new process takes its time on a busy machine

DIES_IN_A_TOOL = """
import asyncio, os, signal, sys
from pathlib import Path
from pydantic_ai import Agent, Tool
from outlast import Outlast, Settings, hints
from outlast.testing import ScriptedModel, call

database, files, notes, hint = sys.argv[1:]

def charge() -> str:
    with Path(notes).open("a") as file:
        file.write("charged\\n")
    os.kill(os.getpid(), signal.SIGKILL)

async def main() -> None:
    charging = Tool(charge, metadata=hints(idempotent=hint == "idempotent"))
    agent = Agent(ScriptedModel([call("charge"), "Paid."], by="history"), tools=[charging])
    async with Outlast(agent, database=database, settings=Settings(files=files)) as outlast:
        session = await outlast.sessions.create(external_id="shop")
        await session.ask("Pay.")

asyncio.run(main())
"""


class Shop:
    """What a killed process leaves behind, and the agent that goes on with it."""

    def __init__(self, database: str, folder: Path) -> None:
        self.database, self.folder, self.notes = database, folder, folder / "notes"

    async def dies(self, hint: str = "") -> None:
        arguments = (self.database, str(self.folder / "files"), str(self.notes), hint)
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", DIES_IN_A_TOOL, *arguments)
        assert await process.wait() == -signal.SIGKILL

    def agent(self, hint: str = "") -> Agent[None, str]:
        def charge() -> str:
            with self.notes.open("a") as file:
                file.write("charged\n")
            return f"paid by {os.getpid()}"

        charging = Tool(charge, metadata=hints(idempotent=hint == "idempotent"))
        return Agent(ScriptedModel([call("charge"), "Paid."], by="history"), tools=[charging])

    def charged(self) -> int:
        return len(self.notes.read_text().splitlines())


@pytest.fixture
def shop(database_url: str, tmp_path: Path) -> Shop:
    return Shop(database_url, tmp_path)


async def the_session(outlast: Outlast[Any, Any]) -> Session:
    (session,) = await outlast.sessions.list(external_id="shop")
    return session


async def test_a_call_in_flight_is_told_and_not_run_again(shop: Shop, start: Start) -> None:
    """It may or may not have taken effect: the model and the user are told so, and a person can settle it (P2)."""
    await shop.dies()
    async with start(shop.agent()) as outlast:
        session = await the_session(outlast)
        outcome = await session.settled()
        assert outcome is not None
        assert (outcome.state, outcome.text, outcome.attempt) == ("completed", "Paid.", 2)
        assert [(each.tool, each.outcome) for each in outcome.calls] == [("charge", "interrupted")]
        assert shop.charged() == 1
        (open_question,) = (await session.refresh()).interrupted_calls
        await session.settle_call(open_question.call_id, Verdict.WORKED, by="olga", note="It is on the statement.")
        assert (await session.refresh()).interrupted_calls == []


async def test_a_tool_that_says_it_is_idempotent_is_run_again(shop: Shop, start: Start) -> None:
    """Hand `outlast.idempotency_key()` to the service: it is the same for both runs (A1, P2)."""
    await shop.dies("idempotent")
    async with start(shop.agent("idempotent")) as outlast:
        outcome = await (await the_session(outlast)).settled()
        assert outcome is not None
        assert [(each.tool, each.outcome) for each in outcome.calls] == [("charge", "success")]
        assert shop.charged() == 2


async def test_a_deploy_hands_a_running_turn_over(start: Start) -> None:
    """A process that is told to end brings its turns to a boundary; the next one goes on there (P1, P2)."""
    never, ran = asyncio.Event(), list[str]()

    def note() -> str:
        ran.append("note")
        return "noted"

    async with start(Agent(ScriptedModel([call("note"), [gate(never), text("lost")]]), tools=[note])) as outlast:
        session = await outlast.sessions.create()
        await session.send("Note this.")
        async with session.events() as stream:
            async for event in stream:
                if event.type == "call.ended":
                    break
    async with start(Agent(ScriptedModel(["Noted."]), tools=[note])) as outlast:
        outcome = await (await outlast.sessions.get(session.id)).settled()
        assert outcome is not None
        assert (outcome.text, outcome.attempt) == ("Noted.", 2)
    assert ran == ["note"]
