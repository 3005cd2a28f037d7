"""The app under test: an agent that does what it is told, and waits so short that no request takes long."""

import asyncio
from datetime import timedelta

from pydantic_ai import Agent

from outlast import Outlast, Settings
from tests.support.apps.obedient import obedient, survey_tool


async def for_ever() -> None:
    await asyncio.Event().wait()


app = Outlast(
    Agent(obedient(for_ever), tools=[survey_tool(for_ever)], name="obedient"),
    database="fuzz.db",
    settings=Settings(
        durability="normal",
        max_wait=timedelta(milliseconds=50),
        stop_grace=timedelta(milliseconds=50),
        max_requests_per_minute=10**9,
        max_body_bytes_per_minute=10**12,
        max_turns_per_owner=64,
        log_level="warning",
    ),
)
