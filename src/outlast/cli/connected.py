"""A client for the server that a verb asks; a key that is missed is asked for in the words of the command line."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from outlast.cli.target import Target
from outlast.client import Client
from outlast.errors import Unauthenticated


@asynccontextmanager
async def connected(place: Target) -> AsyncGenerator[Client]:
    async with Client(place.url, place.token) as client:
        try:
            yield client
        except Unauthenticated as exc:
            if place.token is not None:
                raise
            raise Unauthenticated(
                f"The server at {client.url} wants a key: give --token or OUTLAST_TOKEN. Beside the server, "
                "`outlast keys make` makes one."
            ) from exc
