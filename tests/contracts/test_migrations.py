"""The schema: made by migrations, known by its revision, refused when unknown, copied before it changes."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from outlast.clock import SystemClock
from outlast.errors import SchemaMismatch
from outlast.store import migrations, schema, urls
from outlast.store.database import Database
from outlast.store.postgres import jobs
from outlast.store.postgres.opening import open_postgres
from outlast.store.sqlite import opening
from outlast.store.tables import metadata
from tests.support.stores.store import append, new_session, note, opened, stored_notes

SCRIPTS = Path(migrations.__file__).parent


def is_ours(name: str | None, kind: str, parents: object) -> bool:
    """PgQueuer and FTS5 bring their own tables, and keep them."""
    return name is None or not name.startswith((jobs.PREFIX, "searched_grams"))


async def test_migrations_make_exactly_the_tables_in_the_code(database: Database) -> None:
    """DESIGN 4: no column, index or constraint that only one of the two knows, on both databases."""

    def compare(connection: sa.Connection) -> list[Any]:
        def is_of_both(thing: Any, *_: object) -> bool:
            """Of what the code has. An index of a kind that SQLite has not is only there where it can be."""
            is_gin = isinstance(thing, sa.Index) and thing.dialect_kwargs.get("postgresql_using") == "gin"
            return connection.dialect.name == "postgresql" or not is_gin

        options: dict[str, Any] = {"compare_type": True, "compare_server_default": True, "include_name": is_ours}
        options["include_object"] = is_of_both
        context = MigrationContext.configure(connection, opts=options)
        return list(compare_metadata(context, metadata))

    assert await database.read(compare) == []


async def test_the_partial_unique_index_is_there(database: Database) -> None:
    """P5: the database itself refuses a second open turn of a session."""

    def find(connection: sa.Connection) -> list[str | None]:
        return [each["name"] for each in sa.inspect(connection).get_indexes("turns") if each["unique"]]

    assert await database.read(find) == ["uq_turns_one_running_per_session"]


def test_the_known_revisions_are_those_that_exist() -> None:
    """A migration that is added must be made known, and the last one is the one the code wants."""
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    scripts = ScriptDirectory.from_config(config)
    found = [script.revision for script in scripts.walk_revisions()]
    assert tuple(reversed(found)) == migrations.KNOWN
    assert scripts.get_current_head() == migrations.KNOWN[-1]


async def test_opening_twice_changes_nothing(database_url: str) -> None:
    async with opened(database_url) as database:
        session_id = await new_session(database)
        await append(database, session_id, note("kept"))
    async with opened(database_url) as database:
        assert await stored_notes(database, session_id) == ["kept"]


async def test_a_schema_from_the_future_is_refused(database_url: str) -> None:
    """A process refuses a schema it does not know, says which, and leaves it as it is."""
    async with opened(database_url) as database:
        await database.transaction(
            lambda unit: unit.connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'")),
            name="from the future",
        )
    with pytest.raises(SchemaMismatch, match="9999") as caught:
        async with opened(database_url):
            pass
    assert caught.value.details["found"] == "9999"
    with pytest.raises(SchemaMismatch):
        async with opened(database_url):
            pass


async def test_the_file_is_copied_before_it_is_migrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Embedded: whatever a migration does, the file as it was lies beside it."""
    path = tmp_path / "outlast.db"
    url = f"sqlite:///{path}"
    async with opened(url) as database:
        session_id = await new_session(database)
        await append(database, session_id, note("before"))
    upgraded: list[str | None] = []

    def upgrade(connection: sa.Connection) -> None:
        upgraded.append(schema.version(connection))
        connection.execute(sa.text('UPDATE events SET data = \'{"reason": "after"}\''))
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0099'"))

    monkeypatch.setattr(schema, "KNOWN", (*migrations.KNOWN, "0099"))
    monkeypatch.setattr(schema, "upgrade", upgrade)
    async with opened(url) as database:
        assert await stored_notes(database, session_id) == ["after"]
    old = migrations.KNOWN[-1]
    assert upgraded == [old]
    with closing(sqlite3.connect(tmp_path / f"outlast.db.before-{old}")) as copy:
        assert copy.execute("SELECT version_num FROM alembic_version").fetchone() == (old,)
        assert copy.execute("SELECT data FROM events").fetchone() == ('{"reason":"before"}',)
        assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_a_migration_that_fails_leaves_the_schema_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "outlast.db"
    async with opened(f"sqlite:///{path}") as database:
        session_id = await new_session(database)

    def upgrade(connection: sa.Connection) -> None:
        connection.execute(sa.text("DELETE FROM sessions"))
        connection.execute(sa.text("ALTER TABLE sessions ADD COLUMN half TEXT"))
        raise RuntimeError("the migration broke")

    with monkeypatch.context() as patch:
        patch.setattr(schema, "KNOWN", (*migrations.KNOWN, "0099"))
        patch.setattr(schema, "upgrade", upgrade)
        with pytest.raises(RuntimeError, match="the migration broke"):
            await opening.open_sqlite(path, clock=SystemClock(), durability="normal")
    async with opened(f"sqlite:///{path}") as database:
        assert await append(database, session_id, note("still there")) == 1


async def test_many_processes_may_open_a_new_database_at_once(postgres_url: str) -> None:
    """On PostgreSQL the first one migrates, the others wait for it and find it done."""
    databases = await asyncio.gather(*(open_postgres(urls.parse(postgres_url)) for _ in range(4)))
    for each in databases:
        await new_session(each)
        await each.close()
