"""Webhooks: where the caller is told of ends and needs, and what became of each message."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends

from outlast.api.admission import AdmittedRoute
from outlast.api.auth import Caller
from outlast.api.wiring import COMMON, DECIDED, FOUND, Cursor, Limit, Runtime
from outlast.errors import Forbidden
from outlast.handles.webhooks.webhooks import NewWebhook, Webhooks
from outlast.tool_hints import UNSET
from outlast.wire.forms import ListOf
from outlast.wire.webhook import DeliveryAnswer, NewWebhookAnswer, WebhookAnswer, WebhookBody, WebhookChange

router = APIRouter(prefix="/webhooks", tags=["webhooks"], responses=COMMON, route_class=AdmittedRoute)


async def _webhooks(outlast: Runtime, caller: Caller) -> Webhooks:
    return outlast.webhooks_of(caller.owner_id)


Own = Annotated[Webhooks, Depends(_webhooks)]


async def _with_one(webhooks: Own, webhook_id: str, caller: Caller) -> Webhooks:
    """For what is asked of one webhook: one for all owners stays with admins, whoever else has a key of its owner."""
    if caller.role != "admin" and (await webhooks.get(webhook_id)).is_for_all:
        raise Forbidden("This webhook is told of what happens to all owners: only an admin has to do with it.")
    return webhooks


OwnOne = Annotated[Webhooks, Depends(_with_one)]


def _with_secret(new: NewWebhook) -> NewWebhookAnswer:
    return NewWebhookAnswer(**WebhookAnswer.of(new.webhook).model_dump(), secret=new.secret)


@router.get("")
async def list_webhooks(webhooks: Own) -> ListOf[WebhookAnswer]:
    """Your webhooks, the oldest first."""
    return ListOf(items=[WebhookAnswer.of(each) for each in await webhooks.list()])


@router.post("", status_code=201, responses=DECIDED)
async def make_webhook(webhooks: Own, body: WebhookBody, caller: Caller) -> NewWebhookAnswer:
    """Be told when turns and tasks end, when a task needs somebody, and when a session is flagged."""
    if body.is_for_all and caller.role != "admin":
        raise Forbidden("Only an admin is told of what happens to all owners.")
    return _with_secret(await webhooks.make(body.url, types=body.types, is_for_all=body.is_for_all))


@router.get("/{webhook_id}", responses=FOUND)
async def get_webhook(webhooks: OwnOne, webhook_id: str) -> WebhookAnswer:
    """Whether it works; never its secret."""
    return WebhookAnswer.of(await webhooks.get(webhook_id))


@router.patch("/{webhook_id}", responses=DECIDED)
async def change_webhook(webhooks: OwnOne, webhook_id: str, body: WebhookChange) -> WebhookAnswer:
    """Change what is given; `is_active` switches it off and on."""
    given = body.model_fields_set
    changed = await webhooks.update(
        webhook_id,
        url=body.url if "url" in given else UNSET,
        types=body.types if "types" in given else UNSET,
        is_active=body.is_active if "is_active" in given else UNSET,
    )
    return WebhookAnswer.of(changed)


@router.delete("/{webhook_id}", status_code=204, responses=FOUND)
async def remove_webhook(webhooks: OwnOne, webhook_id: str) -> None:
    """It is told nothing any more, and its log is gone."""
    await webhooks.remove(webhook_id)


@router.post("/{webhook_id}/rotate", responses=DECIDED)
async def rotate_webhook(webhooks: OwnOne, webhook_id: str) -> NewWebhookAnswer:
    """Make a new secret. For a day messages carry a signature with the one before too."""
    return _with_secret(await webhooks.rotate(webhook_id))


@router.post("/{webhook_id}/test", status_code=202, responses=DECIDED)
async def test_webhook(webhooks: OwnOne, webhook_id: str) -> DeliveryAnswer:
    """Send it a message of type `webhook.test`; look at the delivery to see what came of it."""
    return DeliveryAnswer.of(await webhooks.test(webhook_id))


@router.get("/{webhook_id}/deliveries", responses=FOUND)
async def list_deliveries(
    webhooks: OwnOne,
    webhook_id: str,
    state: Literal["pending", "delivered", "failed"] | None = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> ListOf[DeliveryAnswer]:
    """What it was told and is to be told, newest first."""
    page = await webhooks.deliveries(webhook_id, state=state, limit=limit, before=cursor)
    return ListOf(items=[DeliveryAnswer.of(each) for each in page.items], next=page.next)


@router.get("/{webhook_id}/deliveries/{delivery_id}", responses=FOUND)
async def get_delivery(webhooks: OwnOne, webhook_id: str, delivery_id: str) -> DeliveryAnswer:
    """One message, with its last tries."""
    return DeliveryAnswer.of(await webhooks.delivery(webhook_id, delivery_id))


@router.post("/{webhook_id}/deliveries/{delivery_id}/redeliver", status_code=202, responses=DECIDED)
async def redeliver(webhooks: OwnOne, webhook_id: str, delivery_id: str) -> DeliveryAnswer:
    """Send it again, under the same id, whether it had arrived or not."""
    return DeliveryAnswer.of(await webhooks.redeliver(webhook_id, delivery_id))
