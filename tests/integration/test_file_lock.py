"""One file, one runner: real processes on one database."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from outlast.errors import DatabaseInUse
from tests.support.turns.runtime import Runtime

HOLDER = """
import asyncio, sys
from pydantic_ai import Agent
from outlast import Outlast
from outlast.testing import ScriptedModel

async def main():
    async with Outlast(Agent(ScriptedModel(["Hello."]), name="agent"), database=sys.argv[1]):
        print("running", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""

SECOND = """
import asyncio, json, sys
from pydantic_ai import Agent
from outlast import Outlast
from outlast.errors import OutlastError
from outlast.testing import ScriptedModel

async def main():
    try:
        async with Outlast(Agent(ScriptedModel(["Hello."]), name="agent"), database=sys.argv[1]):
            print(json.dumps({"code": None}), flush=True)
    except OutlastError as exc:
        print(json.dumps({"code": exc.code, "message": exc.message}), flush=True)

asyncio.run(main())
"""


@asynccontextmanager
async def process(program: str, database: Path) -> AsyncGenerator[asyncio.subprocess.Process]:
    started = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, str(database), stdout=asyncio.subprocess.PIPE
    )
    try:
        yield started
    finally:
        if started.returncode is None:
            started.kill()
        await started.wait()


async def line_of(running: asyncio.subprocess.Process) -> str:
    assert running.stdout is not None
    return (await running.stdout.readline()).decode().strip()


async def test_a_second_process_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    """P5: the refusal names the process and what to do; kill -9 of the first frees the file at once."""
    database = tmp_path / "app.db"
    async with process(HOLDER, database) as first:
        assert await line_of(first) == "running"
        async with process(SECOND, database) as second:
            refusal = json.loads(await line_of(second))
        assert refusal["code"] == "database_in_use"
        assert f"pid {first.pid}" in refusal["message"]
        assert "Stop it first" in refusal["message"]
        first.send_signal(signal.SIGKILL)
        await first.wait()
        async with process(SECOND, database) as third:
            assert json.loads(await line_of(third)) == {"code": None}


async def test_two_names_of_one_file_are_one_database(tmp_path: Path) -> None:
    """P5: a link to the file, or to its folder, does not let a second runner in."""
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    async with Runtime(tmp_path / "data" / "app.db")():
        (tmp_path / "other.db").symlink_to(tmp_path / "data" / "app.db")
        for name in (tmp_path / "other.db", tmp_path / "link" / "app.db", tmp_path / "data" / ".." / "data" / "app.db"):
            with pytest.raises(DatabaseInUse):
                async with Runtime(name)():
                    pass
