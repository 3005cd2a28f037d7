"""What a page of a chat shows when it is opened before its message was heard (K3)."""

from typing import Any

import httpx2

from outlast.testing import gate, text
from tests.support.moments.checkpoint import Checkpoint
from tests.support.network.server import serving
from tests.support.turns.runtime import Runtime, scripted


async def shown(client: httpx2.AsyncClient, chat: str, **params: Any) -> list[tuple[str, str]]:
    items = (await client.get(f"/api/chat/{chat}/messages", params=params)).json()["items"]
    return [(each["id"], "".join(part.get("text", "") for part in each["parts"])) for each in items]


async def test_a_message_whose_turn_has_not_begun_is_shown(database_url: str) -> None:
    """A page that is reloaded right after sending must not look as if nothing was said."""
    async with serving(Runtime(database_url)(scripted("Hello.", "Again."))) as server:
        ada = await server.client()
        session = (await ada.post("/v1/sessions", json={})).json()["id"]
        await server.outlast.pause(by="test")
        sent = await ada.post(
            f"/v1/sessions/{session}/messages", json={"text": "hello"}, headers={"Idempotency-Key": "m1"}
        )
        assert sent.json()["turn_id"] is not None
        assert await shown(ada, session) == [("m1", "hello")]
        await server.outlast.unpause()
        turn = (await ada.get(f"/v1/sessions/{session}/result", params={"wait": 10})).json()["turn_id"]
        assert await shown(ada, session) == [("m1", "hello"), (turn, "Hello.")], "it is there once"


async def test_a_message_that_a_stop_left_waiting_is_shown(database_url: str) -> None:
    """It is heard with the next one; until then it stands at the end. One that waits for a running answer does not."""
    here = Checkpoint()
    async with serving(Runtime(database_url)(scripted([text("One "), gate(here), text("two.")], "Hello."))) as server:
        ada = await server.client()
        session = (await ada.post("/v1/sessions", json={})).json()["id"]
        path = f"/v1/sessions/{session}"
        await ada.post(f"{path}/messages", json={"text": "slow"}, headers={"Idempotency-Key": "m1"})
        await here.reached()
        await ada.post(f"{path}/messages", json={"text": "more"}, headers={"Idempotency-Key": "m2"})
        assert await shown(ada, session) == [("m1", "slow")], "it comes with the answer that will hear it"
        turn = (await ada.post(f"{path}/stop", json={})).json()["turn_id"]
        assert await shown(ada, session) == [("m1", "slow"), (turn, "One "), ("m2", "more")]
        assert await shown(ada, session, before=turn) == []
