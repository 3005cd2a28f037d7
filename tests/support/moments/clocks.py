"""A clock that goes as time does, and can be set."""

from datetime import UTC, datetime, timedelta

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
MIDNIGHT = datetime(2026, 11, 18, tzinfo=UTC)


class SetClock:
    """Goes on from the instant it was set to."""

    def __init__(self, start: datetime = NOON) -> None:
        self._ahead = timedelta()
        self.set(start)

    def set(self, instant: datetime) -> None:
        self._ahead = instant - datetime.now(UTC)

    def now(self) -> datetime:
        return datetime.now(UTC) + self._ahead
