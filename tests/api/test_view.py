"""The view over HTTP: what is asked for, what is refused, and what does not fit into a page."""

from typing import Any

from outlast.testing import call
from tests.support.network.server import client_of, serving
from tests.support.turns.runtime import Runtime, scripted

PAGE = 1024 * 1024


async def test_the_view_is_a_page_of_one_moment(database_url: str) -> None:
    """K6: as JSON, as the client has it; the feed goes on from exactly there."""
    async with serving(Runtime(database_url)(scripted("One.", "Two.", "Three."))) as server:
        ada = await server.client()
        session = (await ada.post("/v1/sessions", json={})).json()["id"]
        path = f"/v1/sessions/{session}"
        for each in ("1?", "2?"):
            await ada.post(f"{path}/messages", json={"text": each})
            await ada.get(f"{path}/result", params={"wait": 10})
        seen = (await ada.get(f"{path}/view", params={"turns": 1})).json()
        assert [each["text"] for each in seen["turns"]] == ["Two."]
        assert seen["as_of"] == seen["session"]["last_event"]
        older = (await ada.get(f"{path}/view", params={"turns": 1, "before": seen["next"]})).json()
        assert ([each["text"] for each in older["turns"]], older["next"]) == (["One."], None)
        await ada.post(f"{path}/messages", json={"text": "3?"})
        await ada.get(f"{path}/result", params={"wait": 10})
        told = (await ada.get("/v1/events", params={"after": seen["feed"], "limit": 1_000})).json()["items"]
        assert min(each["number"] for each in told) > seen["as_of"]
        assert told[0]["type"] == "input.accepted"


async def test_what_is_asked_wrongly_is_refused(database_url: str) -> None:
    """K1, G4: no page is an error of the server; another owner's session is not there."""
    async with serving(Runtime(database_url)(scripted("One."))) as server:
        ada, eve = await server.client(), await server.client("eve")
        session = (await ada.post("/v1/sessions", json={})).json()["id"]
        path = f"/v1/sessions/{session}"
        turn = (await ada.post(f"{path}/messages", json={"text": "1?"})).json()["turn_id"]
        await ada.get(f"{path}/result", params={"wait": 10})
        for wrong in ({"turns": 0}, {"turns": 101}, {"turns": "x"}):
            assert (await ada.get(f"{path}/view", params=wrong)).status_code == 422, wrong
        assert (await ada.get(f"{path}/view", params={"before": "trn_x"})).status_code == 404
        assert (await ada.get(f"{path}/view", params={"before": "\x00"})).status_code in (404, 422)
        assert (await eve.get(f"{path}/view")).status_code == 404
        assert (await eve.get(f"{path}/turns/{turn}/blocks/0")).status_code == 404
        assert (await ada.get(f"{path}/turns/{turn}/blocks/7")).status_code == 404
        assert (await ada.get(f"{path}/turns/trn_x/blocks/0")).status_code == 404
        assert (await ada.get(f"{path}/turns/{turn}/blocks/0")).json()["text"] == "1?"


async def test_a_page_has_at_most_a_mebibyte(database_url: str) -> None:
    """K6: what is larger is shown as its beginning with a link; the link gives all of it."""

    def note(words: str) -> str:
        return words[:8]

    sizes = [60_000, 500, *[50_000] * 30]
    calls = [call("note", words="ab" * (size // 2), call_id=f"c{n}") for n, size in enumerate(sizes)]
    many = [call("note", words="ab", call_id=f"d{n}") for n in range(200)]
    async with serving(Runtime(database_url)(scripted(calls, "Noted.", many, "All."), tools=[note])) as server:
        ada = await server.client()
        session = (await ada.post("/v1/sessions", json={})).json()["id"]
        path = f"/v1/sessions/{session}"
        turn = (await ada.post(f"{path}/messages", json={"text": "Note."})).json()["turn_id"]
        await ada.get(f"{path}/result", params={"wait": 20})
        answer = await ada.get(f"{path}/view")
        assert len(answer.content) <= PAGE
        blocks: list[dict[str, Any]] = answer.json()["turns"][0]["blocks"]
        assert len(blocks) == len(sizes) + 2
        by_call = {each["call_id"]: each["args"] for each in blocks if each["type"] == "call"}
        assert by_call["c1"] == {"words": "ab" * 250}, "what is small stays whole"
        assert by_call["c0"]["bytes"] > 60_000
        assert "abab" in by_call["c0"]["$preview"]
        whole = (await ada.get(by_call["c0"]["href"])).json()
        assert (whole["call_id"], whole["args"]) == ("c0", {"words": "ab" * 30_000})
        await ada.post(f"{path}/messages", json={"text": "More."})
        await ada.get(f"{path}/result", params={"wait": 20})
        page = await ada.get(f"{path}/view")
        assert len(page.content) <= PAGE
        assert [each["text"] for each in page.json()["turns"]] == ["All."], "the one before does not fit"
        older = await ada.get(f"{path}/view", params={"before": page.json()["next"]})
        assert [each["id"] for each in older.json()["turns"]] == [turn]


async def test_the_client_and_the_library_see_the_same(database_url: str) -> None:
    """K6: `Session.view` here and there."""
    async with serving(Runtime(database_url)(scripted("One."))) as server, client_of(server) as client:
        session = await client.sessions.create()
        await session.ask("1?")
        there = await session.view(turns=5)
        found = await server.outlast.owned_by("ada").get(session.id)
        here = await found.view(turns=5)
        assert there.model_dump() == here.model_dump()
