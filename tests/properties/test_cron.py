"""Cron over changes of the clock, compared with an independent look at every minute."""

import os
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from outlast.timing import cron
from tests.support.moments.cron_scan import changes_of, scan

CASES = int(os.environ.get("OUTLAST_CRON_CASES", "200"))
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
"""A failure is shown as it was found: making it smaller takes minutes."""
ZONES = (
    *("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Europe/London", "America/Sao_Paulo"),
    *("Asia/Kolkata", "Africa/Casablanca", "America/St_Johns", "Pacific/Chatham", "UTC", "Asia/Tehran"),
)


def field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    pair = st.tuples(number, number).map(sorted)
    spans = pair.map(lambda each: f"{each[0]}-{each[1]}")
    steps = st.tuples(pair.filter(lambda each: each[0] < each[1]), st.integers(1, 20)).map(
        lambda each: f"{each[0][0]}-{each[0][1]}/{each[1]}"
    )
    stars = st.integers(1, 30).map(lambda each: f"*/{each}")
    terms = st.one_of(number.map(str), spans, steps)
    lists = st.lists(terms, min_size=1, max_size=3).map(",".join)
    return st.one_of(st.just("*"), st.just("*"), stars, lists)


EXPRESSIONS = st.tuples(
    field(0, 59),
    field(0, 23),
    st.one_of(st.just("*"), field(1, 28)),
    st.just("*"),
    st.one_of(st.just("*"), field(0, 6)),
).map(" ".join)


@st.composite
def stretches(draw: st.DrawFn) -> tuple[str, datetime, datetime]:
    """Up to fourteen days around a change of the clock, where the zone has one in that year."""
    zone, year = draw(st.sampled_from(ZONES)), draw(st.integers(2018, 2028))
    around = draw(st.sampled_from(changes_of(zone, year) or [datetime(year, 6, 1, tzinfo=UTC)]))
    before, length = draw(st.integers(0, 1440)), draw(st.integers(1, 2 * 1440))
    if draw(st.integers(0, 19)) == 0:
        before, length = 7 * 1440, 14 * 1440
    begin = around - timedelta(minutes=before)
    return zone, begin, begin + timedelta(minutes=length)


HALF_AN_HOUR = "Australia/Lord_Howe", datetime(2018, 3, 31, 12, tzinfo=UTC), datetime(2018, 4, 1, tzinfo=UTC)


@example("* 2 * * *", HALF_AN_HOUR)
@settings(max_examples=CASES, deadline=None, suppress_health_check=[HealthCheck.too_slow], phases=PHASES)
@given(EXPRESSIONS, stretches())
def test_a_cron_comes_just_when_each_minute_says_so(expression: str, stretch: tuple[str, datetime, datetime]) -> None:
    """F1: over skipped and repeated hours too, from wherever the look begins."""
    zone, begin, end = stretch
    expected = list(scan(expression, zone, begin, end))
    assert list(takewhile(lambda at: at <= end, cron.after(expression, zone, begin))) == expected


@settings(max_examples=max(20, CASES // 10), deadline=None, suppress_health_check=[HealthCheck.too_slow], phases=PHASES)
@given(EXPRESSIONS, stretches())
def test_each_next_time_is_the_one_after_the_last(expression: str, stretch: tuple[str, datetime, datetime]) -> None:
    """F1, F3: asked anew after each fire, as a schedule does, none is left out and none comes twice."""
    zone, begin, end = stretch
    found, at = list[datetime](), begin
    while len(found) < 200:
        at = next(cron.after(expression, zone, at), end + timedelta(days=1))
        if at > end:
            break
        found.append(at)
    assert found == list(scan(expression, zone, begin, end))[: len(found)]
    assert len(found) == 200 or found == list(scan(expression, zone, begin, end))


@pytest.mark.parametrize(
    ("zone", "around"),
    [
        (zone, each)
        for zone in ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe")
        for each in changes_of(zone, 2027)
    ],
)
def test_every_minute_is_every_minute(zone: str, around: datetime) -> None:
    """F1: over a change of the clock in both directions, a one-minute cron comes each minute that there is, once."""
    begin = around - timedelta(hours=3)
    times = list(takewhile(lambda at: at <= begin + timedelta(hours=6), cron.after("* * * * *", zone, begin)))
    assert times == [begin + timedelta(minutes=each) for each in range(1, 361)]


@pytest.mark.parametrize(
    ("expression", "day", "expected"),
    [
        ("30 2 * * *", datetime(2027, 3, 28), ["2027-03-28T03:00:00+02:00"]),
        ("0,30 2 * * *", datetime(2027, 3, 28), ["2027-03-28T03:00:00+02:00"]),
        ("30 2 * * *", datetime(2027, 10, 31), ["2027-10-31T02:30:00+02:00"]),
        ("30 * * * *", datetime(2027, 3, 28), ["2027-03-28T01:30:00+01:00", "2027-03-28T03:30:00+02:00"]),
        ("30 * * * *", datetime(2027, 10, 31), [
            *("2027-10-31T01:30:00+02:00", "2027-10-31T02:30:00+02:00", "2027-10-31T02:30:00+01:00"),
            "2027-10-31T03:30:00+01:00",
        ]),
    ],
)  # fmt: skip
def test_skipped_and_repeated_hours_are_as_the_documentation_says(
    expression: str, day: datetime, expected: list[str]
) -> None:
    """F1: the rule that stands in the how-to, in Berlin."""
    berlin = ZoneInfo("Europe/Berlin")
    begin, end = day.replace(hour=1, tzinfo=berlin), day.replace(hour=3, minute=45, tzinfo=berlin)
    times = takewhile(lambda at: at <= end, cron.after(expression, "Europe/Berlin", begin.astimezone(UTC)))
    assert [each.astimezone(berlin).isoformat() for each in times] == expected
