"""One stream over all of an owner's sessions (E6, P4, P7)."""

from typing import Any

from tests.support.network.server import Frame, frames, serving
from tests.support.turns.runtime import Runtime

EVENTS = {"Accept": "text/event-stream"}


async def test_an_owner_follows_all_sessions_in_one_stream(runtime: Runtime) -> None:
    """E6: states of every session of the owner, resumable; another owner's never appear."""
    async with serving(runtime(["One.", "Two."])) as server:
        ada, ben = await server.client(), await server.client("ben")
        first, second = [(await ada.post("/v1/sessions", json={})).json()["id"] for _ in range(2)]
        await ben.post("/v1/sessions", json={})
        seen: list[Frame] = []
        async with ada.stream("GET", "/v1/events", headers=EVENTS) as response:
            async for each in frames(response):
                seen.append(each)
                if len(seen) == 2:
                    await ada.post(f"/v1/sessions/{first}/messages", json={"text": "hi"})
                if each.data["type"] == "turn.started":
                    break
        position = seen[-1].id
        assert position is not None
        async with ada.stream("GET", "/v1/events", headers={**EVENTS, "Last-Event-ID": position}) as response:
            async for each in frames(response):
                seen.append(each)
                if each.data["type"] == "turn.completed":
                    break
        assert {each.data["session_id"] for each in seen} == {first, second}
        numbers = [(each.data["session_id"], each.data["number"]) for each in seen]
        assert len(set(numbers)) == len(numbers)
        assert not [each for each in seen if each.data["type"].startswith("part.")]


async def test_words_come_of_the_sessions_asked_for(runtime: Runtime) -> None:
    """E6: deltas only of sessions asked for; pages give the same as the stream."""
    async with serving(runtime(["One."])) as server:
        ada, ben = await server.client(), await server.client("ben")
        session_id = (await ada.post("/v1/sessions", json={})).json()["id"]
        await ada.post(f"/v1/sessions/{session_id}/messages", json={"text": "hi"})
        await ada.get(f"/v1/sessions/{session_id}/result", params={"wait": 10})
        items: list[Any] = []
        cursor = ""
        while True:
            params = {"sessions": session_id, "limit": 3, **({"after": cursor} if cursor else {})}
            page = (await ada.get("/v1/events", params=params)).json()
            if not page["items"]:
                break
            items += page["items"]
            cursor = page["next"]
        assert "One." in "".join(each["data"]["text"] for each in items if each["type"] == "part.delta")
        assert len({each["number"] for each in items}) == len(items)
        foreign = await ben.get("/v1/events", params={"sessions": session_id}, headers=EVENTS)
        assert foreign.status_code == 404
        assert (await ada.get("/v1/events", params={"after": "nonsense"})).status_code == 422
