"""Opening PostgreSQL: migrate it, then a pool; apart from files, which need none of what it imports."""

import asyncio
from typing import Any, cast
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from outlast.backoff import growing
from outlast.errors import InvalidInput, StoreUnavailable
from outlast.store import schema
from outlast.store.postgres import jobs
from outlast.store.postgres.connection import connect
from outlast.store.postgres.database import FOREIGN, PostgresDatabase, connect_within, sqlstate, unavailable

ADVISORY_LOCK = 0x0071A57
_HEARS_WITHIN = 5.0
_TRIES = 5
_DEADLOCK = "40P01"
_REFUSED = ("28", "3D", "42501")
"""SQLSTATEs that no waiting ends: a role that may not come in, no such database, no right to make tables."""


async def open_postgres(
    url: sa.URL, *, direct: sa.URL | None = None, connections: int = 10, wait: float = 10.0
) -> PostgresDatabase:
    """Migrate, then open a pool. `direct` leads past a pooler to the same database, or it is refused."""
    straight = direct or url
    engine = create_async_engine(straight, connect_args=connect_within(straight, wait))
    try:
        if await _migrated(engine):
            async with engine.connect() as connection:
                await jobs.upgrade((await connection.get_raw_connection()).driver_connection)
    except FOREIGN as exc:
        if sqlstate(exc).startswith(_REFUSED):
            raise InvalidInput(
                f"PostgreSQL at {place(straight)} does not let {straight.username!r} use the database "
                f"{straight.database!r}: {_reason(exc, wait)}. Check the URL, and that the database was created and "
                "the role may make tables in it."
            ) from exc
        raise _unreachable(straight, exc, wait)  # noqa: B904 - it has its cause, or is the error itself
    finally:
        await engine.dispose()
    database = PostgresDatabase(url, pool_size=connections, wait=wait, is_pooled=direct is not None)
    if direct is not None:
        try:
            await _check_direct(database, direct)
        except StoreUnavailable as exc:
            await database.close()
            raise _unreachable(url, exc.__cause__ or exc, wait)  # noqa: B904 - it has its cause
        except BaseException:
            await database.close()
            raise
    return database


async def _migrated(engine: AsyncEngine) -> bool:
    """True: the tables of jobs are of an older release. Tried again if it gave way to those who work meanwhile."""
    waits = growing(0.1)
    for attempt in range(_TRIES):
        try:
            async with engine.begin() as connection:
                await connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})"))
                await connection.run_sync(_migrate)
                return await jobs.install((await connection.get_raw_connection()).driver_connection)
        except DBAPIError as exc:
            if attempt + 1 == _TRIES or sqlstate(exc) != _DEADLOCK:
                raise
            await asyncio.sleep(next(waits))
    raise AssertionError("unreachable: the last try returns or raises")


async def _check_direct(database: PostgresDatabase, direct: sa.URL) -> None:
    """What is said through the pool must be heard by whoever listens past it."""
    heard, channel = asyncio.Event(), f"outlast_check_{uuid4().hex}"

    def hear(*_: object) -> None:
        heard.set()

    connection = await connect(direct, name="check", when_closed=lambda: None)
    try:
        await connection.add_listener(channel, hear)
        await database.transaction(
            lambda unit: unit.connection.execute(sa.text("SELECT pg_notify(:channel, '')"), {"channel": channel}),
            name="check direct",
        )
        async with asyncio.timeout(_HEARS_WITHIN):
            await heard.wait()
    except TimeoutError as exc:
        raise InvalidInput(
            "direct_database does not lead to the same database as database, or is behind a pooler too: nothing "
            "that was said there was heard. Give a URL that leads straight to the PostgreSQL server."
        ) from exc
    finally:
        await connection.close()


def _unreachable(url: sa.URL, exc: BaseException, wait: float) -> BaseException:
    """Who starts a process must know which server it is about; what waits already is told less."""
    error = unavailable(exc)
    if not isinstance(error, StoreUnavailable):
        return error
    told = StoreUnavailable(
        f"PostgreSQL at {place(url)} cannot be used: {_reason(exc, wait)}. Check that it runs and takes connections "
        "from here, and the host and port in the URL; then start again."
    )
    told.__cause__ = exc
    return told


def place(url: sa.URL) -> str:
    """Where the server is, as the URL says; never with a password."""
    _, given = url.get_dialect()().create_connect_args(url)
    hosts, ports = (
        cast(list[Any], each) if isinstance(each, list) else [each]
        for each in (given.get("host"), given.get("port") or 5432)
    )
    if hosts == [None]:
        return f"its usual place on this machine (the URL names no host), port {ports[0]}"
    return ", ".join(_address(str(host), ports[min(at, len(ports) - 1)]) for at, host in enumerate(hosts))


def _address(host: str, port: Any) -> str:
    return f"{host}/.s.PGSQL.{port}" if host.startswith("/") else f"{host}:{port}"


def _reason(exc: BaseException, wait: float) -> str:
    """What the server or the system said, without the classes of libraries."""
    said = exc
    if isinstance(exc, DBAPIError) and exc.orig is not None:
        said = exc.orig.__cause__ or exc.orig
    if isinstance(said, TimeoutError):
        return f"no answer within {wait:g} seconds"
    return str(said).rstrip(".") or type(said).__name__


def _migrate(connection: sa.Connection) -> None:
    if not schema.is_current(connection):
        schema.upgrade(connection)
