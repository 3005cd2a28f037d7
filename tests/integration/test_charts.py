"""A chart that a tool draws: seen by the model, read over HTTP, and written to disk by the command."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Tool
from pydantic_ai.messages import BinaryImage, ModelMessage
from typer.testing import CliRunner

import outlast as public
from outlast import Client, hints
from outlast.cli.main import app
from outlast.testing import ScriptedModel, Step, call, tool_returns
from tests.support.network.server import serving
from tests.support.turns.runtime import Runtime

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(92))


@pytest.mark.parametrize("is_parked", [False, True])
async def test_a_chart_reaches_model_api_and_disk(runtime: Runtime, tmp_path: Path, is_parked: bool) -> None:
    """A3, D12: the same bytes, whether its call ended in its turn or went on as a task."""
    go_on = asyncio.Event()

    async def chart() -> Any:
        """Draw."""
        await go_on.wait()
        public.artifact("levels.png", PNG, "image/png")
        return BinaryImage(PNG, media_type="image/png")

    def script(messages: list[ModelMessage]) -> Step:
        return "Here it is." if tool_returns(messages) else call("chart")

    model = ScriptedModel(script)
    tools = [Tool(chart, metadata=hints(budget=0.05 if is_parked else 60))]
    async with serving(runtime(model, tools=tools)) as server:
        _, token = await server.outlast.keys.make("ada", "laptop")
        async with Client(server.url, token) as client:
            session = await client.sessions.create()
            sent = await session.send("Draw the levels.")
            if is_parked:
                await sent.outcome(wait=30)
            go_on.set()
            await session.settled(wait=30)
            assert repr(PNG) in repr(model.requests[-1].messages)
            [kept] = await session.files.list()
            assert (kept.name, kept.origin, (await client.files.get(kept.id)).data) == ("levels.png", "artifact", PNG)
            tasks = await client.tasks.list(session_id=session.id)
            told = [file["id"] for task in tasks for file in task.artifacts]
            assert told == ([kept.id] if is_parked else [])
        target = tmp_path / "levels.png"
        asked = ["files", "get", kept.id, "--to", str(target), "--url", server.url, "--token", token]
        assert (await asyncio.to_thread(CliRunner().invoke, app, asked)).exit_code == 0
        assert target.read_bytes() == PNG
