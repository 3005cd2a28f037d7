"""A process ends when its drain is over, whatever the threads of its tools do; a second signal ends it at once."""

import asyncio
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from outlast import Client
from outlast.cli.server_file import ServerFile
from tests.support.processes.serving_process import Program

# Each test starts several interpreters.
pytestmark = pytest.mark.timeout(180)

APP = """
import asyncio
import os
import threading
from pathlib import Path

from pydantic_ai import Agent

import outlast
from outlast.testing import ScriptedModel, call, last_user_text


def script(messages):
    said = last_user_text(messages)
    last = messages[-1].parts[-1]
    if last.part_kind == "tool-return":
        return f"It came to: {last.content}"
    return f"I was told: {said}" if "Background task" in said else call(said)


agent = Agent(ScriptedModel(script), name="holder")


def begin(name):
    count = len(list(Path().glob(f"{name}-*")))
    Path(f"{name}-{count + 1}").touch()
    return count


def hold():
    \"\"\"A thread that nobody can end.\"\"\"
    begin("hold")
    threading.Event().wait()


async def lend():
    \"\"\"The same, in a thread of asyncio's own.\"\"\"
    begin("lend")
    await asyncio.to_thread(threading.Event().wait)


def look():
    \"\"\"It may be run again, and then it ends.\"\"\"
    if begin("look"):
        return "seen"
    threading.Event().wait()


agent.tool_plain(hold, metadata=outlast.hints(budget=None))
agent.tool_plain(lend, metadata=outlast.hints(budget=None))
agent.tool_plain(look, metadata=outlast.hints(budget=None, read_only=True))
agent.tool_plain(hold, name="park", metadata=outlast.hints(budget=0.05))
runtime = outlast.Outlast(agent, database=os.environ["TEST_DATABASE"])
"""
SOON, LATE = "PT0.3S", "PT600S"


class Home:
    """A folder with the app, its database, and the processes that run it."""

    def __init__(self, folder: Path, database: str) -> None:
        self.folder, self.database = folder, database
        (folder / "app.py").write_text(APP)

    def start(self, verb: str, *options: str, drain: str) -> Program:
        port = ["--port", "0"] if verb == "serve" else []
        environment = {"OUTLAST_DRAIN": drain, "TEST_DATABASE": self.database}
        return Program(self.folder, verb, "app.py", *port, *options, **environment)

    def client(self) -> Client:
        [path] = self.folder.glob("*.server.json")
        place = ServerFile(path).read()
        assert place is not None
        return Client(place.url, place.token)

    async def send(self, text: str) -> str:
        """To a new session; its id."""
        async with self.client() as client:
            session = await client.sessions.create()
            await session.send(text)
            return session.id

    async def settled(self, session_id: str) -> str:
        """What the last turn said, once nothing runs in the session any more."""
        async with self.client() as client:
            outcome = await (await client.sessions.get(session_id)).settled(wait=60)
            assert outcome is not None
            return outcome.text

    async def until_begun(self, name: str) -> None:
        async with asyncio.timeout(60):
            while not list(self.folder.glob(f"{name}-*")):  # noqa: ASYNC110 - another process makes it
                await asyncio.sleep(0.02)


@pytest.fixture
def home(tmp_path: Path, database_url: str) -> Home:
    return Home(tmp_path, database_url)


@pytest.fixture
def shared(tmp_path: Path, postgres_url: str) -> Home:
    return Home(tmp_path, postgres_url)


@pytest.mark.parametrize("tool", ["hold", "lend", "park"])
async def test_a_server_leaves_when_the_drain_is_over_and_what_ran_is_told(home: Home, tool: str) -> None:
    """P1, P2: after SIGTERM; the next start says that the call may or may not have taken effect, once."""
    with home.start("serve", drain=SOON) as server:
        server.expect("Outlast serves")
        session = await home.send(tool)
        await home.until_begun("hold" if tool == "park" else tool)
        server.process.send_signal(signal.SIGTERM)
        assert server.ended() == 0
    assert "Stopped. What was running goes on at the next start." in server.err
    with home.start("serve", drain=SOON) as server:
        server.expect("Outlast serves")
        told = "effects may have happened" if tool == "lend" else "may or may not have taken effect"
        assert told in await home.settled(session)
        server.interrupt()
        assert server.ended() == 0
    assert len(list(home.folder.glob("hold-*")) + list(home.folder.glob("lend-*"))) == 1


async def test_what_may_be_run_again_is(home: Home) -> None:
    """P2: a read-only tool whose thread was left behind runs a second time, and its turn ends."""
    with home.start("serve", drain=SOON) as server:
        server.expect("Outlast serves")
        session = await home.send("look")
        await home.until_begun("look")
        server.interrupt()
        assert server.ended() == 0
    with home.start("serve", drain=SOON) as server:
        server.expect("Outlast serves")
        assert await home.settled(session) == "It came to: seen"


async def test_a_second_ctrl_c_leaves_at_once(home: Home) -> None:
    """P1: in the middle of a long drain; what ran is told at the next start all the same."""
    with home.start("serve", drain=LATE) as server:
        server.expect("Outlast serves")
        session = await home.send("hold")
        await home.until_begun("hold")
        server.interrupt()
        server.expect("Stopping:")
        server.interrupt()
        assert server.ended() == 130
    with home.start("serve", drain=SOON) as server:
        server.expect("Outlast serves")
        assert "may or may not have taken effect" in await home.settled(session)


@pytest.mark.parametrize("signals", [[signal.SIGTERM], [signal.SIGINT, signal.SIGINT]], ids=["drain", "twice"])
async def test_a_worker_leaves_too(shared: Home, signals: Sequence[int]) -> None:
    with (
        shared.start("serve", "--no-worker", drain=SOON) as server,
        shared.start("worker", drain=SOON if len(signals) == 1 else LATE) as worker,
    ):
        server.expect("Outlast serves")
        worker.expect("is ready")
        await shared.send("hold")
        await shared.until_begun("hold")
        worker.process.send_signal(signals[0])
        worker.expect("Leaving")
        if len(signals) > 1:
            await asyncio.sleep(0.6)  # a Ctrl-C in the same moment counts as the same one
            worker.process.send_signal(signals[1])
        assert worker.ended() == (130 if len(signals) > 1 else 0)


async def test_a_second_ctrl_c_takes_the_workers_of_a_server_along(shared: Home) -> None:
    with shared.start("serve", "--workers", "1", drain=LATE) as server:
        server.expect("is ready")
        server.expect("Outlast serves")
        await shared.send("hold")
        await shared.until_begun("hold")
        server.interrupt()
        server.expect("Stopping:")
        server.interrupt()
        # Its pipes are closed when the workers, which have them too, are gone.
        assert server.ended() == 130
