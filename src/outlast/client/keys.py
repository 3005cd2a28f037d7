"""API keys, for admins."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal

from outlast.client.connection import Connection, path
from outlast.paging import Page
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
        expires_in: timedelta | None = None,
    ) -> tuple[KeyAnswer, str]:
        """A new key, and its text: it is not stored, so keep it now. `name` says to people what it is for."""
        body = {
            "owner_id": owner_id,
            "name": name,
            "role": role,
            "scope": scope,
            "expires_in_days": None if expires_in is None else expires_in / timedelta(days=1),
        }
        made = NewKeyAnswer.model_validate(await self._connection.ask("POST", "/v1/keys", body=body))
        return KeyAnswer.of(made), made.key

    async def list(
        self, owner_id: str | None = None, *, limit: int = 100, before: str | None = None
    ) -> Sequence[KeyAnswer]:
        """Newest first, of one owner or of all, revoked ones too; `before` is the id of the last one seen."""
        return (await self.page(owner_id, limit=limit, before=before)).items

    async def page(
        self, owner_id: str | None = None, *, limit: int = 100, before: str | None = None
    ) -> Page[KeyAnswer]:
        """The same with the cursor for the next page: give it as `before`."""
        answer = await self._connection.get("/v1/keys", owner_id=owner_id, limit=limit, cursor=before)
        found = ListOf[KeyAnswer].model_validate(answer)
        return Page(found.items, found.next)

    async def revoke(self, key_id: str) -> KeyAnswer:
        """From now on it opens nothing, nor do the links and cookies that were made with it; open streams end."""
        return KeyAnswer.model_validate(await self._connection.ask("DELETE", path("keys", key_id)))
