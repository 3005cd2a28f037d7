"""When a schedule fires: cron, one time or a delay, exactly one of them, in a zone."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice

from outlast.errors import InvalidInput
from outlast.timing import cron as crons
from outlast.timing import delay as delays
from outlast.timing.zones import zone_of

MOST_PREVIEWED = 50
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?([Zz]|[+-]\d\d:\d\d)?")


@dataclass(frozen=True, slots=True)
class When:
    """As it was asked for, and checked. A `delay` counts from the moment at which it is kept."""

    cron: str | None
    at: datetime | None
    delay: timedelta | None
    zone: str

    def first(self, now: datetime) -> datetime:
        if self.cron is not None:
            return next(crons.after(self.cron, self.zone, now))
        if self.delay is not None:
            return now + self.delay
        assert self.at is not None
        if self.at <= now:
            raise InvalidInput(
                f"at: {self.at.isoformat()} is in the past: it is {now:%Y-%m-%dT%H:%M:%SZ} now.", field="at"
            )
        return self.at

    def coming(self, now: datetime, count: int) -> Sequence[datetime]:
        """The next instants."""
        if self.cron is None:
            return [self.first(now)]
        return list(islice(crons.after(self.cron, self.zone, now), max(1, min(count, MOST_PREVIEWED))))


def parse(
    *,
    cron: str | None = None,
    at: datetime | str | None = None,
    delay: timedelta | str | None = None,
    zone: str = "UTC",
) -> When:
    """Raises `InvalidInput` that names what is wrong."""
    given = [name for name, each in (("cron", cron), ("at", at), ("delay", delay)) if each is not None]
    if len(given) != 1:
        what = f"{' and '.join(given)} are given" if given else "none of them is given"
        raise InvalidInput(f"Give exactly one of cron, at and delay: {what}.", fields=given)
    zone_of(zone)
    if cron is not None:
        cron = " ".join(cron.split())
        crons.check(cron, zone)
        return When(cron, None, None, zone)
    if at is not None:
        return When(None, _instant(at, zone), None, zone)
    assert delay is not None
    return When(None, None, _delay(delay), zone)


def _delay(given: timedelta | str) -> timedelta:
    return delays.parse(f"{int(given.total_seconds())} seconds" if isinstance(given, timedelta) else given)


def _instant(given: datetime | str, zone: str) -> datetime:
    """One without an offset is of the zone's clock: skipped, it is as much later; shown twice, it is the first."""
    if isinstance(given, str):
        if _TIME.fullmatch(given.strip()) is None:
            raise _refused(given)
        try:
            given = datetime.fromisoformat(given.strip().upper())
        except ValueError as exc:
            raise _refused(given, str(exc)) from exc
    try:
        given = given.replace(tzinfo=zone_of(zone)) if given.tzinfo is None else given
        return given.astimezone(UTC)
    except OverflowError as exc:
        raise _refused(str(given), str(exc)) from exc


def _refused(given: str, why: str = "write it as RFC 3339") -> InvalidInput:
    return InvalidInput(f"at: {given[:100]!r} is not a time: {why}, such as 2027-03-28T09:00:00+02:00.", field="at")


def parse_words(words: str, zone: str = "UTC") -> When:
    """One text, as models write it: five fields are cron, what reads as RFC 3339 is a time, anything else a delay."""
    words = words.strip()
    if len(words.split()) == crons.FIELDS and not words.lower().startswith("in "):
        return parse(cron=words, zone=zone)
    if _TIME.fullmatch(words) is not None:
        return parse(at=words, zone=zone)
    try:
        return parse(delay=words, zone=zone)
    except InvalidInput as exc:
        raise InvalidInput(
            f"{words[:100]!r} is no time: write five fields of cron, an RFC 3339 time, or 'in 20 minutes'.",
            field="when",
        ) from exc
