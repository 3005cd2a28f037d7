"""Fixtures of the manual."""

from pathlib import Path

import pytest

from tests.support.runtime import Runtime

BOTH = (
    "test_turns",
    "test_stop",
    "test_parked_calls",
    "test_wakes",
    "test_cancel",
    "test_check_background",
)
"""Chapters that are shown on both engines. The others run on the embedded one: what they tell is not the engine's."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "runtime" in metafunc.fixturenames:
        is_on_both = Path(metafunc.definition.path).stem in BOTH
        metafunc.parametrize("runtime", ["sqlite", "postgresql"] if is_on_both else ["sqlite"], indirect=True)


@pytest.fixture
def runtime(request: pytest.FixtureRequest, tmp_path: Path) -> Runtime:
    """Opens runtimes on a database of this test's own; opening it again is a restart."""
    if request.param == "sqlite":
        return Runtime(tmp_path / "outlast.db")
    return Runtime(request.getfixturevalue("ready_postgres_url"), files=str(tmp_path / "files"))
