"""`python -m tests.run [ARGUMENT ...]`: runs pytest; a test that fails is run once more, alone, and named loudly.

Tests wait for real processes and servers, and a machine that does much else at the time can make one of them late. So
only a test that fails twice fails the run. Everything else that goes wrong does so at once: a module that cannot be
collected, nothing to run, a crash of pytest or of a process of it, an interrupt.
"""

import json
import subprocess
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

FAILED = 1
"""Exit code of pytest when tests failed. Others but 0 mean that it could not do its work."""


def main(arguments: Sequence[str]) -> int:
    # What earlier runs have left in `.pytest_cache` says nothing about this one.
    with TemporaryDirectory(prefix="outlast-tests-") as cache:
        code = _pytest(cache, "-p", "tests.run", *arguments)
        failed = _failed(Path(cache)) if code == FAILED else []
        if not failed:
            return code
        for each in failed:
            print(f"FAILED ONCE, is run again alone: {each}", flush=True)
        # Named one by one: one that is not found again is an error, and no other passes in its place.
        again = ("--last-failed", "--last-failed-no-failures", "none", "-p", "no:randomly", "-n", "0")
        return _pytest(cache, *again, *failed)


def _pytest(cache: str, *arguments: str) -> int:
    command = [sys.executable, "-m", "pytest", *arguments, "-o", f"cache_dir={cache}"]
    return subprocess.run(command, check=False).returncode


def _failed(cache: Path) -> list[str]:
    """The tests that failed, if that is all that went wrong in a run that came to its end."""
    try:
        return json.loads((cache / "failed.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []


class FailedTests:
    """Writes down which tests failed, unless something else went wrong too."""

    def __init__(self, config: pytest.Config) -> None:
        self._path = Path(config.getini("cache_dir")) / "failed.json"
        self._failed: set[str] = set()
        self._is_more = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.add(report.nodeid)
            # Of a test whose process ended nobody knows at which step.
            self._is_more = self._is_more or report.when not in ("setup", "call", "teardown")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._is_more = self._is_more or report.failed

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None]:
        # After all others: a plugin that fails at the end has been heard by now.
        yield
        if self._failed and not self._is_more:
            self._path.write_text(json.dumps(sorted(self._failed)), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailedTests(config), "failed-tests")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
