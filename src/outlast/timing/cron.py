"""The instants of a cron expression of five fields, in a zone, over changes of its clock.

The rule is that of Debian's cron:

- An expression that names its minutes and hours (neither field begins with `*`) happens once on each day that it
  names. A time that the clock skips happens at the first minute after the gap, together with others that are skipped
  with it or stand there; one that the clock shows twice happens the first time.
- Any other follows the clock as it runs: nothing happens in a skipped hour, and a repeated one happens twice.
- A day matches the day of the month **or** of the week if both are named; both must if one begins with `*`.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from outlast.errors import InvalidInput
from outlast.timing.zones import zone_of

FIELDS = 5
_YEARS = 50
_MINUTE = timedelta(minutes=1)
_QUARTER = timedelta(minutes=15)
"""No zone's clock is off by less, nor changed by less."""
_LONGEST = 200
_WINDOWS = tuple(timedelta(days=each) for each in (1 / 24, 1, 8, 32, 367, 1500, 6000))
"""How far back to look for the last instants: none of these holds so many that a look takes long."""


def check(expression: str, zone: str) -> None:
    """Raises `InvalidInput` that names the fault; so does one that never comes."""
    zone_of(zone)
    if next(after(expression, zone, datetime(2026, 1, 1, tzinfo=UTC)), None) is None:
        raise _refused(expression, "it never comes")


def _refused(expression: str, why: str) -> InvalidInput:
    return InvalidInput(
        f"cron: {expression[:_LONGEST]!r} is not a cron expression: {why}. Write minute, hour, day of the month, month "
        "and day of the week, such as '0 8 * * 1-5'.",
        field="cron",
    )


def after(expression: str, zone: str, instant: datetime) -> Iterator[datetime]:
    """The instants after another one, in order, in UTC. Ends where none comes within fifty years."""
    fields = len(expression.split())
    if len(expression) > _LONGEST or not expression.isascii():
        raise _refused(expression, "it is too long, or holds letters of no expression")
    if fields != FIELDS:
        raise _refused(expression, f"it has {fields} fields and not {FIELDS}")
    try:
        coming = CronSim(expression, instant.astimezone(zone_of(zone)))
    except CronSimError as exc:
        raise _refused(expression, str(exc).lower()) from exc
    # Where the clock is changed by half an hour, cronsim's walk by whole hours leaves minutes out.
    return _increasing(coming, instant) if _is_fixed(expression) else _minutes(coming, zone_of(zone), instant)


def _is_fixed(expression: str) -> bool:
    minutes, hours, *_ = expression.split()
    return not minutes.startswith("*") and not hours.startswith("*")


def _increasing(coming: CronSim, last: datetime) -> Iterator[datetime]:
    """A walk that begins in a repeated hour would find what already happened in its first showing."""
    try:
        for each in coming:
            found = each.astimezone(UTC)
            if found > last:
                last = found
                yield found
    except OverflowError:
        return


def _minutes(fields: CronSim, zone: ZoneInfo, last: datetime) -> Iterator[datetime]:
    """Each minute that there is and whose showing on the zone's clock the expression names."""
    at = last.astimezone(UTC).replace(second=0, microsecond=0) + _MINUTE
    try:
        end = at.replace(year=at.year + _YEARS, day=min(at.day, 28))
        while at <= end:
            local = at.astimezone(zone)
            if local.month not in fields.months or not fields.match_day(local.date()):
                at = _next_day(local)
            elif local.hour not in fields.hours:
                at += _QUARTER - timedelta(minutes=local.minute % 15)
            else:
                if local.minute in fields.minutes:
                    yield at
                at += _MINUTE
    except (OverflowError, ValueError):
        return


def _next_day(local: datetime) -> datetime:
    """Where its midnight is skipped, the first minute after it; a time of the day before is looked at and passed."""
    midnight = datetime.combine(local.date() + timedelta(days=1), time(), tzinfo=local.tzinfo)
    now, then = local.astimezone(UTC), midnight.astimezone(UTC)
    return then if then > now else now + _MINUTE


@dataclass(frozen=True, slots=True)
class Passed:
    """The last instants of a stretch of time, in order; `earlier` came before them. `is_more`: not all are counted."""

    instants: Sequence[datetime]
    earlier: int = 0
    is_more: bool = False


def passed(expression: str, zone: str, first: datetime, until: datetime, *, most: int) -> Passed:
    """What came from `first` on, which is one of them, to `until`; cheap however long that is."""
    for window in _WINDOWS:
        begin = max(first, until - window)
        last: deque[datetime] = deque(maxlen=most)
        count = 0
        for each in after(expression, zone, begin - timedelta(microseconds=1)):
            if each > until:
                break
            last.append(each)
            count += 1
        if begin == first and not last:
            return Passed([first])  # it was one by the rules of its zone at that time, and these have changed since
        if begin == first or count >= most + 1:
            return Passed(list(last), count - len(last), is_more=begin > first)
    return Passed([first], is_more=True)
