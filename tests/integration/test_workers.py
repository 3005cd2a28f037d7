"""Worker processes on one PostgreSQL: killed, frozen, cut off and sent away, they lose nothing and repeat nothing."""

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import sqlalchemy as sa

from outlast import Event, Outlast, Session
from outlast.ids import TaskId
from tests.support.apps import shared_app
from tests.support.processes.worker_process import APP, Workers, until, workers_of
from tests.support.turns.runtime import events_of, wait_for_event

pytestmark = pytest.mark.timeout(180)  # several interpreters start, on machines that may be busy
WHOLE = "".join(shared_app.words(step) for step in range(shared_app.STEPS + 1))
SOON = {"OUTLAST_TEST_FROZEN_SECONDS": "4"}


@pytest.fixture
async def workers(postgres_url: str, tmp_path: Path) -> AsyncIterator[Workers]:
    async with workers_of(postgres_url, tmp_path) as found:
        yield found


@pytest.fixture
async def outlast(workers: Workers) -> AsyncIterator[Outlast[Any, Any]]:
    """This process accepts and reads; it runs nothing."""
    files = str(workers.folder / "files")
    async with shared_app.make(workers.database, run_work=False, files=files) as runtime:
        yield runtime


async def only_task(session: Session) -> TaskId:
    event = await wait_for_event(session, "task.created")
    assert event.task_id is not None
    return event.task_id


def texts(told: list[Event]) -> dict[str, str]:
    """Each part's words, joined by their offsets; what the log takes back is left out."""
    parts: dict[str, str] = {}
    for event in told:
        if event.type == "part.started" and event.data["kind"] == "text":
            parts[event.data["part"]] = ""
        if event.type == "part.delta" and event.data["part"] in parts:
            known = parts[event.data["part"]]
            assert event.data["offset"] == len(known), f"{event.number}: a gap or a repeat"
            parts[event.data["part"]] = known + event.data["text"]
        for part in event.data.get("dropped", ()):
            parts.pop(part, None)
    return parts


@pytest.mark.parametrize("where", [{"OUTLAST_TEST_GRACE": "600"}, {"OUTLAST_TEST_PLACE": "another machine"}])
async def test_a_stream_goes_on_when_the_worker_behind_it_is_killed(
    workers: Workers, outlast: Outlast[Any, Any], where: dict[str, str]
) -> None:
    """P4, P5: read in one process, run in a second, which dies, and ended in a third: the text is exact.

    On the same machine it is seen at once that it is gone, on another one after a while.
    """
    first = await workers.start(**where)
    session = await outlast.sessions.create()
    turn = await session.send("talk")
    told: list[Event] = []
    async with session.events() as stream:
        async for event in stream:
            told.append(event)
            if event.type == "call.ended" and first.returncode is None and len(told) > 40:
                await workers.kill(first)
                await workers.start(OUTLAST_TEST_GRACE=where.get("OUTLAST_TEST_GRACE", "1"))
            if event.type in ("turn.completed", "turn.failed"):
                break
    outcome = await turn.outcome(wait=30)
    assert outcome.state == "completed"
    assert "".join(texts(told).values()) == WHOLE
    assert "".join(texts(await events_of(session)).values()) == WHOLE
    numbers = [event.number or 0 for event in told]
    assert numbers == sorted(set(numbers))
    resumed = [event.data["attempt"] for event in told if event.type == "turn.resumed"]
    assert resumed == [2]


async def test_calls_that_were_parked_on_a_killed_worker_are_told_truthfully_or_run_again(
    workers: Workers, outlast: Outlast[Any, Any]
) -> None:
    """P2, P3, B10: what may not be repeated is told as unknown, what may is run by another worker, within seconds."""
    first = await workers.start()
    surveyed, probed = await outlast.sessions.create(), await outlast.sessions.create()
    await (await surveyed.send("survey")).outcome()
    await (await probed.send("probe")).outcome()
    survey, probe = await only_task(surveyed), await only_task(probed)
    second = await workers.start()
    await workers.kill(first)
    async with asyncio.timeout(30):
        told = await outlast.tasks.wait(survey)
        assert (told.state, (told.error or {}).get("kind")) == ("failed", "interrupted")
        await until(lambda: second.pid in workers.effects("probe.began"))
    workers.open_gate()
    again = await outlast.tasks.wait(probe, seconds=30)
    assert (again.state, again.result, again.attempt) == ("succeeded", "probe done", 2)
    await surveyed.settled()
    await probed.settled()
    assert workers.effects("survey.began") == [first.pid]
    assert workers.effects("probe.began") == [first.pid, second.pid]
    assert len(await events_of(surveyed, "task.ended")) == len(await events_of(probed, "task.ended")) == 1


