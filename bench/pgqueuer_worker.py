"""PgQueuer alone, to compare with: `python -m bench.pgqueuer_worker URL` takes jobs that do nothing, until it is told
to end."""

import asyncio
import signal
import sys
from datetime import timedelta
from typing import Any

from pgqueuer.core.qm import QueueManager
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from outlast.store import urls
from outlast.store.postgres.connection import connect

ENTRYPOINT = "note"


def queries(connection: Any) -> Queries:
    return Queries(AsyncpgDriver(connection))


async def install(url: str) -> None:
    connection = await connect(urls.parse(url), name="bench", when_closed=lambda: None)
    try:
        await queries(connection).install()
    finally:
        await connection.close()


async def work(url: str) -> None:
    connection = await connect(urls.parse(url), name="bench", when_closed=lambda: None)
    manager = QueueManager(queries(connection))

    @manager.entrypoint(ENTRYPOINT)
    async def note(job: Job) -> None:  # pyright: ignore[reportUnusedFunction]
        return

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, manager.shutdown.set)
    await manager.run(dequeue_timeout=timedelta(seconds=1), batch_size=10)


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1]))
