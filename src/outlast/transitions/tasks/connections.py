"""A connection is set or removed: whoever waits for it is told in the same commit."""

import re
from collections.abc import Sequence

from outlast.errors import InvalidInput, NoEncryptionKey, TooManyRequests
from outlast.events.signals import connection_topic
from outlast.ids import OwnerId
from outlast.store.repositories import connections, tasks, waiting_calls
from outlast.store.repositories.connections import ConnectionRow
from outlast.store.repositories.stored_task import Task
from outlast.store.unit import Unit
from outlast.transitions.tasks import open_request, requests
from outlast.values.sealing import MAKE_KEY, Sealing, Unreadable
from outlast.wire.task_state import TaskState

MOST_PER_OWNER = 200
NO_KEY = (
    f"Connections are kept encrypted, and no key for that is set. Make one with `{MAKE_KEY}`, and give it to every "
    "process in OUTLAST_ENCRYPTION_KEYS."
)
_PROVIDER = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


def check_provider(provider: str) -> None:
    if _PROVIDER.fullmatch(provider) is None:
        raise InvalidInput(
            "The name of a provider is 1 to 64 of a-z, 0-9, dot, underscore and hyphen, and begins with a letter or a "
            "digit, as github does."
        )


def needed(sealing: Sealing | None) -> Sealing:
    if sealing is None:
        raise NoEncryptionKey(NO_KEY)
    return sealing


def value_of(row: ConnectionRow, sealing: Sealing | None) -> str | None:
    """None when no key opens it, or when it was sealed for another owner or provider."""
    try:
        return None if sealing is None else sealing.open(row.sealed, row.owner_id, row.provider)
    except Unreadable:
        return None


def set_value(unit: Unit, owner_id: OwnerId, provider: str, *, sealed: str, key_mark: str) -> None:
    """From the commit on tools are given this value; of two at once the later commit counts.

    The owner's calls that wait for it are run.
    """
    is_known = connections.find(unit.connection, owner_id, provider) is not None
    if not is_known and connections.count(unit.connection, owner_id) >= MOST_PER_OWNER:
        raise TooManyRequests(f"There are {MOST_PER_OWNER} connections already: remove one first.")
    connections.put(unit, owner_id, provider, sealed=sealed, key_mark=key_mark)
    unit.signal(connection_topic(owner_id))
    run_waiting(unit, waiting_calls.of_provider(unit.connection, owner_id, provider))


def run_waiting(unit: Unit, waiting: Sequence[Task]) -> None:
    """Run the calls that wait for a connection which is there now, once each.

    Those in sessions that somebody else holds are left to the duty that looks for them: who locks many sessions at
    once waits for none of them.
    """
    unit.lock_free([each.session_id for each in waiting])
    for each in waiting:
        task = tasks.get(unit.connection, each.id) if unit.has_locked(each.session_id) else None
        if task is not None and task.state is TaskState.AWAITING_INPUT and open_request.is_open(task):
            requests.connected(unit, task)


def remove(unit: Unit, owner_id: OwnerId, provider: str) -> bool:
    """Tools that were given the value keep it; False when there was none."""
    is_removed = connections.remove(unit, owner_id, provider)
    if is_removed:
        unit.signal(connection_topic(owner_id))
    return is_removed
