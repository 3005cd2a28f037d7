"""Sessions over HTTP: made, found, changed, listed, deleted (D1, D10, G3)."""

import asyncio

from tests.support.network.server import serving
from tests.support.turns.runtime import Runtime


async def test_a_session_is_made_and_found_again(runtime: Runtime) -> None:
    """D10: what was answered with 2xx is there; `external_id` finds instead of making twice."""
    async with serving(runtime()) as server:
        ada = await server.client()
        made = await ada.post("/v1/sessions", json={"title": "Oslo", "metadata": {"team": "a"}, "external_id": "trip"})
        assert made.status_code == 201
        found = await ada.get(f"/v1/sessions/{made.json()['id']}")
        assert found.json()["title"] == "Oslo"
        assert found.json()["state"] == "idle"
        again = await ada.post("/v1/sessions", json={"external_id": "trip"})
        assert again.json()["id"] == made.json()["id"]


async def test_sessions_are_listed_page_by_page(runtime: Runtime) -> None:
    """D10: cursors and bounded limits; filters by metadata and by what was said."""
    async with serving(runtime()) as server:
        ada = await server.client()
        made = [(await ada.post("/v1/sessions", json={"title": f"trip {n}"})).json()["id"] for n in range(5)]
        first = (await ada.get("/v1/sessions", params={"limit": 2})).json()
        rest = (await ada.get("/v1/sessions", params={"limit": 3, "cursor": first["next"]})).json()
        assert [each["id"] for each in first["items"] + rest["items"]] == made[::-1]
        assert rest["next"] is None
        assert len((await ada.get("/v1/sessions", params={"search": "TRIP 3"})).json()["items"]) == 1
        assert (await ada.get("/v1/sessions", params={"limit": 0})).status_code == 422
        assert (await ada.get("/v1/sessions", params={"cursor": "nonsense"})).status_code == 422


async def test_only_what_is_named_changes(runtime: Runtime) -> None:
    async with serving(runtime()) as server:
        ada = await server.client()
        made = (await ada.post("/v1/sessions", json={"title": "Oslo", "metadata": {"a": 1}})).json()
        changed = await ada.patch(f"/v1/sessions/{made['id']}", json={"title": "Bergen"})
        assert changed.json()["title"] == "Bergen"
        assert changed.json()["metadata"] == {"a": 1}
        archived = await ada.patch(f"/v1/sessions/{made['id']}", json={"is_archived": True})
        assert archived.json()["is_archived"]
        assert (await ada.get("/v1/sessions")).json()["items"] == []


async def test_a_deleted_session_is_gone_for_everyone(runtime: Runtime) -> None:
    """D10: delete ends readers and removes everything."""
    async with serving(runtime()) as server:
        ada = await server.client()
        session_id = (await ada.post("/v1/sessions", json={})).json()["id"]
        assert (await ada.delete(f"/v1/sessions/{session_id}")).status_code == 204
        assert (await ada.get(f"/v1/sessions/{session_id}")).status_code == 404
        assert (await ada.delete(f"/v1/sessions/{session_id}")).status_code == 404


async def test_a_session_goes_out_and_comes_in_as_a_document(runtime: Runtime) -> None:
    """D10: export, import, fork."""
    async with serving(runtime(["Hello Ada."])) as server:
        ada, ben = await server.client(), await server.client("ben")
        session_id = (await ada.post("/v1/sessions", json={"title": "Oslo"})).json()["id"]
        await ada.post(f"/v1/sessions/{session_id}/messages", json={"text": "I am Ada"})
        await ada.get(f"/v1/sessions/{session_id}/result", params={"wait": 10})
        document = (await ada.get(f"/v1/sessions/{session_id}/export")).json()
        imported = await ben.post("/v1/sessions/import", json=document)
        assert imported.status_code == 201
        forked = await ada.post(f"/v1/sessions/{session_id}/fork", json={"title": "again"})
        assert forked.json()["title"] == "again"
        for client, made in ((ben, imported), (ada, forked)):
            history = (await client.get(f"/v1/sessions/{made.json()['id']}/messages")).json()["items"]
            assert "I am Ada" in str(history[0])
            assert "Hello Ada." in str(history[1])
        assert (await ben.post("/v1/sessions/import", json={"format": "something else"})).status_code == 422


async def test_the_same_key_makes_one_session(runtime: Runtime) -> None:
    """D2: an idempotency key on every POST that creates."""
    async with serving(runtime()) as server:
        ada = await server.client()
        key = {"Idempotency-Key": "once"}
        answers = await asyncio.gather(
            *(ada.post("/v1/sessions", json={"title": "Oslo"}, headers=key) for _ in range(5))
        )
        assert len({each.json()["id"] for each in answers}) == 1
        other = await ada.post("/v1/sessions", json={"title": "Bergen"}, headers=key)
        assert (other.status_code, other.json()["code"]) == (409, "idempotency_mismatch")
