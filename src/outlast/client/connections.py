"""Your credentials for providers."""

from collections.abc import Sequence

from outlast.client.connection import Connection, path
from outlast.wire.connection import ConnectionAnswer
from outlast.wire.forms import ListOf


class Connections:
    """Set, listed by name and removed; a value is never given back."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def set(self, provider: str, value: str) -> ConnectionAnswer:
        """Keep a credential, or a new one in the place of the old."""
        answer = await self._connection.ask(
            "PUT", path("connections", provider), body={"value": value}, is_repeatable=True
        )
        return ConnectionAnswer.model_validate(answer)

    async def get(self, provider: str) -> ConnectionAnswer:
        return ConnectionAnswer.model_validate(await self._connection.get(path("connections", provider)))

    async def list(self) -> Sequence[ConnectionAnswer]:
        """All of them, by provider."""
        return ListOf[ConnectionAnswer].model_validate(await self._connection.get("/v1/connections")).items

    async def remove(self, provider: str) -> None:
        """From now on no tool is given it; what runs with it goes on."""
        await self._connection.ask("DELETE", path("connections", provider))
