"""Real workers killed at named places and at random instants: a small share of what `make chaos` does."""

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from chaos.evidence import LogEvent
from chaos.judge import KINDS
from chaos.mutants.__main__ import part_of
from chaos.mutants.catalogue import MUTANTS
from chaos.mutants.mutant import Test as Check
from chaos.mutants.trial import ROOT, apply, misfit
from chaos.streams import faults

KILLS = 20
SEEN = (
    "tasks canceled",
    "wakes withdrawn",
    "effects told as unknown",
    "spawned",
    "spawned that waited for a place",
    "answers of sub-sessions",
    "sub-sessions two levels down",
    "questions answered",
    "second answers turned away",
    "approvals",
    "refusals",
    "second decisions turned away",
    "operations completed",
    "second completions without effect",
    "fires of messages",
    "fires of tools",
)
"""Without any of it a run would prove nothing about it."""


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_nothing_is_lost_or_repeated_when_workers_are_killed(tmp_path: Path) -> None:
    """P1 to P5: after 20 kills every accepted input, call, end and event is there, once; what was set going on purpose,
    asked, approved, completed and scheduled too, and it was killed at each place of these.
    """
    command = ["-m", "chaos", "--kills", str(KILLS), "--seed", "43", "--results", str(tmp_path), "--name", "few"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()

    assert process.returncode == 0, output.decode()
    report = json.loads((tmp_path / "few.json").read_text())
    assert report["kills"] >= KILLS
    assert {report[total] for total in KINDS} == {0}
    assert report["never_hit"] == []
    assert {name for name in SEEN if not report["seen"].get(name)} == set()


LOG = [
    LogEvent(1, "turn.started", "t", {"attempt": 1}),
    LogEvent(2, "part.started", "t", {"part": "1.1.0"}),
    LogEvent(5, "part.delta", "t", {"part": "1.1.0", "offset": 0, "text": "The river", "first": 3}),
    LogEvent(6, "part.ended", "t", {"part": "1.1.0"}),
    LogEvent(9, "turn.resumed", "t", {"attempt": 2, "dropped": ["1.2.0"]}),
]
LIVE = [
    *LOG[:2],
    LogEvent(3, "part.delta", "t", {"part": "1.1.0", "offset": 0, "text": "The "}),
    LogEvent(5, "part.delta", "t", {"part": "1.1.0", "offset": 4, "text": "river"}),
    LOG[3],
    LogEvent(8, "part.delta", "t", {"part": "1.2.0", "offset": 0, "text": "lost"}),
    LOG[4],
]


def test_a_reader_of_the_parts_that_were_folded_or_dropped_is_right() -> None:
    """P4: live pieces and their fold are the same text, and what was dropped does not count."""
    assert list(faults(LOG, 0, LIVE)) == []
    assert list(faults(LOG, 0, LOG)) == []
    assert list(faults(LOG, 3, LIVE[3:])) == []


@pytest.mark.parametrize(
    "told",
    [
        pytest.param([*LIVE[:3], *LIVE[4:]], id="a piece is missing"),
        pytest.param([*LIVE[:3], *LIVE[2:]], id="a piece came twice"),
        pytest.param(LIVE[:-1], id="an event is missing"),
        pytest.param(LIVE[1:], id="the first event is missing"),
        pytest.param([*LIVE[:4], LIVE[5], *LIVE[4:5], LIVE[6]], id="another order"),
        pytest.param([*LIVE[:4], *LIVE[5:]], id="the end of a part is missing"),
        pytest.param([*LIVE[:3], LOG[2], *LIVE[4:]], id="a fold that was not cut"),
    ],
)
def test_a_reader_that_missed_something_is_found(told: list[LogEvent]) -> None:
    """P4: the comparison itself can fail."""
    assert list(faults(LOG, 0, told))


def test_every_mutant_fits_the_code() -> None:
    """A mutant whose code has moved would no longer say anything: adapt it to the code."""
    assert {mutant.name: misfit(mutant) for mutant in MUTANTS if misfit(mutant)} == {}
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


def test_every_mutant_is_sound_python(tmp_path: Path) -> None:
    """One that fails for a name that is not there would be caught by anything."""
    for number, mutant in enumerate(MUTANTS):
        copy = tmp_path / str(number)
        for file in {edit.file for edit in mutant.edits}:
            (copy / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, copy / file)
        apply(mutant.edits, copy)
    # E9: does not parse; F821: an unknown name.
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select", "E9,F821", str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr


def test_what_catches_a_mutant_is_there() -> None:
    """A test that has moved would catch nothing."""
    nodes = [mutant.caught_by.node for mutant in MUTANTS if isinstance(mutant.caught_by, Check)]
    for node in nodes:
        file, _, name = node.partition("[")[0].partition("::")
        assert f"def {name}(" in (ROOT / file).read_text(), node


def test_the_parts_of_a_run_of_mutants_are_all_of_them_once() -> None:
    """A run of hours can be split: `python -m chaos.mutants --part 2/4`."""
    parts = [part_of(MUTANTS, number, 4) for number in (1, 2, 3, 4)]
    assert sorted(each.name for part in parts for each in part) == sorted(each.name for each in MUTANTS)
