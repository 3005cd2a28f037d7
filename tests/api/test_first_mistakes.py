"""What a first request gets wrong is told in words that say what to do (B1)."""

import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI

from outlast.api.app import create_app
from tests.support.network.server import serving
from tests.support.turns.runtime import Runtime

PROGRAM = """
import asyncio

from pydantic_ai import Agent

from outlast import Outlast
from outlast.testing import ScriptedModel


async def main() -> None:
    def break_down(messages: object) -> str:
        raise RuntimeError("first line\\nsecond line")

    async with Outlast(Agent(ScriptedModel(break_down)), database="app.db") as outlast:
        session = await outlast.sessions.create()
        print((await session.ask("Hi.")).state)


asyncio.run(main())
"""


@pytest.mark.parametrize("path", ["/agent/v1/sessions", "/agent/readyz", "/agent/", "/agent/api/chat/x/stream"])
async def test_a_mounted_app_that_nobody_started_says_so(runtime: Runtime, path: str) -> None:
    """Not that the key is wrong: nobody could look it up."""
    outlast = runtime(["Hello."])
    app = FastAPI()
    app.mount("/agent", create_app(outlast))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://app") as client:
        for headers in ({}, {"Authorization": "Bearer olk_nobody"}):
            answer = await client.get(path, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (503, "not_started")
            assert "async with outlast:" in answer.json()["detail"]
        assert (await client.get("/agent/healthz")).status_code == 200
        async with outlast:
            assert (await client.get("/agent/v1/sessions")).status_code == 401


async def test_a_body_that_cannot_be_read_is_told_why(runtime: Runtime) -> None:
    async with serving(runtime(["Hello."])) as server:
        ada = await server.client()
        session = f"/v1/sessions/{(await ada.post('/v1/sessions', json={})).json()['id']}"
        for body, headers, why in (
            ('{"text":"x"}', {}, "body: is read as JSON only with the header Content-Type: application/json."),
            ('{"text":"x"}', {"Content-Type": "text/plain"}, "Content-Type: application/json"),
            ('{"text":x}', {"Content-Type": "application/json"}, "body: is no JSON: Expecting value at character 8."),
            ("", {"Content-Type": "application/json"}, "body: Field required."),
        ):
            answer = await ada.post(f"{session}/messages", content=body, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")
            assert why in answer.json()["detail"]


async def test_a_model_where_none_is_offered_is_told_so(runtime: Runtime) -> None:
    async with serving(runtime(["Hello."])) as server:
        ada = await server.client()
        made = await ada.post("/v1/sessions", json={"model": "gpt"})
        session = f"/v1/sessions/{(await ada.post('/v1/sessions', json={})).json()['id']}"
        sent = await ada.post(f"{session}/messages", json={"text": "Hi.", "model": "gpt"})
        for answer in (made, sent):
            assert answer.status_code == 422
            assert "the agent's own is the only one; others: Outlast(models=...)" in answer.json()["detail"]


def test_a_program_that_set_up_no_logs_gets_errors_where_errors_go(tmp_path: Path) -> None:
    """On stderr, as a person reads them: what the program prints stays its own."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run([sys.executable, program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "failed\n"
    assert "turn failed" in done.stderr
    assert "RuntimeError: first line\nsecond line\n" in done.stderr
