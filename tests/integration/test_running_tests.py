"""`python -m tests.run`: a test that fails is run once more, alone; what is not a test that failed fails at once."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FLAKY = """
from pathlib import Path

def test_flaky():
    seen = Path("seen")
    is_first = not seen.exists()
    seen.touch()
    assert not is_first
"""
SOUND = "def test_sound():\n    pass\n"
BROKEN = "def test_broken():\n    assert False\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Tests of their own, which another run has left a cache with: it tells of a test that passes."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_sound.py").write_text(SOUND)
    cache = tmp_path / ".pytest_cache" / "v" / "cache"
    cache.mkdir(parents=True)
    (cache / "lastfailed").write_text(json.dumps({"test_sound.py::test_sound": True}))
    return tmp_path


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.run", *arguments],
        cwd=project,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_ADDOPTS": "-p xdist",
        },
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def closing_line(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout.strip().splitlines()[-1]


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_test_that_fails_once_is_named_and_run_again_alone(project: Path, workers: str) -> None:
    (project / "test_flaky.py").write_text(FLAKY)
    done = run(project, "-n", workers)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAILED ONCE, is run again alone: test_flaky.py::test_flaky\n" in done.stdout
    assert "1 failed, 1 passed" in done.stdout
    assert re.search(r"\b1 passed in ", closing_line(done))


def test_a_test_that_fails_twice_fails_the_run(project: Path) -> None:
    (project / "test_broken.py").write_text(BROKEN)
    (project / "test_flaky.py").write_text(FLAKY)
    done = run(project, "-n", "2")
    assert done.returncode == 1
    assert "1 failed, 1 passed in " in closing_line(done)


def test_a_run_without_a_failure_ends_as_pytest_ends_it(project: Path) -> None:
    done = run(project, "-n", "2")
    assert done.returncode == 0
    assert "run again" not in done.stdout
    assert re.search(r"\b1 passed in ", closing_line(done))


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_module_that_cannot_be_collected_fails_the_run(project: Path, workers: str) -> None:
    """Also one that could be the next time, and beside a test that then passes."""
    (project / "test_flaky.py").write_text(FLAKY)
    (project / "test_module.py").write_text(
        f"from pathlib import Path\nif len(list(Path().glob('once-*'))) < {max(1, int(workers))}:\n"
        "    import os\n    Path(f'once-{os.getpid()}').touch()\n    raise RuntimeError('not yet')\n" + SOUND
    )
    done = run(project, "-n", workers, "--continue-on-collection-errors")
    assert done.returncode != 0, done.stdout
    assert "run again" not in done.stdout


def test_a_process_that_a_test_ends_fails_the_run(project: Path) -> None:
    (project / "test_ends.py").write_text(
        FLAKY.replace("assert not is_first", "if is_first: __import__('os')._exit(1)")
    )
    done = run(project, "-n", "1")
    assert done.returncode == 1
    assert "crashed while running" in done.stdout
    assert "run again" not in done.stdout


def test_no_tests_fail_the_run(project: Path) -> None:
    assert run(project, "-k", "nothing_is_called_so").returncode == 5


@pytest.mark.parametrize(
    "hook",
    [
        "def pytest_configure():\n    import os\n    os._exit(1)\n",
        "def pytest_collection_finish():\n    import os\n    os._exit(1)\n",
        "def pytest_runtest_logreport():\n    raise RuntimeError('a plugin fails')\n",
        "def pytest_sessionfinish():\n    raise RuntimeError('a plugin fails')\n",
        "raise RuntimeError('a plugin fails')\n",
    ],
)
def test_a_crash_of_pytest_fails_the_run(project: Path, hook: str) -> None:
    """With exit code 1 too, which says that a test failed: then none is known to have."""
    (project / "test_flaky.py").write_text(FLAKY)
    (project / "conftest.py").write_text(hook)
    done = run(project)
    assert done.returncode != 0, done.stdout
    assert "run again" not in done.stdout


def test_a_test_that_is_not_found_again_fails_the_run(project: Path) -> None:
    (project / "test_once.py").write_text(
        "from pathlib import Path\n\nif not Path('seen').exists():\n"
        "    def test_once():\n        Path('seen').touch()\n        assert False\n"
    )
    done = run(project)
    assert done.returncode not in (0, 1)
    assert "not found" in done.stdout + done.stderr
