"""What an MCP server asks while a call of it runs is the question of that call (B8)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent

from outlast import Session
from outlast.errors import InvalidInput
from outlast.testing import ScriptedModel, call
from outlast.wire.task import Task
from tests.support.mcp.mcp_client import reached_by
from tests.support.turns.runtime import Runtime

pytestmark = pytest.mark.parametrize("way", ["stdio", "http", "old"])


def _reached(way: str, folder: Path) -> Any:
    return reached_by("stdio", folder, is_old=True) if way == "old" else reached_by(way, folder)


async def _asked(outlast: Any, session: Session) -> Task:
    async def look() -> Task:
        while True:
            found = (await outlast.tasks.requests(session_id=session.id)).items
            if found:
                return found[0]
            await asyncio.sleep(0.01)

    return await asyncio.wait_for(look(), 20)


async def test_a_server_asks_and_goes_on_with_the_answer(tmp_path: Path, way: str) -> None:
    """B8, K4: its form is the question's schema; what does not fit is refused, and the tool gets the fields."""
    model = ScriptedModel([call("book", river="Elbe", call_id="c1"), "It asks you.", "Booked."])
    async with _reached(way, tmp_path) as server:
        agent = Agent(model, toolsets=[server], name="agent")
        async with Runtime(tmp_path / "app.db")(agent=agent) as outlast:
            session = await outlast.sessions.create()
            outcome = await (await session.send("book")).outcome()
            assert (outcome.text, [each.result for each in outcome.calls if each.outcome == "failed"]) == (
                "It asks you.",
                [],
            )
            task = await _asked(outlast, session)
            assert task.request is not None
            assert (task.state, task.request.kind) == ("awaiting_input", "question")
            assert task.request.prompt == "How many seats on the Elbe?"
            assert (task.request.schema_ or {})["required"] == ["count"]
            with pytest.raises(InvalidInput, match="does not fit"):
                await outlast.tasks.reply(task.id, {"count": "many"})
            await outlast.tasks.reply(task.id, {"count": 3})
            ended = await outlast.tasks.wait(task.id, seconds=20)
            assert (ended.state, ended.result) == ("succeeded", "3 seats on the Elbe")
            outcome = await session.settled()
            assert outcome is not None
            assert outcome.text == "Booked."
    assert (tmp_path / "booked").read_text() == "Elbe\n"


async def test_a_call_that_waits_for_an_answer_is_cancelled(tmp_path: Path, way: str) -> None:
    """B6, B8: the question is closed, and the connection is there for the next call."""
    model = ScriptedModel(
        [
            call("book", river="Elbe", call_id="c1"),
            "It asks you.",
            "Canceled.",
            call("book", river="Main", call_id="c2"),
            "It asks again.",
            "Booked.",
        ]
    )
    async with _reached(way, tmp_path) as server:
        agent = Agent(model, toolsets=[server], name="agent")
        async with Runtime(tmp_path / "app.db")(agent=agent) as outlast:
            session = await outlast.sessions.create()
            await (await session.send("book")).outcome()
            first = await _asked(outlast, session)
            assert (await outlast.tasks.cancel(first.id)).state == "canceled"
            await session.settled()
            await (await session.send("again")).outcome()
            second = await _asked(outlast, session)
            assert second.id != first.id
            await outlast.tasks.reply(second.id, {"count": 1})
            assert (await outlast.tasks.wait(second.id, seconds=20)).result == "1 seats on the Main"
            await session.settled()


async def test_two_calls_at_once_do_not_take_each_others_question(tmp_path: Path, way: str) -> None:
    """B8, P7: each question stands at the call that asks; where nobody can say which, nobody is asked."""
    both = [call("book", river="Elbe", call_id="c1"), call("book", river="Main", call_id="c2")]
    model = ScriptedModel([both, "They ask you.", *["I see."] * 4])
    async with _reached(way, tmp_path) as server:
        agent = Agent(model, toolsets=[server], name="agent")
        async with Runtime(tmp_path / "app.db")(agent=agent) as outlast:
            session = await outlast.sessions.create()
            outcome = await (await session.send("book two")).outcome()
            for task in (await outlast.tasks.requests(session_id=session.id)).items:
                assert task.request is not None
                river = next(each for each in ("Elbe", "Main") if each in str(task.args))
                assert river in task.request.prompt
                await outlast.tasks.reply(task.id, {"count": 2})
                assert (await outlast.tasks.wait(task.id, seconds=20)).result == f"2 seats on the {river}"
            told = [str(each.result) for each in outcome.calls if each.outcome != "parked"]
            assert len(told) == (2 if way == "old" else 0)
            assert all("nobody was asked" in each for each in told)
            await session.settled()
