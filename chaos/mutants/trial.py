"""Trying a mutant: on a copy of the tree, with the test that must fail there."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from chaos.mutants.mutant import Chaos, Edit, Mutant, Test

ROOT = Path(__file__).parents[2]
_COPIED = ("src", "tests", "chaos", "pyproject.toml", "README.md")
_SECONDS = 240
_PYTEST_FAILED = 1


@dataclass(frozen=True, slots=True)
class Verdict:
    """`is_caught` and, if not, why."""

    mutant: Mutant
    is_caught: bool
    why: str = ""


@contextmanager
def copied() -> Generator[Path]:
    """A copy of the tree without anything that was built or cached."""
    with TemporaryDirectory(prefix="outlast-mutant-") as folder:
        copy = Path(folder)
        for name in _COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__", "results"))
            elif source.exists():
                shutil.copy(source, copy / name)
        yield copy


def misfit(mutant: Mutant, root: Path = ROOT) -> str | None:
    """Why a mutant does not fit the code, if it does not."""
    for edit in mutant.edits:
        count = (root / edit.file).read_text().count(edit.old)
        if count != 1:
            return f"its code stands {count} times in {edit.file}"
    return None


def apply(edits: Sequence[Edit], copy: Path) -> None:
    for edit in edits:
        path = copy / edit.file
        path.write_text(path.read_text().replace(edit.old, edit.new))


def try_out(mutant: Mutant) -> Verdict:
    """Break a copy and run what must notice."""
    why = misfit(mutant)
    if why is not None:
        return Verdict(mutant, False, why)
    with copied() as copy:
        apply(mutant.edits, copy)
        code, output = run(mutant.caught_by, copy)
        return _verdict(mutant, code, output, copy)


def run(check: Test | Chaos, copy: Path) -> tuple[int | None, str]:
    """Exit code and output of a check on a copy; no code when it did not come to an end."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(copy / "src"), str(copy)])}
    if isinstance(check, Chaos):
        # What a failing round keeps for people to look at goes with the copy.
        environment["TMPDIR"] = str(copy)
    # Into a file, and all in a group of their own: what a check leaves behind when it is cut off, such as a frozen
    # worker, would hold a pipe open for ever.
    with (copy / "check.log").open("w+", errors="replace") as output:
        process = subprocess.Popen(
            [sys.executable, *check.command],
            cwd=copy,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        return code, output.read()


def _verdict(mutant: Mutant, code: int | None, output: str, copy: Path) -> Verdict:
    if code is None:
        return Verdict(mutant, False, "what should notice did not end")
    match mutant.caught_by:
        case Test():
            is_caught = code == _PYTEST_FAILED and (" failed" in output or "+ Timeout +" in output)
        case Chaos(finds=total):
            report = copy / "latest.json"
            is_caught = report.exists() and json.loads(report.read_text())[total] > 0
    return Verdict(mutant, is_caught, "" if is_caught else f"exit code {code}: {output[-600:]}")
