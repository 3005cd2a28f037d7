"""A cluster on PostgreSQL whose processes are killed, frozen and stalled: a small share of what `make chaos` does."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from chaos.cluster.faults import WEIGHTS
from chaos.cluster.judge import ALL_KINDS

FAULTS = 9
"""Each kind once, but for the one that freezes an API process."""


WORK = (
    "spawned",
    "answers of sub-sessions",
    "questions answered",
    "operations completed",
    "second answers turned away",
)


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_nothing_is_lost_or_repeated_when_a_cluster_breaks(tmp_path: Path) -> None:
    """P1 to P5, A13, B3, B8, B9, C1: after nine faults everything accepted is there, once, and so is what people said;
    nobody who lived was taken for dead.
    """
    load = ["--rate", "4", "--clients", "20", "--gap", "1", "--freeze", "12", "--throw-away"]
    command = ["-m", "chaos.cluster", "--faults", str(FAULTS), "--seed", "7", *load, "--results", str(tmp_path)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, "--name", "few", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()

    assert process.returncode == 0, output.decode()
    report = json.loads((tmp_path / "cluster-few.json").read_text())
    assert report["faults"] == FAULTS
    assert {report[total] for total in ALL_KINDS} == {0}
    assert report["faults_by_kind"].keys() == WEIGHTS.keys() - {"freeze api"}
    assert {"turns", "tasks", "readers", "schedules"} <= report["seen"].keys()
    assert [each for each in WORK if not report["seen"][each]] == []
