"""Tasks that one process accepts and others run, in groups, while workers are killed with SIGKILL."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from outlast import ids
from outlast.calls.intake import TaskIntake
from outlast.store.repositories.stored_task import NewTask, WakePolicy
from outlast.wire.task_state import TaskState
from tests.support.apps import shared_app
from tests.support.processes.worker_process import until, workers_of
from tests.support.turns.runtime import events_of

pytestmark = pytest.mark.timeout(180)  # several interpreters start, on machines that may be busy
COUNT = 400


def new(at: int) -> NewTask:
    """Every second one may be run again."""
    return NewTask(
        ids.task_id(),
        title="stamp",
        call_id=f"call_{at}",
        tool="stamp",
        agent="shared",
        spec={"args": {"name": f"stamp.{at}"}},
        wake=WakePolicy.SILENT,
        may_run_again=at % 2 == 0,
    )


async def test_killed_workers_lose_no_accepted_task_and_repeat_none(postgres_url: str, tmp_path: Path) -> None:
    """P1, P2, P3: each ends once; what may not be run again ran at most once, and nobody says otherwise."""
    async with workers_of(postgres_url, tmp_path) as workers:
        files = str(tmp_path / "files")
        async with shared_app.make(postgres_url, run_work=False, files=files) as outlast, asyncio.timeout(120):
            first, second = await asyncio.gather(workers.start(), workers.start())
            made = [await outlast.sessions.create() for _ in range(20)]
            intake = TaskIntake(outlast.database)

            async def accept() -> list[str]:
                asked = (intake.accept(made[at % len(made)].id, new(at)) for at in range(COUNT))
                return [each.id for each in await asyncio.gather(*asked)]

            accepting = asyncio.create_task(accept())
            effects = tmp_path / "effects"
            for process, share in ((first, 4), (second, 2)):
                await until(lambda share=share: effects.exists() and effects.read_text().count("\n") > COUNT // share)
                await workers.kill(process)
                await workers.start()
            ended = [await outlast.tasks.wait(each) for each in await accepting]
            ran = Counter(line.split()[0] for line in effects.read_text().splitlines())
            for at, task in enumerate(ended):
                count = ran[f"stamp.{at}"]
                if task.may_run_again:
                    assert (task.state, task.result) == (TaskState.SUCCEEDED, f"stamp.{at}"), task
                    assert count >= 1
                elif task.state is TaskState.SUCCEEDED:
                    assert count == 1
                else:
                    assert task.error is not None
                    assert task.error["kind"] == "interrupted"
                    assert count <= 1
            logs = [await events_of(session, "task.ended") for session in made]
            told = Counter(each.task_id for log in logs for each in log)
            assert told == Counter(each.id for each in ended)
            assert any(task.attempt > 1 for task in ended), "no task was run a second time"
