"""API keys, for admins."""

import builtins
from typing import Literal

from outlast.client.connection import Connection, path
from outlast.wire.forms import ListOf
from outlast.wire.key import KeyAnswer, NewKeyAnswer


class Keys:
    """Of all owners. The text of a key is shown when it is made, and never again."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def make(
        self,
        owner_id: str,
        name: str,
        *,
        role: Literal["user", "admin"] = "user",
        scope: Literal["read", "propose", "write"] = "write",
        expires_in_days: float | None = None,
    ) -> NewKeyAnswer:
        body = {
            "owner_id": owner_id,
            "name": name,
            "role": role,
            "scope": scope,
            "expires_in_days": expires_in_days,
        }
        return NewKeyAnswer.model_validate(await self._connection.ask("POST", "/v1/keys", body=body))

    async def list(self, owner_id: str | None = None) -> builtins.list[KeyAnswer]:
        answer = await self._connection.get("/v1/keys", owner_id=owner_id)
        return ListOf[KeyAnswer].model_validate(answer).items

    async def revoke(self, key_id: str) -> None:
        """From now on it opens nothing, nor do the links and cookies that were made with it; open streams end."""
        await self._connection.ask("DELETE", path("keys", key_id))
