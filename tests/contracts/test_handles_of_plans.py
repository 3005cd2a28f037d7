"""Schedules and webhooks work alike beside the runtime and over HTTP: one suite for the library and the client."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography.fernet import Fernet

from outlast.errors import InvalidInput, NotFound
from tests.support.turns.held import Hold
from tests.support.turns.runtime import scripted

YEARLY = "0 0 1 1 *"
FAR_AWAY = datetime(2099, 1, 1, 12, tzinfo=UTC)


async def test_schedules_are_made_listed_changed_and_deleted(hold: Hold) -> None:
    """F1: by a session or by its id; a page at a time; what is not named stays."""
    async with hold(scripted("Yes.", "Yes.")) as held:
        session = await held.sessions.create()
        mails = await session.schedule("Look.", cron=YEARLY, zone="Europe/Berlin", title="mails")
        once = await held.schedules.create(session.id, "Once.", at=FAR_AWAY, idempotency_key="k")
        assert (await held.schedules.create(session.id, "Once.", at=FAR_AWAY, idempotency_key="k")).id == once.id

        page = await held.schedules.list(session_id=session.id, limit=1)
        rest = await held.schedules.list(session_id=session.id, before=page.next)
        assert [each.id for each in (*page.items, *rest.items)] == [once.id, mails.id]

        edited = await held.schedules.edit(mails.id, text="Look again.", missed="skip")
        assert (edited.text, edited.missed, edited.cron, edited.title) == ("Look again.", "skip", YEARLY, "mails")
        assert (await held.schedules.edit(mails.id, title=None)).title is None
        assert (await held.schedules.edit(mails.id, zone="Asia/Tokyo")).zone == "Asia/Tokyo"
        moved = await held.schedules.edit(once.id, delay=timedelta(days=9))
        assert (await held.schedules.get(once.id)).next_at == moved.next_at

        assert (await held.schedules.pause(mails.id)).state == "paused"
        assert [each.id for each in (await held.schedules.list(state="paused")).items] == [mails.id]
        assert (await held.schedules.resume(mails.id)).state == "active"
        assert (await held.schedules.trigger(mails.id)).fired == 1
        await session.settled()
        await held.schedules.trigger(mails.id)
        await session.settled()
        newest = await held.schedules.fires(mails.id, limit=1)
        oldest = await held.schedules.fires(mails.id, before=newest.next)
        assert [each.number for each in (*newest.items, *oldest.items)] == [2, 1]

        coming = await held.schedules.preview(cron="30 2 * * *", zone="Europe/Berlin", count=3)
        assert (coming.zone, len(coming.times), len(coming.utc)) == ("Europe/Berlin", 3, 3)
        await held.schedules.delete(mails.id)
        for nothing in (held.schedules.get(mails.id), held.schedules.edit(mails.id, text="x")):
            with pytest.raises(NotFound):
                await nothing
        with pytest.raises(InvalidInput):
            await held.schedules.create(session.id, "Look.", cron=YEARLY, delay="1 hour")


async def test_webhooks_are_made_changed_and_removed(hold: Hold) -> None:
    """B11: the secret is shown once, and what was sent is kept."""
    async with hold(encryption_keys=(Fernet.generate_key().decode(),)) as held:
        made, secret = await held.webhooks.make("https://example.org/outlast", types=["turn.failed"])
        assert secret.startswith("whsec_")
        assert [(each.id, each.state) for each in await held.webhooks.list()] == [(made.id, "active")]
        off = await held.webhooks.update(made.id, is_active=False, types=None)
        assert (off.state, off.types, off.url) == ("off", None, made.url)
        assert (await held.webhooks.rotate(made.id)).secret != secret
        await held.webhooks.update(made.id, is_active=True)
        sent = await held.webhooks.test(made.id)
        page = await held.webhooks.deliveries(made.id)
        assert [(each.id, each.type) for each in page.items] == [(sent.id, "webhook.test")]
        assert (await held.webhooks.delivery(made.id, sent.id)).webhook_id == made.id
        await held.webhooks.remove(made.id)
        with pytest.raises(NotFound):
            await held.webhooks.get(made.id)
