"""Garbage collection of a server."""

import gc
import json
from collections import Counter
from collections.abc import Iterator

import pytest

from outlast.cli.server.memory import freeze_loaded


@pytest.fixture
def collections() -> Iterator[Counter[int]]:
    """How often there was one, by generation."""
    seen: Counter[int] = Counter()

    def count(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            seen[info["generation"]] += 1

    thresholds = gc.get_threshold()
    gc.callbacks.append(count)
    try:
        yield seen
    finally:
        gc.callbacks.remove(count)
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def test_a_document_that_is_parsed_sets_off_no_collection_of_everything(collections: Counter[int]) -> None:
    """G3: that one goes through all objects, and nothing else in the process runs meanwhile."""
    text = json.dumps([{"parts": [{"content": "x"}]}] * 50_000)
    gc.collect()
    freeze_loaded()
    collections.clear()
    parsed = json.loads(text)
    assert len(parsed) == 50_000
    assert collections[0] > 0
    assert collections[2] == 0, collections
