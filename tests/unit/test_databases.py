"""The databases that tests are given are real, empty, and apart from each other."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.ext.asyncio import create_async_engine


async def test_postgresql_answers(postgres_url: str) -> None:
    engine = create_async_engine(postgres_url)
    async with engine.connect() as connection:
        answer = await connection.scalar(text("select version()"))
    await engine.dispose()
    assert str(answer).startswith("PostgreSQL 18")


async def test_postgresql_starts_empty(postgres_url: str) -> None:
    engine = create_async_engine(postgres_url)
    async with engine.begin() as connection:
        tables = await connection.scalar(
            text("select count(*) from information_schema.tables where table_schema = 'public'")
        )
    await engine.dispose()
    assert tables == 0


def test_sqlite_starts_without_a_file(sqlite_url: str) -> None:
    path = make_url(sqlite_url).database
    assert path is not None
    assert not Path(path).exists()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table river (name text)")
    assert Path(path).is_file()


def test_database_url_covers_both_kinds(database_url: str, request: pytest.FixtureRequest) -> None:
    assert make_url(database_url).get_backend_name() == request.node.callspec.params["database_url"]