async def test_cancel_and_stop_reach_code_in_another_process(workers: Workers, outlast: Outlast[Any, Any]) -> None:
    """P6: asked here, it ends there."""
    worker = await workers.start()
    session = await outlast.sessions.create()
    await (await session.send("survey")).outcome()
    task = await only_task(session)
    assert (await outlast.tasks.cancel(task)).state == "canceled"
    assert workers.effects("survey.cancelled") == [worker.pid]
    await session.settled()
    other = await outlast.sessions.create()
    talking = await other.send("talk")
    await wait_for_event(other, "part.delta")
    await other.stop()
    assert (await talking.outcome(wait=10)).state == "stopped"


async def test_a_worker_that_was_frozen_is_refused_and_begins_anew(
    workers: Workers, outlast: Outlast[Any, Any]
) -> None:
    """P5: while it was away others went on; when it wakes it stops its code, and works under a new name."""
    first = await workers.start(**SOON)
    session = await outlast.sessions.create()
    await (await session.send("probe")).outcome()
    task = await only_task(session)
    names = await worker_names(outlast, first.pid)
    second = await workers.start(**SOON)
    first.send_signal(signal.SIGSTOP)
    await until(lambda: second.pid in workers.effects("probe.began"))
    first.send_signal(signal.SIGCONT)
    await until(lambda: first.pid in workers.effects("probe.cancelled"))
    workers.open_gate()
    ended = await outlast.tasks.wait(task, seconds=30)
    assert (ended.state, ended.attempt, ended.late_outcome) == ("succeeded", 2, None)
    assert workers.effects("probe.ended") == [second.pid]
    await session.settled()
    await workers.kill(second)
    renamed = await worker_names(outlast, first.pid)
    assert len(renamed) == 1
    assert renamed != names
    assert (await (await session.send("hello")).outcome(wait=30)).text == "Heard."


@pytest.mark.parametrize(("place", "tool"), [("start", "survey"), ("hook", "survey"), ("thread", "dig")])
async def test_a_worker_that_froze_before_its_tools_does_not_start_them_after_others_told_of_them(
    workers: Workers, outlast: Outlast[Any, Any], place: str, tool: str
) -> None:
    """P2, P5: the call was told as one that may have run or not; when the worker wakes, it must not run after all."""
    first = await workers.start(OUTLAST_TEST_FREEZE=place, **SOON)
    session = await outlast.sessions.create()
    turn = await session.send(tool)
    await until(lambda: workers.effects(f"{place}.froze") == [first.pid])
    second = await workers.start(**SOON)
    outcome = await turn.outcome(wait=60)
    assert (outcome.state, outcome.text) == ("completed", "It goes on.")
    assert await worker_names(outlast, first.pid) == []
    first.send_signal(signal.SIGCONT)
    await workers.kill(second)
    assert (await (await session.send("hello")).outcome(wait=60)).text == "Heard."
    first.terminate()
    assert await first.wait() == 0
    assert workers.effects(f"{tool}.began") == []


async def test_a_tool_that_blocks_the_event_loop_does_not_look_like_death(
    workers: Workers, outlast: Outlast[Any, Any]
) -> None:
    """P5: no false takeover."""
    first = await workers.start()
    session = await outlast.sessions.create()
    turn = await session.send("block 4")
    await until(lambda: workers.effects("block.began") == [first.pid])
    await workers.start()
    outcome = await turn.outcome(wait=30)
    assert (outcome.state, outcome.text) == ("completed", "It goes on.")
    assert await events_of(session, "turn.resumed") == []


