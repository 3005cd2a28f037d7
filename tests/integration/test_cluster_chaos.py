"""A cluster on PostgreSQL whose processes are killed, frozen and stalled: a small share of what `make chaos` does."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from chaos.cluster.faults import WEIGHTS, plan
from chaos.cluster.judge import Lives, hanging_faults, recoveries, takeover_faults
from chaos.evidence import Evidence, LogEvent, Row, SessionRows
from chaos.ledger import Entry

FAULTS = 9
"""Each kind once, but for the one that freezes an API process."""


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_nothing_is_lost_or_repeated_when_a_cluster_breaks(tmp_path: Path) -> None:
    """P1 to P5: after nine faults everything accepted is there, once, and nobody who lived was taken for dead."""
    load = ["--rate", "5", "--clients", "5", "--gap", "1", "--freeze", "12", "--throw-away"]
    command = ["-m", "chaos.cluster", "--faults", str(FAULTS), "--seed", "7", *load, "--results", str(tmp_path)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, "--name", "few", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()

    assert process.returncode == 0, output.decode()
    report = json.loads((tmp_path / "cluster-few.json").read_text())
    assert report["faults"] == FAULTS
    totals = ("lost", "repeated", "double_wakes", "hanging", "untold", "streams", "runners", "false_takeovers")
    assert {report[total] for total in totals} == {0}
    assert report["faults_by_kind"].keys() == WEIGHTS.keys() - {"freeze api"}
    assert {"turns", "tasks", "readers"} <= report["seen"].keys()


def test_the_faults_follow_from_the_seed() -> None:
    """What a run found can be looked for again: the same faults in the same order, each kind among the first."""
    assert plan(7, 50) == plan(7, 50) != plan(8, 50)
    assert set(plan(7, len(WEIGHTS))) == WEIGHTS.keys()


SECOND = 1_000_000
KILLED = 100 * SECOND
LIVES = Lives(
    names={"a": (1, 0), "b": (2, 0), "c": (3, 0)},
    deaths={1: (KILLED, KILLED + 1_000)},
    freezes={3: [(200 * SECOND, 212 * SECOND)]},
)
"""Process 1 is killed, 2 lives, 3 is frozen for twelve seconds."""


def evidence(*claims: tuple[str, int], tasks: list[Row] | None = None, ledger: list[Entry] | None = None) -> Evidence:
    """A turn that was claimed by these workers at these times."""
    events = [
        LogEvent(at, "turn.resumed" if at else "turn.started", "t", {"worker_id": worker_id}, at_us)
        for at, (worker_id, at_us) in enumerate(claims)
    ]
    return Evidence({"s": SessionRows({"id": "s"}, tasks=tasks or [], events=events)}, ledger or [], [], [], [], {})


def test_a_turn_of_a_killed_worker_goes_on_elsewhere() -> None:
    """P5: that is no false takeover, and the time until then is counted from the kill."""
    found = evidence(("a", KILLED - SECOND), ("b", KILLED + 1_500_000))
    assert list(takeover_faults(found, LIVES)) == []
    assert list(recoveries(found, LIVES)) == [1.5]


@pytest.mark.parametrize(
    "claims",
    [
        pytest.param([("b", 1), ("c", 2)], id="from one that lived"),
        pytest.param([("a", 1), ("b", KILLED - 1)], id="before the kill"),
        pytest.param([("c", 1), ("b", 205 * SECOND)], id="before the silence was long enough"),
    ],
)
def test_a_turn_that_was_taken_from_a_living_worker_is_found(claims: list[tuple[str, int]]) -> None:
    """P5: the judge can fail."""
    assert [fault.kind for fault in takeover_faults(evidence(*claims), LIVES)] == ["false_takeovers"]


def test_a_turn_may_be_taken_from_a_worker_that_was_silent_for_too_long() -> None:
    """P5: a frozen process cannot be told from a dead one."""
    assert list(takeover_faults(evidence(("c", 1), ("b", 211 * SECOND)), LIVES)) == []


def test_a_task_that_was_taken_from_a_living_worker_is_found() -> None:
    """P5: run again by another although its process lived; after a kill that is as it should be."""
    task: Row = {"id": "k", "call_id": "m1", "attempt": 2, "error": None, "ended_at": KILLED + SECOND}
    for process, kinds in ((1, []), (2, ["false_takeovers"])):
        found = evidence(tasks=[task], ledger=[Entry("m1", "key", "scan", "before", process, 1)])
        assert [fault.kind for fault in takeover_faults(found, LIVES)] == kinds


def test_a_worker_that_was_taken_for_dead_is_found() -> None:
    """P5: a second name means that others gave away what it ran; only the frozen one may need it."""
    names = {**LIVES.names, "c2": (3, 213 * SECOND)}
    assert list(takeover_faults(evidence(), Lives(names, LIVES.deaths, LIVES.freezes))) == []
    names["b2"] = (2, 50 * SECOND)
    [fault] = takeover_faults(evidence(), Lives(names, LIVES.deaths, LIVES.freezes))
    assert fault.kind == "false_takeovers"


def test_a_reader_that_heard_of_an_event_much_too_late_is_found() -> None:
    """P4: it hung, although it has everything in the end."""
    found = evidence()
    found.readers = [{"reader": "r", "session": "s", "lags": [0.1, 70.0]}, {"reader": "q", "session": "s", "lags": []}]
    assert [fault.kind for fault in hanging_faults(found)] == ["hanging"]
