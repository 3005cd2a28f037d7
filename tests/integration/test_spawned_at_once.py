"""Many tasks spawned at once through servers that have not got the agent: never more run than there are places."""

import asyncio
from contextlib import ExitStack
from pathlib import Path

import pytest

from outlast import Outlast
from outlast.wire.task import Task
from tests.integration.test_caps import Pieces, chosen, client_of
from tests.support.processes.serving_process import ROOT, Program
from tests.support.processes.worker_process import APP

pytestmark = pytest.mark.timeout(180)  # two interpreters start, on machines that may be busy
COUNT = 100


def name_of(task: Task) -> str:
    return str(task.args["name"])


async def test_a_hundred_at_once_through_two_servers_run_five_at_a_time_in_order(
    ready_postgres_url: str, tmp_path: Path
) -> None:
    """B3, B5: the rest wait in order with their places shown, and all finish; the tool is known by its record."""
    caps = {"max_open_tasks_per_session": 2 * COUNT}
    environment = {
        "OUTLAST_TEST_DATABASE": ready_postgres_url,
        "OUTLAST_TEST_FOLDER": str(tmp_path),
        "OUTLAST_LOG_LEVEL": "warning",
        "PYTHONPATH": str(ROOT),
        **{f"OUTLAST_{name.upper()}": str(value) for name, value in caps.items()},
    }
    folders = [tmp_path / name for name in ("one", "two")]
    pieces = Pieces()
    with ExitStack() as stack:
        for each in folders:
            each.mkdir()
        command = ("serve", APP, "--no-worker", "--port", "0")
        servers = [stack.enter_context(Program(each, *command, **environment)) for each in folders]
        settings = chosen(tmp_path, **caps)
        async with Outlast(pieces.agent("pieces"), database=ready_postgres_url, settings=settings) as worker:
            session = await worker.sessions.create()
            for each in servers:
                await asyncio.to_thread(each.expect, "Outlast serves")
            async with client_of(folders[0]) as first, client_of(folders[1]) as second:
                doors = [await each.sessions.get(session.id) for each in (first, second)]
                asked = [doors[at % 2].spawn("work", {"name": f"p{at}"}, wake="silent") for at in range(COUNT)]
                made = await asyncio.gather(*asked)
                await pieces.have_begun(5)
                waiting = [each for each in await first.tasks.list(state="queued", limit=500) if each.place]
                assert sorted(each.place or 0 for each in waiting) == list(range(1, COUNT - 4))
                line = [name_of(each) for each in sorted(waiting, key=lambda each: each.place or 0)]
                for begun in range(6, COUNT + 1):
                    pieces.let_end(1)
                    await pieces.have_begun(begun)
                pieces.let_end(5)
                ended = [await second.tasks.wait(each.id, seconds=60) for each in made]
                assert {each.state for each in ended} == {"succeeded"}
        assert pieces.most == 5
        assert pieces.begun[5:] == line
