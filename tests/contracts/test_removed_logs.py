"""Logs that are kept for a time only, on both engines: whole turns go, and nobody misses what they came to (I4)."""

from datetime import timedelta
from typing import Any

from pydantic_ai import Tool

from outlast import Outlast, Session, output
from outlast.duties.retention import Kept
from outlast.protocols.ai_sdk.messages import ui_messages
from outlast.store import tables
from outlast.testing import call
from tests.contracts.test_retention import age, removing
from tests.support.turns.runtime import Runtime, events_of, scripted

KEPT = Kept(output=None, feed=None, deliveries=None, fires=None, events=timedelta(days=30))
LONG = timedelta(days=31)


def survey() -> Tool[Any]:
    async def survey(river: str) -> str:
        output(f"{river} is long")
        return f"{river}: 12 km"

    return Tool(survey)


async def everything(session: Session) -> dict[str, Any]:
    """What people and the model see of a session."""
    turns = (await session.turns()).items
    view = (await session.view()).model_dump(exclude={"as_of", "feed", "session"})
    return {
        "view": view,
        "outcomes": [await each.outcome() for each in turns],
        "result": await session.result(),
        "export": await session.export(),
        "messages": await ui_messages(session, turns),
        "history": await session.history(),
    }


async def old(outlast: Outlast[Any, Any], by: timedelta = LONG) -> None:
    """All turns have ended so long ago."""
    await age(outlast, tables.turns.c.ended_at, by)


async def removed(runtime: Runtime, outlast: Outlast[Any, Any]) -> int:
    """How many pages of logs retention folds."""
    return (await removing(runtime, outlast, KEPT).run())["logs of ended turns"]


async def test_whole_turns_go_and_what_they_came_to_stays(runtime: Runtime) -> None:
    """I4: view, results, export, messages of the AI SDK and the model's history are what they were."""
    model = scripted(call("survey", {"river": "Aare"}), "Twelve.", call("survey", {"river": "Emme"}), "Also twelve.")
    async with runtime(model, tools=[survey()]) as outlast:
        session = await outlast.sessions.create()
        await session.ask("How long is the Aare?")
        await session.ask("And the Emme?")
        await old(outlast)
        before = await everything(session)
        last = (await events_of(session))[-1].number or 0
        assert await removed(runtime, outlast) == 2
        assert await everything(session) == before
        told = await events_of(session)
        assert [(each.type, each.data["first"]) for each in told] == [("stream.expired", last + 1)]
        snapshot = told[0].data["snapshot"]
        assert (snapshot["setting"], snapshot["removed_at"] > "2026") == ("keep_events", True)
        assert await removed(runtime, outlast) == 0
