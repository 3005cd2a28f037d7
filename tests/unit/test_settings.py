"""Settings from variables: what does not fit is named, with what to write."""

import re
from datetime import timedelta

import pytest

from outlast.errors import InvalidInput
from outlast.settings import from_environment


@pytest.mark.parametrize("written", ["90", "90.0", "PT1M30S", "0:01:30"])
def test_a_duration_is_seconds_or_says_what_it_is(monkeypatch: pytest.MonkeyPatch, written: str) -> None:
    monkeypatch.setenv("OUTLAST_BUDGET", written)
    assert from_environment().budget == timedelta(seconds=90)


def test_nothing_is_said_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTLAST_BUDGET", "None")
    assert from_environment().budget is None


def test_every_variable_that_does_not_fit_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTLAST_DRAIN", "2 s")
    monkeypatch.setenv("OUTLAST_MAX_INBOX", "0")
    with pytest.raises(InvalidInput) as raised:
        from_environment()
    assert re.search(r"OUTLAST_DRAIN=2 s: [^;]*: write seconds", str(raised.value))
    assert "OUTLAST_MAX_INBOX=0: " in str(raised.value)
