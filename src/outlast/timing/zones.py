"""Zones by their IANA names, and how an instant is written in one."""

from datetime import datetime
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from outlast.errors import InvalidInput

_LONGEST = 100


@cache
def _known(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def zone_of(name: str) -> ZoneInfo:
    """Raises `InvalidInput` that names the fault."""
    try:
        if len(name) > _LONGEST or not name.isascii():
            raise ValueError(name)
        return _known(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as exc:
        raise InvalidInput(
            f"zone: {name[:_LONGEST]!r} is not a zone: use an IANA name such as Europe/Berlin or UTC.", field="zone"
        ) from exc


def kept_zone(name: str) -> ZoneInfo:
    """Of what was checked when it was kept. UTC, if the zone is not known here any more: its times are still shown."""
    try:
        return zone_of(name)
    except InvalidInput:
        return _known("UTC")


def shown(instant: datetime, zone: str) -> str:
    """For people and models: to the minute where it is one, with the zone's own short name."""
    local = instant.astimezone(zone_of(zone))
    return local.strftime("%Y-%m-%d %H:%M %Z" if not (local.second or local.microsecond) else "%Y-%m-%d %H:%M:%S %Z")
