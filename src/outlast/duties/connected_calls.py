"""Calls that wait for a connection which is there: set just before they waited, or while others held their sessions."""

from functools import partial

from outlast.store.database import Database
from outlast.store.repositories import waiting_calls
from outlast.transitions.tasks import connections


async def run_connected(database: Database) -> None:
    found = await database.read(waiting_calls.connected)
    if found:
        await database.transaction(partial(connections.run_waiting, waiting=found), name="connection.run")
