"""Cron by an independent way: every minute of a stretch of time is looked at, as the rule in the documentation says."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


class Expression:
    """Five fields of `*`, numbers, ranges, lists and steps."""

    def __init__(self, text: str) -> None:
        self.fields = text.split()
        self.minutes, self.hours, self.days, self.months, weekdays = (
            _values(field, *bounds) for field, bounds in zip(self.fields, _RANGES, strict=True)
        )
        self.weekdays = {each % 7 for each in weekdays}
        self.is_fixed = not self.fields[0].startswith("*") and not self.fields[1].startswith("*")
        self.need_both = self.fields[2].startswith("*") or self.fields[4].startswith("*")

    def has_day(self, local: datetime) -> bool:
        if local.month not in self.months:
            return False
        is_day, is_weekday = local.day in self.days, (local.weekday() + 1) % 7 in self.weekdays
        return is_day and is_weekday if self.need_both else is_day or is_weekday

    def has(self, local: datetime) -> bool:
        return self.has_day(local) and local.hour in self.hours and local.minute in self.minutes


def _values(field: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for term in field.split(","):
        body, _, step = term.partition("/")
        if body == "*":
            first, last = low, high
        elif "-" in body:
            first, last = map(int, body.split("-"))
        else:
            first, last = int(body), high if step else int(body)
        found.update(range(first, last + 1, int(step or 1)))
    return found


def scan(text: str, zone: str, begin: datetime, end: datetime) -> Iterator[datetime]:
    """The instants after `begin` up to `end`, in UTC."""
    expression, tz = Expression(text), ZoneInfo(zone)
    at = begin.replace(second=0, microsecond=0)
    while at <= end:
        if at > begin and _is_time(expression, tz, at):
            yield at
        at += MINUTE


def _is_time(expression: Expression, tz: ZoneInfo, at: datetime) -> bool:
    local = at.astimezone(tz)
    if not expression.is_fixed:
        return expression.has(local)
    if local.fold:
        return False  # it was shown before
    if expression.has(local):
        return True
    # The first minute after a gap stands for what was skipped.
    before = (at - MINUTE).astimezone(tz).replace(tzinfo=None)
    now = local.replace(tzinfo=None)
    skipped = before + MINUTE
    while skipped < now:
        if expression.has(skipped):
            return True
        skipped += MINUTE
    return False


def changes_of(zone: str, year: int) -> list[datetime]:
    """The instants of a year at which the zone's clock is changed, to the minute."""
    tz, at, found = ZoneInfo(zone), datetime(year, 1, 1, tzinfo=UTC), list[datetime]()
    while at.year == year:
        later = at + timedelta(hours=6)
        if at.astimezone(tz).utcoffset() != later.astimezone(tz).utcoffset():
            found.append(_exact(tz, at, later))
        at = later
    return found


def _exact(tz: ZoneInfo, low: datetime, high: datetime) -> datetime:
    offset = low.astimezone(tz).utcoffset()
    while high - low > MINUTE:
        middle = (low + (high - low) / 2).replace(second=0, microsecond=0)
        low, high = (middle, high) if middle.astimezone(tz).utcoffset() == offset else (low, middle)
    return high
