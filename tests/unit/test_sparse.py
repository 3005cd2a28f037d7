"""Log lines that strangers can cause."""

import logging

import pytest

from outlast.values import sparse
from outlast.values.sparse import Sparse, SparseFilter


def test_a_few_are_written_and_the_rest_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """G3: a flood of bad requests does not fill a disk."""
    now = [100.0]
    monkeypatch.setattr(sparse, "monotonic", lambda: now[0])
    lines = Sparse(most=3, seconds=10)
    assert [lines.left_out("bad") for _ in range(1_000)] == [0, 0, 0, *[None] * 997]
    assert lines.left_out("other") == 0
    now[0] += 11
    assert lines.left_out("bad") == 997
    assert lines.left_out("bad") == 0


def test_kinds_are_bounded() -> None:
    lines = Sparse()
    for at in range(5_000):
        assert lines.left_out(at) == 0


def test_lines_of_a_library_are_few(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("outlast.test.library")
    logger.addFilter(SparseFilter())
    for _ in range(200):
        logger.warning("Invalid HTTP request received.")
    assert len(caplog.records) == 20
