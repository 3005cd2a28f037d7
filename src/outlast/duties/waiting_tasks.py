"""Spawned tasks that wait although there is a place: whoever freed it could not hand it on."""

from functools import partial

from outlast.store.database import Database
from outlast.store.repositories import spawned
from outlast.transitions.tasks import places


async def admit_waiting(database: Database) -> None:
    for owner_id in await database.read(spawned.waiting_owners):
        await database.transaction(partial(places.admit_next, owner_id=owner_id), name="task.admit")
