"""`make test` finds the browser that tests drive, installs it for root, or says what to do; a test has two tries."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def bin(tmp_path: Path) -> Path:
    """All that a shell finds; `id` and `apt-get` only say what they were asked."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def make_browser(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    make = next(path for each in os.environ["PATH"].split(":") if (path := Path(each) / "make").exists())
    command = [make, "--silent", "browser", f"PYTHON={sys.executable}"]
    env = {"PATH": str(folder), **environment}
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120)


def test_a_browser_that_is_there_is_not_talked_about(bin: Path) -> None:
    program(bin, "chromium", "exit 9")
    done = make_browser(bin)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_root_gets_one_installed(bin: Path) -> None:
    program(bin, "id", "echo 0")
    program(bin, "apt-get", f'echo "$@" >> {bin}/asked')
    done = make_browser(bin)
    assert (done.returncode, done.stderr) == (0, "")
    assert "install" in (bin / "asked").read_text()
    assert (bin / "asked").read_text().split()[-1] == "chromium"


def test_everybody_else_is_told_what_to_do(bin: Path) -> None:
    program(bin, "id", "echo 1000")
    program(bin, "apt-get", f'echo "$@" >> {bin}/asked')
    done = make_browser(bin)
    assert done.returncode != 0
    assert "apt-get install chromium" in done.stderr
    assert "OUTLAST_SKIP_BROWSER=1" in done.stderr
    assert not (bin / "asked").exists()
    assert make_browser(bin, OUTLAST_SKIP_BROWSER="1").returncode == 0


def test_the_help_says_what_the_fast_check_leaves_out() -> None:
    command = ["make", "--silent", "help", f"PYTHON={sys.executable}"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120).stdout
    (line,) = [each for each in said.splitlines() if "check-fast" in each]
    for left_out in ("types of src only", "units, manual, behaviour only", "no PostgreSQL, crashes, odd agents"):
        assert left_out in line


@pytest.mark.parametrize("target", ["test", "check", "check-fast"])
def test_a_test_that_fails_has_a_second_try(target: str) -> None:
    """As the last thing that the target does, so that what pytest says last stands last."""
    command = ["make", "--dry-run", "--silent", "--old-file=.venv/.ready", target, f"PYTHON={sys.executable}"]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=30).stdout
    *before, last = [each for each in made.splitlines() if ".venv/bin/" in each]
    assert last.startswith(".venv/bin/python -m tests.run -n ")
    assert not any("pytest" in each or "tests.run" in each for each in before)
