"""Settings from variables: what does not fit is named, with what to write."""

import re
from datetime import timedelta

import pytest

from outlast.errors import InvalidInput
from outlast.settings import Settings, from_environment


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


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("OUTLAST_BUDGETT", "did you mean OUTLAST_BUDGET?"),
        ("outlast_max_inboxes", "did you mean OUTLAST_MAX_INBOX?"),
        ("OUTLAST_TOKN", "did you mean OUTLAST_TOKEN?"),
        ("OUTLAST_XYZZY", "the reference of settings lists those that are."),
    ],
)
def test_a_variable_that_means_nothing_is_told_once_without_its_value(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str, advice: str
) -> None:
    """K5: whoever makes the settings, from variables alone or with arguments."""
    monkeypatch.setenv(name, "hunter2")
    Settings(budget=timedelta(seconds=3))
    from_environment()
    assert caplog.messages == [f"{name} is not a setting of Outlast: {advice}"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OUTLAST_BUDGET", "3"),
        ("outlast_budget", "3"),
        ("OUTLAST_URL", "http://127.0.0.1:8000"),
        ("OUTLAST_TOKEN", "olk_1"),
        ("OUTLAST_SKIP_BROWSER", "1"),
        ("OUTLAST_TEST_GRACE", "1"),
        ("OUTLAST_PORT", "tcp://10.0.0.1:8000"),
        ("OUTLAST_PORT_8000_TCP_ADDR", "10.0.0.1"),
        ("OUTLAST_WEB_SERVICE_HOST", "10.0.0.1"),
        ("OUTLASTING", "1"),
    ],
)
def test_variables_of_others_are_not_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str, value: str
) -> None:
    """Those of the command and of this project's tests, and those that Kubernetes makes of a service's name."""
    monkeypatch.setenv(name, value)
    from_environment()
    assert caplog.messages == []
