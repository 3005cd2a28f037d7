"""Webhooks over HTTP, by the client and the command (B11)."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest
from cryptography.fernet import Fernet
from pydantic_core import from_json
from standardwebhooks import Webhook as Signature
from typer.testing import CliRunner

from outlast.cli.main import app
from outlast.errors import InvalidInput, NotFound
from tests.support.network.receiver import receiving
from tests.support.network.server import client_of, serving
from tests.support.turns.runtime import Runtime

HERE: dict[str, Any] = {"encryption_keys": (Fernet.generate_key().decode(),), "allowed_networks": ("127.0.0.0/8",)}


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outlast.duties.standing.EVERY_SECOND", timedelta(milliseconds=10))


async def test_a_webhook_is_made_told_and_removed(runtime: Runtime) -> None:
    """B11: its secret is in the answer that makes it, and in no other."""
    async with receiving() as receiver, serving(runtime(**HERE)) as server:
        ada = await server.client("ada")
        made = await ada.post("/v1/webhooks", json={"url": receiver.url, "types": ["turn.completed"]})
        assert made.status_code == 201
        hook, secret = made.json()["id"], made.json()["secret"]
        session = (await ada.post("/v1/sessions", json={})).json()["id"]
        await ada.post(f"/v1/sessions/{session}/messages", json={"text": "Hello"})
        (message,) = await receiver.has(1)
        assert Signature(secret).verify(message.body, message.headers)["data"]["session_id"] == session
        shown = [await ada.get("/v1/webhooks"), await ada.get(f"/v1/webhooks/{hook}")]
        assert all("secret" not in each.text for each in shown)
        listed = (await ada.get(f"/v1/webhooks/{hook}/deliveries", params={"limit": 1})).json()
        assert [each["id"] for each in listed["items"]] == [message.headers["webhook-id"]]
        where = f"/v1/webhooks/{hook}/deliveries/{message.headers['webhook-id']}"
        assert (await ada.get(where)).json()["type"] == "turn.completed"
        assert (await ada.post(f"{where}/redeliver")).status_code == 202
        await receiver.has(2)
        off = await ada.patch(f"/v1/webhooks/{hook}", json={"is_active": False})
        assert (off.json()["state"], off.json()["off_reason"]) == ("off", "switched off by its owner")
        assert (await ada.post(f"/v1/webhooks/{hook}/test")).status_code == 409
        assert (await ada.delete(f"/v1/webhooks/{hook}")).status_code == 204
        assert (await ada.get(f"/v1/webhooks/{hook}")).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"url": "no address"},
        {"url": "http://10.0.0.1/"},
        {"url": "http://[::ffff:10.0.0.1]/"},
        {"url": "https://ex ample.org/"},
        {"url": "https://example.org:port/"},
        {"url": "https://[::1"},
        {"url": "https://example.org/\x00"},
        {"url": "https://example.org/\ud800"},
        {"url": "https://" + "a" * 2_000},
        {"url": "https://example.org/", "types": ["everything"]},
        {"url": "https://example.org/", "types": []},
        {"url": "https://example.org/", "secret": "mine"},
    ],
)
async def test_what_cannot_be_a_webhook_is_refused(runtime: Runtime, body: Any) -> None:
    """B11, G3, G5"""
    async with serving(runtime(**HERE)) as server:
        ada = await server.client("ada")
        refused = await ada.post("/v1/webhooks", content=_as_json(body), headers={"content-type": "application/json"})
        assert refused.status_code in (400, 422)


def _as_json(body: Any) -> bytes:
    return json.dumps(body).encode()


async def test_another_owner_knows_nothing_of_it_and_only_admins_hear_of_all(runtime: Runtime) -> None:
    """B11, G2: every route of it, after the owner's own call succeeded."""
    async with serving(runtime(**HERE)) as server:
        ada, ben, root = (
            await server.client("ada"),
            await server.client("ben"),
            await server.client("root", role="admin"),
        )
        hook = (await ada.post("/v1/webhooks", json={"url": "https://example.invalid/"})).json()["id"]
        delivery = (await ada.post(f"/v1/webhooks/{hook}/test")).json()["id"]
        walks = [
            ("get", f"/v1/webhooks/{hook}"),
            ("patch", f"/v1/webhooks/{hook}"),
            ("get", f"/v1/webhooks/{hook}/deliveries"),
            ("get", f"/v1/webhooks/{hook}/deliveries/{delivery}"),
            ("post", f"/v1/webhooks/{hook}/deliveries/{delivery}/redeliver"),
            ("post", f"/v1/webhooks/{hook}/test"),
            ("post", f"/v1/webhooks/{hook}/rotate"),
            ("delete", f"/v1/webhooks/{hook}"),
        ]
        for verb, path in walks:
            sent = {"is_active": True} if verb == "patch" else None
            for stranger in (ben, root):
                answers = [
                    await stranger.request(verb, each, json=sent)
                    for each in (path, path.replace(hook, "whk_00000000000000000000000000"))
                ]
                assert [each.status_code for each in answers] == [404, 404], path
                assert answers[0].json()["detail"] == answers[1].json()["detail"]
            assert (await ada.request(verb, path, json=sent)).status_code < 300, path
        for_all = {"url": "https://example.invalid/", "is_for_all": True}
        assert (await ada.post("/v1/webhooks", json=for_all)).status_code == 403
        assert (await root.post("/v1/webhooks", json=for_all)).status_code == 201


