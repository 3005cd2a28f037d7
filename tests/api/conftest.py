"""Fixtures of the HTTP tests."""

from pathlib import Path

import pytest

from tests.support.turns.runtime import Runtime


@pytest.fixture
def runtime(tmp_path: Path) -> Runtime:
    """Opens runtimes on a SQLite file of this test's own; opening it again is a restart."""
    return Runtime(tmp_path / "outlast.db")
