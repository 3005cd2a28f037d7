"""Fixtures of the manual."""

from pathlib import Path

import pytest

from tests.support.runtime import Runtime


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every chapter is true of both engines."""
    if "runtime" in metafunc.fixturenames:
        metafunc.parametrize("runtime", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture
def runtime(request: pytest.FixtureRequest, tmp_path: Path) -> Runtime:
    """Opens runtimes on a database of this test's own; opening it again is a restart."""
    if request.param == "sqlite":
        return Runtime(tmp_path / "outlast.db")
    return Runtime(request.getfixturevalue("ready_postgres_url"), files=str(tmp_path / "files"))


@pytest.fixture
def embedded(tmp_path: Path) -> Runtime:
    """For what is only true of one process with its file: its clock can be set, and a child can be killed on it."""
    return Runtime(tmp_path / "outlast.db")
