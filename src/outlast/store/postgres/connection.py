"""A connection of one's own to PostgreSQL, beside the pool: for what belongs to a connection, not to a transaction."""

from collections.abc import Callable
from typing import Any

import asyncpg
import sqlalchemy as sa

_COMMAND_SECONDS = 10.0
_POOL_ONLY = ("async_fallback", "async_creator_fn", "prepared_statement_cache_size", "prepared_statement_name_func")
"""What a URL may say to SQLAlchemy and the driver does not know."""


async def connect(url: sa.URL, *, name: str, when_closed: Callable[[], None]) -> Any:
    """An `asyncpg` connection that nobody else uses. A server that does not answer is given up after a while.

    `name` is what an operator sees in `pg_stat_activity`. `when_closed` is called whichever side closes it.
    """
    driver: Any = asyncpg
    _, given = url.get_dialect()().create_connect_args(url)
    arguments = {key: value for key, value in given.items() if key not in _POOL_ONLY}
    connection = await driver.connect(
        **{"timeout": _COMMAND_SECONDS, "command_timeout": _COMMAND_SECONDS, **arguments},
        server_settings={"application_name": f"outlast {name}"},
    )

    def closed(_: object) -> None:
        when_closed()

    connection.add_termination_listener(closed)
    return connection
