"""The built wheel in clean environments: what `pip install outlast` can do, what extras add, and the client alone."""

import asyncio
import json
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from outlast.extras import PACKAGES, Extra
from outlast.testing import call
from tests.docs.test_readme import examples
from tests.support.network.server import serving
from tests.support.processes.installed import (
    ROOT,
    Installed,
    build_wheel,
    install,
    megabytes,
    requirements,
    with_all_they_need,
)
from tests.support.processes.serving_process import ServingProcess
from tests.support.turns.runtime import Runtime, scripted

EXTRAS: tuple[Extra, ...] = ("postgres", "s3", "mcp")
MAX_MEGABYTES = 150
CLIENT_NEEDS = [Requirement("httpx2"), Requirement("pydantic")]
CLIENT_MODULES = {"backoff", "client", "clock", "errors", "events", "ids", "paging", "tool_hints", "wire"}
APP = """
from pydantic_ai import Agent
from outlast.testing import ScriptedModel
agent = Agent(ScriptedModel(lambda _: "Hello from the wheel."))
"""
ON_POSTGRES = """
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
from outlast import Outlast
app = Outlast(Agent(TestModel(), name="a"), database="postgresql://ada@127.0.0.1/app")
"""
MISSING = """
import sys
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
from outlast import Outlast, Settings
from outlast.errors import InvalidInput
from outlast.store.files.file_store import FileStore

for attempt in (
    lambda: Outlast(Agent(TestModel()), database="postgresql://ada@127.0.0.1/app"),
    lambda: FileStore("s3://bucket/prefix"),
):
    try:
        attempt()
    except InvalidInput as exc:
        print(exc.message)
"""
TALK = """
import asyncio, json, sys
from outlast.client import Client

async def main(url, token):
    async with Client(url, token) as client:
        session = await client.sessions.create()
        sent = await session.send("Measure it.")
        outcome = await sent.outcome(wait=30)
        [task] = await client.tasks.list()
        ended = await client.tasks.cancel(task.id)
        types = []
        async with session.events() as stream:
            async for event in stream:
                types.append(event.type)
                if event.type == "task.ended":
                    break
    own = {name.split(".")[1] for name in sys.modules if name.startswith("outlast.")}
    print(json.dumps([outcome.text, task.tool, ended.state, types[-1], sorted(own)]))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """What `pip install outlast` gives."""
    return install(tmp_path_factory.mktemp("base") / "env", wheel, requirements(wheel))


def test_the_package_is_small_without_its_extras(wheel: Path) -> None:
    """K5, M18: library, SQLite, server and command; what only some need is an extra."""
    packages = with_all_they_need(requirements(wheel))
    assert megabytes(packages.values()) < MAX_MEGABYTES
    assert {"asyncpg", "pgqueuer", "uvloop", "obstore", "fastmcp-slim", "mcp"} & set(packages) == set()


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_brings_the_modules_whose_lack_names_it(wheel: Path, extra: Extra) -> None:
    """K5: what the error tells people to install is what they miss."""
    brought = with_all_they_need(requirements(wheel, extra)).values()
    modules = {path.parts[0] for package in brought for path in package.files or () if len(path.parts) > 1}
    assert modules >= PACKAGES[extra]


def test_the_pins_of_this_project_are_what_it_asks_for(wheel: Path) -> None:
    """`make` installs the pins and nothing else: all that is asked for is among them, in versions that fit."""
    pins = dict(line.split("==") for line in (ROOT / "requirements" / "dev.txt").read_text().split())
    pinned = {canonicalize_name(name): version for name, version in pins.items()}
    wanted = [each for extra in ("", "dev", *EXTRAS) for each in requirements(wheel, extra) if each.name != "outlast"]
    assert [str(each) for each in wanted if not each.specifier.contains(pinned[canonicalize_name(each.name)])] == []
    assert set(with_all_they_need(wanted)) <= set(pinned)


def test_the_readmes_example_runs_without_extras(base: Installed, tmp_path: Path) -> None:
    """K5"""
    example = next(examples(ROOT / "README.md"))
    (tmp_path / "example.py").write_text(example.code)
    assert base.run("-W", "error", "example.py", cwd=tmp_path) == example.output


async def test_a_server_runs_without_extras(base: Installed, tmp_path: Path) -> None:
    """K1, K5: `outlast serve`, and `outlast send` beside it, both from the wheel."""
    (tmp_path / "app.py").write_text(APP)
    with ServingProcess(tmp_path, command=base.command) as server:
        said = base.run("-m", "outlast", "send", "Hello?", "--wait", cwd=tmp_path)
        async with server.client() as client:
            assert (await client.get("/readyz")).status_code == 200
            assert (await client.get("/docs")).status_code == 200
        server.stop()
    assert "Hello from the wheel." in said


def test_a_missing_extra_is_named_where_it_is_needed(base: Installed, tmp_path: Path) -> None:
    """K5: by the library when a URL asks for it, by the command when the app does."""
    postgres, s3 = base.run("-c", MISSING, cwd=tmp_path).splitlines()
    assert postgres.endswith("pip install 'outlast[postgres]'")
    assert s3.endswith("pip install 'outlast[s3]'")
    assert "s3://bucket/prefix" in s3
    (tmp_path / "app.py").write_text("from pydantic_ai.mcp import MCPToolset\n")
    told = base.run("-m", "outlast", "serve", "app.py", cwd=tmp_path, code=2)
    assert "pip install 'outlast[mcp]'" in told
    told = base.run(ROOT / "examples" / "mcp" / "app.py", cwd=tmp_path, code=1)
    assert told == 'MCP servers need an extra of Outlast. In its clone: pip install ".[mcp]"\n'
    (tmp_path / "app.py").write_text(ON_POSTGRES)
    told = base.run("-m", "outlast", "serve", "app.py", cwd=tmp_path, code=2)
    assert "pip install 'outlast[postgres]'" in " ".join(told.split())
    assert "database=" in told, "the line of the app that asks for it"
    assert "extras.py" not in told, "and nothing of ours"


async def test_the_client_needs_an_http_client_and_pydantic_alone(wheel: Path, tmp_path: Path) -> None:
    """K5: a program elsewhere sends, streams, and finds and cancels a task."""
    alone = install(tmp_path / "env", wheel, CLIENT_NEEDS)
    assert not {"pydantic-ai-slim", "sqlalchemy", "fastapi", "structlog"} & alone.packages
    for way in (("-m", "outlast"), (alone.command,)):
        told = alone.run(*way, "ps", cwd=tmp_path, code=1)
        assert told == "The command needs more than the client does (typer is missing): pip install outlast\n"
    (tmp_path / "talk.py").write_text(TALK)

    async def measure() -> None:
        await asyncio.Event().wait()

    model = scripted(call("measure"), "I will tell you.", "It was canceled.")
    runtime = Runtime(tmp_path / "outlast.db")(model, tools=[measure], budget=0.01)
    async with serving(runtime) as server:
        _, token = await server.outlast.keys.make("ada", "test")
        told = await asyncio.to_thread(alone.run, "-W", "error", "talk.py", server.url, token, cwd=tmp_path)
    *facts, modules = json.loads(told)
    assert facts == ["I will tell you.", "measure", "canceled", "task.ended"]
    assert set(modules) <= CLIENT_MODULES
