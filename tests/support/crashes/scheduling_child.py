"""A child process that makes a schedule and dies at a place of its first fire."""

import asyncio
from typing import Any

from pydantic_ai import Agent

from outlast import Outlast, Settings
from outlast.testing import ScriptedModel
from tests.support.crashes.crash import Place
from tests.support.turns.runtime import FAST

SECONDS = 60.0


async def main(database: str, files: str, where: str) -> None:
    place = Place(where)
    agent = Agent(ScriptedModel(["Done."] * 5), name="agent")
    chosen: dict[str, Any] = {**FAST, "files": files}
    async with Outlast(agent, database=database, settings=Settings(**chosen)) as outlast:
        session = await outlast.sessions.create()
        outlast.database.watcher = place.passes_commit
        await session.schedule("Look.", delay="1 second")
        await asyncio.sleep(SECONDS)
