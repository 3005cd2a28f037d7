"""Your webhooks."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from outlast.client.connection import Connection, path
from outlast.paging import Page
from outlast.tool_hints import UNSET, Unset
from outlast.wire.forms import ListOf
from outlast.wire.webhook import DeliveryAnswer, NewWebhookAnswer, WebhookAnswer


class NewWebhook(NamedTuple):
    webhook: WebhookAnswer
    secret: str
    """It signs what is sent there. It is not shown again."""


class Webhooks:
    """Where you are told of ends and needs: made, listed, changed, tried and removed."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def make(self, url: str, *, types: Sequence[str] | None = None, is_for_all: bool = False) -> NewWebhook:
        """Be told of what happens, from now on; `is_for_all`, for admins, to all owners."""
        body = {"url": url, "types": None if types is None else list(types), "is_for_all": is_for_all}
        return _new(await self._connection.ask("POST", "/v1/webhooks", body=body))

    async def get(self, webhook_id: str) -> WebhookAnswer:
        return WebhookAnswer.model_validate(await self._connection.get(path("webhooks", webhook_id)))

    async def list(self) -> Sequence[WebhookAnswer]:
        """All of them, the oldest first."""
        return ListOf[WebhookAnswer].model_validate(await self._connection.get("/v1/webhooks")).items

    async def update(
        self,
        webhook_id: str,
        *,
        url: str | Unset = UNSET,
        types: Sequence[str] | Unset | None = UNSET,
        is_active: bool | Unset = UNSET,
    ) -> WebhookAnswer:
        """Set what is given. One that was switched off is told of what happens from then on."""
        given: dict[str, Any] = {"url": url, "types": types, "is_active": is_active}
        body = {name: value for name, value in given.items() if not isinstance(value, Unset)}
        answer = await self._connection.ask("PATCH", path("webhooks", webhook_id), body=body, is_repeatable=True)
        return WebhookAnswer.model_validate(answer)

    async def rotate(self, webhook_id: str) -> NewWebhook:
        """A new secret. For a day messages are signed with the one before too."""
        return _new(await self._connection.ask("POST", path("webhooks", webhook_id, "rotate")))

    async def remove(self, webhook_id: str) -> None:
        """It is told nothing any more, and its log is gone."""
        await self._connection.ask("DELETE", path("webhooks", webhook_id))

    async def test(self, webhook_id: str) -> DeliveryAnswer:
        """Send it a message of type `webhook.test`; gives the delivery, which is on its way."""
        return DeliveryAnswer.model_validate(await self._connection.ask("POST", path("webhooks", webhook_id, "test")))

    async def deliveries(
        self,
        webhook_id: str,
        *,
        state: Literal["pending", "delivered", "failed"] | None = None,
        limit: int = 50,
        before: str | None = None,
    ) -> Page[DeliveryAnswer]:
        """What it was told and is to be told, newest first."""
        answer = await self._connection.get(
            path("webhooks", webhook_id, "deliveries"), state=state, limit=limit, cursor=before
        )
        found = ListOf[DeliveryAnswer].model_validate(answer)
        return Page(found.items, found.next)

    async def delivery(self, webhook_id: str, delivery_id: str) -> DeliveryAnswer:
        answer = await self._connection.get(path("webhooks", webhook_id, "deliveries", delivery_id))
        return DeliveryAnswer.model_validate(answer)

    async def redeliver(self, webhook_id: str, delivery_id: str) -> DeliveryAnswer:
        """Send it again, under the same id: whether it had arrived or not."""
        where = path("webhooks", webhook_id, "deliveries", delivery_id, "redeliver")
        return DeliveryAnswer.model_validate(await self._connection.ask("POST", where))


def _new(answer: Any) -> NewWebhook:
    made = NewWebhookAnswer.model_validate(answer)
    return NewWebhook(WebhookAnswer.of(made), made.secret)
