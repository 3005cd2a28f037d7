"""Instants survive the store exactly."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given, settings
from hypothesis import strategies as st

from outlast.clock import ManualClock, SystemClock, from_microseconds, to_microseconds

ZONES = st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45))])
INSTANTS = st.datetimes(datetime.min + timedelta(days=1), datetime.max - timedelta(days=1), timezones=ZONES)
"""All that have a date in UTC too."""


@settings(deadline=None, max_examples=100)
@given(INSTANTS)
def test_an_instant_comes_back(instant: datetime) -> None:
    assert from_microseconds(to_microseconds(instant)) == instant


def test_the_system_clock_is_aware() -> None:
    assert SystemClock().now().utcoffset() == timedelta(0)


def test_a_manual_clock_moves_only_when_told() -> None:
    clock = ManualClock()
    before = clock.now()
    assert clock.now() == before
    clock.advance(timedelta(minutes=3))
    assert clock.now() - before == timedelta(minutes=3)
