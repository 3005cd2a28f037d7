"""What owners may ask for, as plain values. They ride on the unit of work, so that every state change finds them."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may wait and run, and how fast it may come."""

    max_inbox: int = 10
    max_busy_per_minute: int = 30
    """Messages of an owner to sessions in which a turn runs."""
    max_text: int = 64_000
    max_running_per_owner: int = 8
    max_queued_per_owner: int = 100
    max_woken: int = 20
    """Turns in a row that only wakes start."""
    company: timedelta = timedelta(seconds=2)
    """How long a wake waits for others that may end soon."""
    max_open_tasks: int = 32
    """Of a session."""
    max_children: int = 16
    """Sub-sessions that work for a session at the same time."""
    max_depth: int = 5
    """Sessions above one another."""
    max_claims: int = 3
    """How often a turn or a task is run whose workers die under it."""
    call_deadline: timedelta = timedelta(hours=24)
    """When a call is told to stop whose tool does not say it."""
    max_spawned_per_session: int = 5
    """Spawned tasks of a session that run at once; the others wait for a place."""
    max_spawned_per_owner: int = 100
    max_schedules_per_session: int = 20
    max_schedules_per_owner: int = 100
    daily_cost: int | None = None
    """Microdollars after which an owner starts no turn before the next midnight UTC."""
    request_deadline: timedelta = timedelta(days=7)
    """How long a task waits for somebody."""
    max_file_bytes: int = 16 * 1024 * 1024
    max_session_bytes: int = 1024 * 1024 * 1024
    """Of all files of a session that have a name."""