@pytest.mark.parametrize("how", ["die", "seize"])
async def test_a_turn_that_ends_each_worker_is_given_to_so_many_and_no_more(
    workers: Workers, outlast: Outlast[Any, Any], how: str
) -> None:
    """P4: whether they die of it or stand still with all their threads. Others are answered meanwhile and after it."""
    started = [await workers.start(OUTLAST_MAX_CLAIMS="2", **SOON) for _ in range(3)]
    session, other = await outlast.sessions.create(), await outlast.owned_by("ada").create()
    turn = await session.send(how)
    await until(lambda: len(workers.effects(how)) == 1)
    assert (await other.ask("hello", wait=60)).text == "Heard."
    outcome = await turn.outcome(wait=60)
    assert (outcome.state, (outcome.error or {})["kind"], outcome.attempt) == ("failed", "crash_loop", 3)
    tried = workers.effects(how)
    assert len(tried) == len(set(tried)) == 2
    assert (await other.ask("hello", wait=60)).text == "Heard."
    left = [each for each in started if each.pid not in tried]
    assert [each.returncode for each in left] == [None]


async def test_a_worker_that_is_sent_away_hands_over(workers: Workers, outlast: Outlast[Any, Any]) -> None:
    """DESIGN 8, deploys: turns go on elsewhere from a boundary, and nobody waits to notice that it left."""
    first = await workers.start()
    talking, probed = await outlast.sessions.create(), await outlast.sessions.create()
    await (await probed.send("probe")).outcome()
    turn = await talking.send("talk")
    await wait_for_event(talking, "call.ended")
    second = await workers.start()
    first.terminate()
    outcome = await turn.outcome(wait=30)
    assert outcome.state == "completed"
    assert "".join(texts(await events_of(talking)).values()) == WHOLE
    assert await first.wait() == 0
    await until(lambda: second.pid in workers.effects("probe.began"))
    workers.open_gate()
    assert (await outlast.tasks.wait(await only_task(probed), seconds=30)).state == "succeeded"
    assert await worker_names(outlast, first.pid) == []


async def test_connections_that_are_cut_come_back_and_nothing_is_taken_over(
    workers: Workers, outlast: Outlast[Any, Any]
) -> None:
    """P4, P5: presence, jobs, signals and the pool of every process, all at once, in the middle of a turn."""
    await workers.start()
    session = await outlast.sessions.create()
    turn = await session.send("talk")
    await wait_for_event(session, "call.ended")
    await cut_all(outlast)
    assert (await turn.outcome(wait=30)).state == "completed"
    assert "".join(texts(await events_of(session)).values()) == WHOLE
    assert await events_of(session, "turn.resumed") == []
    assert (await (await session.send("hello")).outcome(wait=30)).text == "Heard."


async def worker_names(outlast: Outlast[Any, Any], pid: int | None) -> list[str]:
    found = sa.text("SELECT id FROM workers WHERE pid = :pid")
    return await outlast.database.read(lambda connection: list(connection.execute(found, {"pid": pid}).scalars()))


async def cut_all(outlast: Outlast[Any, Any]) -> None:
    cut = sa.text(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    await outlast.database.read(lambda connection: connection.execute(cut).all())


async def test_a_worker_gives_numbers_of_what_it_does(workers: Workers, outlast: Outlast[Any, Any]) -> None:
    """I2: its turns are told where it runs, and not at the servers; an address that is taken is said."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "outlast", "worker", APP, "--metrics-port", str(port)),
            env=workers.environment,
            stderr=subprocess.PIPE,
        )
        _, said = await refused.communicate()
        assert (refused.returncode, b"cannot be used for metrics" in said) == (1, True)
    await workers.start("--metrics-port", str(port))
    await (await (await outlast.sessions.create()).send("hello")).outcome(wait=30)
    async with httpx2.AsyncClient() as client:
        numbers = (await client.get(f"http://127.0.0.1:{port}/metrics")).text
    assert 'outlast_turns_ended_total{state="completed"} 1.0' in numbers
    assert "outlast_loop_stalls_total 0.0" in numbers
    assert "outlast_http" not in numbers
