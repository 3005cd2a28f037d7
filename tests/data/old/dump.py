"""A database as SQL text that any driver can run, and a folder of files as one archive. The same in, the same out."""

import gzip
import io
import sqlite3
import tarfile
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.schema import CreateIndex, CreateTable

_SAME_SCHEMA = (
    "SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns "
    "WHERE table_schema = 'public' AND table_name NOT LIKE 'outlast_%' ORDER BY 1, 2",
    "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename NOT LIKE 'outlast_%' ORDER BY 1",
    "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace "
    "AND conrelid::regclass::text NOT LIKE 'outlast_%' ORDER BY 1, 2",
)


def sqlite_sql(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return "".join(f"{line}\n" for line in connection.iterdump())


async def postgres_sql(url: str, metadata: sa.MetaData) -> str:
    """The tables of the code and what stands in them. Jobs are left out: a sweep makes those that are missing."""
    engine = create_async_engine(url, isolation_level="REPEATABLE READ")
    try:
        async with engine.connect() as connection:
            return "".join([f"{line};\n" async for line in _statements(connection, metadata)])
    finally:
        await engine.dispose()


async def _statements(connection: AsyncConnection, metadata: sa.MetaData) -> AsyncGenerator[str]:
    dialect: Any = postgresql.dialect()  # pyright: ignore[reportUnknownMemberType]
    version = (await connection.execute(sa.text("SELECT version_num FROM alembic_version"))).scalar_one()
    yield "CREATE TABLE alembic_version (version_num varchar(32) CONSTRAINT alembic_version_pkc PRIMARY KEY)"
    yield f"INSERT INTO alembic_version VALUES ({_literal(version)})"
    for table in metadata.sorted_tables:
        yield str(CreateTable(table).compile(dialect=dialect)).strip()
        for index in sorted(table.indexes, key=lambda each: str(each.name)):
            yield str(CreateIndex(index).compile(dialect=dialect)).strip()
        names = ", ".join(dialect.identifier_preparer.quote(each.name) for each in table.columns)
        rows = [list(row) for row in await connection.execute(sa.select(table).order_by(*table.primary_key))]
        for row in rows:
            yield f"INSERT INTO {table.name} ({names}) VALUES ({', '.join(map(_literal, row))})"
        if table.name in ("feed", "kept_secrets"):
            last = max((row[0] for row in rows), default=0)
            yield f"SELECT setval(pg_get_serial_sequence('{table.name}', 'number'), {last + 1}, false)"


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, int | float) else "'" + str(value).replace("'", "''") + "'"


async def run_sql(url: str, sql: str) -> None:
    """All statements at once, as the driver takes them: there is no `psql` here."""
    engine = create_async_engine(url)
    try:
        async with engine.connect() as connection:
            driver: Any = (await connection.get_raw_connection()).driver_connection
            await driver.execute(sql)
    finally:
        await engine.dispose()


async def postgres_schema(url: str) -> list[Any]:
    """To compare: a dump that was loaded must have the tables of the database it was made from."""
    engine = create_async_engine(url)
    try:
        async with engine.connect() as connection:
            return [list(map(tuple, await connection.execute(sa.text(each)))) for each in _SAME_SCHEMA]
    finally:
        await engine.dispose()


def write_text(path: Path, content: str) -> None:
    path.write_bytes(gzip.compress(content.encode(), mtime=0))


def write_folder(path: Path, folder: Path) -> None:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for each in _files(folder.rglob("*")):
            member = tarfile.TarInfo(str(each.relative_to(folder)))
            member.size = each.stat().st_size
            with each.open("rb") as file:
                archive.addfile(member, file)
    path.write_bytes(gzip.compress(plain.getvalue(), mtime=0))


def _files(found: Iterable[Path]) -> Iterator[Path]:
    return iter(sorted(each for each in found if each.is_file()))