async def test_a_webhook_for_all_stays_with_admins(runtime: Runtime) -> None:
    """B11, G1, G2: a key of the same owner that is no admin's neither reads of other owners nor turns it elsewhere."""
    async with serving(runtime(**HERE)) as server:
        admin, user = await server.client("root", role="admin"), await server.client("root")
        body = {"url": "https://example.invalid/", "is_for_all": True}
        hook = (await admin.post("/v1/webhooks", json=body)).json()["id"]
        delivery = (await admin.post(f"/v1/webhooks/{hook}/test")).json()["id"]
        for verb, path in (
            ("get", ""),
            ("patch", ""),
            ("get", "/deliveries"),
            ("get", f"/deliveries/{delivery}"),
            ("post", f"/deliveries/{delivery}/redeliver"),
            ("post", "/test"),
            ("post", "/rotate"),
            ("delete", ""),
        ):
            sent = {"url": "https://elsewhere.invalid/"} if verb == "patch" else None
            refused = await user.request(verb, f"/v1/webhooks/{hook}{path}", json=sent)
            assert (refused.status_code, refused.json()["code"]) == (403, "forbidden"), path
            assert (await admin.request(verb, f"/v1/webhooks/{hook}{path}", json=sent)).status_code < 300, path


async def test_a_client_does_the_same(runtime: Runtime) -> None:
    """B11"""
    async with receiving() as receiver, serving(runtime(**HERE)) as server, client_of(server) as client:
        hook, secret = await client.webhooks.make(receiver.url, types=["task.ended"])
        await client.webhooks.test(hook.id)
        (message,) = await receiver.has(1)
        assert Signature(secret).verify(message.body, message.headers)["type"] == "webhook.test"
        _, second = await client.webhooks.rotate(hook.id)
        page = await client.webhooks.deliveries(hook.id)
        await client.webhooks.redeliver(hook.id, page.items[0].id)
        again = (await receiver.has(2))[1]
        assert Signature(second).verify(again.body, again.headers)["type"] == "webhook.test"
        assert (await client.webhooks.delivery(hook.id, page.items[0].id)).type == "webhook.test"
        assert (await client.webhooks.update(hook.id, is_active=False)).state == "off"
        assert [each.id for each in await client.webhooks.list()] == [hook.id]
        with pytest.raises(InvalidInput):
            await client.webhooks.make("nowhere")
        await client.webhooks.remove(hook.id)
        with pytest.raises(NotFound):
            await client.webhooks.get(hook.id)


async def test_the_command_does_the_same(runtime: Runtime) -> None:
    """B11, K1"""
    async with receiving() as receiver, serving(runtime(**HERE)) as server:
        _, token = await server.outlast.keys.make("ada", "test")

        async def outlast(*words: str) -> tuple[int, str]:
            given = ["webhooks", *words, "--url", server.url, "--token", token]
            done = await asyncio.to_thread(CliRunner().invoke, app, given)
            return done.exit_code, done.output

        code, said = await outlast("add", receiver.url, "--type", "task.ended", "--json")
        assert code == 0
        hook = from_json(said)["id"]
        assert "active" in (await outlast("list"))[1]
        assert (await outlast("test", hook))[0] == 0
        (message,) = await receiver.has(1)
        async with asyncio.timeout(20):
            while "delivered" not in (await outlast("log", hook))[1]:
                pass
        assert (await outlast("redeliver", hook, message.headers["webhook-id"]))[0] == 0
        assert "Secret, shown this once: whsec_" in (await outlast("rotate", hook))[1]
        assert (await outlast("off", hook))[1] == f"{hook} is off.\n"
        assert (await outlast("on", hook))[1] == f"{hook} is active.\n"
        assert (await outlast("remove", hook)) == (0, "Removed.\n")
        assert (await outlast("remove", hook))[0] == 3
        assert (await outlast("add", "nowhere"))[0] != 0
