"""For stock AI SDK clients: `python -m tests.support.apps.ai_sdk_server FOLDER SOCKET [PAGES]` serves on a socket.

The model says what the user's words ask for; a gate named in them holds it until `POST /gates/NAME`. A bearer token is
taken for the owner's name. With a folder of built pages, these are served under `/pages` and need no token.
"""

import asyncio
import socket
import sys
from collections import Counter, defaultdict
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import uvicorn
from fastapi import FastAPI, Request
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ToolReturnPart

from outlast import Outlast, Settings, hints, progress
from outlast.api.app import create_app
from outlast.testing import ScriptedModel, Step, call, error, gate, last_user_text, reasoning, text
from tests.support.turns.runtime import FAST


class Report(BaseModel):
    city: str
    birds: int


class Scene:
    """What the model says, and the gates that hold it."""

    def __init__(self) -> None:
        self.gates: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.asked: Counter[str] = Counter()

    def reply(self, messages: list[ModelMessage]) -> Step:
        last = messages[-1].parts[-1]
        said = last_user_text(messages) or ""
        word, _, name = said.partition(" ")
        if isinstance(last, ToolReturnPart):
            return "Seen." if last.tool_name == "glance" else "It goes on."
        match word:
            case "hello":
                return [reasoning("Hm."), text("Hello there.", chunk=4)]
            case "look":
                return call("glance", at="sky", chunk=3)
            case "slow":
                return [text("One "), gate(self.gates[name]), text("two.")]
            case "survey":
                return call("survey", name=name)
            case "measure":
                return call("survey", name=name, places=4)
            case "dredge":
                return call("dredge", name=name)
            case "pay":
                return call("pay", name=name)
            case "report":
                return call("final_result", city="Oslo", birds=12)
            case "count":
                self.asked[name] += 1
                return f"Answer {self.asked[name]}"
            case "fail":
                return error(400)
            case _:
                if "ignored" in said or "effect" in said:
                    return "Who knows."
                if "refused" in said:
                    return "Then not."
                assert "finished" in said, said
                return "The survey is done."

    async def survey(self, name: str, places: int = 0) -> str:
        if places:
            progress(1, places, unit="places")
        await self.gates[name].wait()
        return "4 m deep"

    async def dredge(self, name: str) -> str:
        """Hears no cancel."""
        while not self.gates[name].is_set():
            with suppress(asyncio.CancelledError):
                await self.gates[name].wait()
        return "4 m deeper"

    async def pay(self, name: str) -> str:
        return f"paid {name}"

    async def glance(self, at: str) -> str:
        return "It is blue." if at == "sky" else "It is dark."


async def owner_of(request: Request) -> str | None:
    return request.headers.get("authorization", "").removeprefix("Bearer ") or None


async def owner_of_page(request: Request) -> str | None:
    return await owner_of(request) or "page"


def app(folder: Path, pages: Path | None) -> FastAPI:
    scene = Scene()
    agent = Agent(ScriptedModel(scene.reply), name="agent", output_type=[str, Report])
    agent.tool_plain(metadata=hints(budget=timedelta(milliseconds=20)))(scene.survey)
    agent.tool_plain(metadata=hints(budget=timedelta(milliseconds=20)))(scene.dredge)
    agent.tool_plain(scene.glance)
    agent.tool_plain(metadata=hints(approve=True))(scene.pay)
    runtime = Outlast(agent, database=folder / "outlast.db", settings=Settings(**FAST))
    served = create_app(runtime, authenticate=owner_of if pages is None else owner_of_page)

    async def open_gate(name: str) -> None:
        scene.gates[name].set()

    served.post("/gates/{name}")(open_gate)
    if pages is not None:
        served.mount("/pages", StaticFiles(directory=pages, html=True))
    return served


async def serve(folder: Path, listening: socket.socket, pages: Path | None) -> None:
    server = uvicorn.Server(uvicorn.Config(app(folder, pages), log_level="warning", timeout_graceful_shutdown=1))
    await server.serve(sockets=[listening])


if __name__ == "__main__":
    folder, listening, *pages = sys.argv[1:]
    asyncio.run(serve(Path(folder), socket.socket(fileno=int(listening)), Path(pages[0]) if pages else None))
