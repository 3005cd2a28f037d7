"""Bringing a database to the schema this code knows, and refusing one it does not."""

from pathlib import Path

import sqlalchemy as sa

from outlast.errors import SchemaMismatch
from outlast.store.migrations import KNOWN


def version(connection: sa.Connection) -> str | None:
    """The revision of the schema that is there; None for an empty database."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar_one_or_none()


def is_current(connection: sa.Connection) -> bool:
    """True when nothing is to do. Raises for a schema that this code does not know."""
    found = version(connection)
    if found is not None and found not in KNOWN:
        raise SchemaMismatch(
            f"The database has schema {found}, which this version of Outlast does not know. Use the version that "
            "wrote it, or a newer one.",
            found=found,
        )
    return found == KNOWN[-1]


def upgrade(connection: sa.Connection) -> None:
    """Bring the schema to the newest known revision, inside the caller's transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
