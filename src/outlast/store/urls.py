"""What a database's URL says."""

from pathlib import Path

import sqlalchemy as sa

from outlast.errors import InvalidInput


def parse(url: str) -> sa.URL:
    """A URL, or simply the path of a SQLite file."""
    if "://" not in url:
        return sa.URL.create("sqlite", database=url)
    parsed = sa.make_url(url)
    if parsed.get_backend_name() == "sqlite":
        if not parsed.database or parsed.database == ":memory:":
            raise InvalidInput("Outlast keeps its work in a file: give a path, such as sqlite:///outlast.db.")
        return parsed
    if parsed.get_backend_name() in ("postgresql", "postgres"):  # the latter is what many a hoster hands out
        if not parsed.database:
            raise InvalidInput("Name the database in the URL, such as postgresql://user@host/outlast.")
        return parsed.set(drivername="postgresql+asyncpg")
    raise InvalidInput(f"{parsed.drivername} is not supported: use a SQLite file or a postgresql:// URL.")


def sqlite_path(url: sa.URL) -> Path:
    assert url.database is not None
    # Links are followed: two names of one file must not look like two databases.
    return Path(url.database).resolve()
