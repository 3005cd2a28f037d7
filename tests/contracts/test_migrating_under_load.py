"""PostgreSQL: a migration and those who work meanwhile get into each other's way, and both come through."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from outlast.store import migrations, schema
from outlast.store.tables import sessions, turns
from tests.support.stores.store import opened

# The first to wait gives way; the second must have begun to wait by then.
GIVES_WAY = "2s"
PATIENT = sa.text("SET deadlock_timeout = '60s'")


@pytest.fixture
async def engine(postgres_url: str) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(postgres_url)
    name = sa.make_url(postgres_url).database
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        await connection.execute(sa.text(f"ALTER DATABASE {name} SET deadlock_timeout = '{GIVES_WAY}'"))
    await engine.dispose()
    yield engine
    await engine.dispose()


async def somebody_waits(engine: AsyncEngine) -> None:
    waiting = sa.text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
    async with asyncio.timeout(60):
        while True:
            async with engine.connect() as connection:
                if (await connection.execute(waiting)).scalar_one() >= 1:
                    return


def make_first(connection: sa.Connection) -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.attributes["connection"] = connection
    command.upgrade(config, migrations.KNOWN[0])


async def test_a_read_that_is_in_the_way_of_a_migration_is_done_again(postgres_url: str, engine: AsyncEngine) -> None:
    """P8, deploys: the migration has one table and wants the other, and the reader the other way round."""

    def look(connection: sa.Connection) -> int:
        found = [connection.execute(sa.select(sa.func.count()).select_from(each)) for each in (turns, sessions)]
        return sum(each.scalar_one() for each in found)

    async with opened(postgres_url) as database, engine.connect() as migration:
        await migration.execute(PATIENT)
        await migration.execute(sa.text("LOCK TABLE sessions IN ACCESS EXCLUSIVE MODE"))
        reading = asyncio.create_task(database.read(look))
        await somebody_waits(engine)
        await migration.execute(sa.text("LOCK TABLE turns IN ACCESS EXCLUSIVE MODE"))
        assert not reading.done()
        await migration.commit()
        assert await reading == 0


async def test_a_migration_that_gave_way_is_tried_again(postgres_url: str, engine: AsyncEngine) -> None:
    """Deploys: whoever waits first gives way; `outlast db upgrade` must not fail for it."""
    async with engine.begin() as connection:
        await connection.run_sync(make_first)
    async with engine.connect() as working:
        await working.execute(PATIENT)
        await working.execute(sa.text("SELECT count(*) FROM messages"))

        async def migrate() -> str | None:
            async with opened(postgres_url) as database:
                return await database.read(schema.version)

        migrating = asyncio.create_task(migrate())
        await somebody_waits(engine)
        await working.execute(sa.text("SELECT count(*) FROM sessions"))
        assert not migrating.done()
        await working.commit()
        assert await migrating == migrations.KNOWN[-1]
