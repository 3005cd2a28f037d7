"""Messages over HTTP: accepted, streamed, steered, waited for (D1, D2, D5, D6, D7, E1)."""

from typing import Any

import httpx2

from outlast.testing import gate, text
from tests.support.moments.checkpoint import Checkpoint
from tests.support.network.server import Frame, frames, serving
from tests.support.turns.runtime import Runtime, scripted

EVENTS = {"Accept": "text/event-stream"}


async def new_session(client: httpx2.AsyncClient, **body: Any) -> str:
    made = await client.post("/v1/sessions", json=body)
    assert made.status_code == 201, made.text
    return f"/v1/sessions/{made.json()['id']}"


def said(seen: list[Frame]) -> str:
    return "".join(each.data["data"]["text"] for each in seen if each.data["type"] == "part.delta")


async def test_a_message_is_accepted_and_answered(runtime: Runtime) -> None:
    """D1, D7: 202 with the input and the turn; the result waits for the end."""
    async with serving(runtime(["Hello Ada."])) as server:
        ada = await server.client()
        session = await new_session(ada)
        sent = await ada.post(f"{session}/messages", json={"text": "hi"})
        assert sent.status_code == 202
        assert sent.json()["input_id"].startswith("inp_")
        result = (await ada.get(f"{session}/result", params={"wait": 10})).json()
        assert (result["state"], result["text"], result["turn_id"]) == (
            "completed",
            "Hello Ada.",
            sent.json()["turn_id"],
        )


async def test_a_message_can_be_answered_by_a_stream(runtime: Runtime) -> None:
    """E1: the acceptance first, then the log until the turn has ended; ids on log events only."""
    async with serving(runtime(["Hello Ada."])) as server:
        ada = await server.client()
        session = await new_session(ada)
        async with ada.stream("POST", f"{session}/messages", json={"text": "hi"}, headers=EVENTS) as response:
            assert response.status_code == 202
            seen = [each async for each in frames(response)]
        assert (seen[0].id, seen[0].data["type"]) == (None, "accepted")
        assert [each.data for each in seen[1:3]] == (await ada.get(f"{session}/events")).json()["items"][1:3]
        assert said(seen) == "Hello Ada."
        assert seen[-1].data["type"] == "turn.completed"
        assert [int(each.id or 0) for each in seen[1:]] == [each.data["number"] for each in seen[1:]]


async def test_a_client_that_goes_away_stops_nothing(runtime: Runtime) -> None:
    """D6, P4: the turn goes on; the stream is picked up where it was left."""
    here = Checkpoint()
    async with serving(runtime([[text("Once upon"), gate(here), text(" a time")]])) as server:
        ada = await server.client()
        session = await new_session(ada)
        seen: list[Frame] = []
        async with ada.stream("POST", f"{session}/messages", json={"text": "hi"}, headers=EVENTS) as response:
            async for each in frames(response):
                seen.append(each)
                if each.data["type"] == "part.delta":
                    break
        await here.reached()
        here.open()
        position = seen[-1].id
        assert position is not None
        async with ada.stream("GET", f"{session}/events", headers={**EVENTS, "Last-Event-ID": position}) as response:
            async for each in frames(response):
                seen.append(each)
                if each.data["type"] == "turn.completed":
                    break
        assert said(seen) == "Once upon a time"


async def test_a_message_to_a_busy_session_has_its_place(runtime: Runtime) -> None:
    """D1, D2: accepted with its place; can be read, changed and taken back until it is delivered."""
    here = Checkpoint()
    async with serving(runtime(scripted([gate(here), text("One.")], "Two."))) as server:
        ada = await server.client()
        session = await new_session(ada)
        await ada.post(f"{session}/messages", json={"text": "first"})
        await here.reached()
        sent = (await ada.post(f"{session}/messages", json={"text": "second", "when_busy": "queue"})).json()
        assert (sent["turn_id"], sent["position"]) == (None, 1)
        third = (await ada.post(f"{session}/messages", json={"text": "third", "when_busy": "queue"})).json()
        rejected = await ada.post(f"{session}/messages", json={"text": "no", "when_busy": "reject"})
        assert (rejected.status_code, rejected.json()["code"]) == (409, "session_busy")
        edited = await ada.patch(f"{session}/inbox/{sent['input_id']}", json={"text": "second, but better"})
        assert edited.json()["text"] == "second, but better"
        assert (await ada.delete(f"{session}/inbox/{third['input_id']}")).status_code == 204
        assert [each["text"] for each in (await ada.get(f"{session}/inbox")).json()["items"]] == ["second, but better"]
        here.open()
        result = (await ada.get(f"{session}/result", params={"wait": 10, "until": "settled"})).json()
        assert result["text"] == "Two."


async def test_the_same_message_sent_twice_is_one_message(runtime: Runtime) -> None:
    """D2: an idempotency key; the stream of the repeat tells the same turn."""
    async with serving(runtime(["Hello Ada."])) as server:
        ada = await server.client()
        session = await new_session(ada)
        key = {"Idempotency-Key": "abc"}
        first = (await ada.post(f"{session}/messages", json={"text": "hi"}, headers=key)).json()
        await ada.get(f"{session}/result", params={"wait": 10})
        again = (await ada.post(f"{session}/messages", json={"text": "hi"}, headers=key)).json()
        assert (again["input_id"], again["is_repeat"]) == (first["input_id"], True)
        async with ada.stream(
            "POST", f"{session}/messages", json={"text": "hi"}, headers={**key, **EVENTS}
        ) as response:
            seen = [each async for each in frames(response)]
        assert said(seen) == "Hello Ada."
        assert len((await ada.get(f"{session}/messages")).json()["items"]) == 2


async def test_stop_holds_and_resume_goes_on(runtime: Runtime) -> None:
    """D5, P6: Stop answers when the turn has ended; what waits stays until resume."""
    here = Checkpoint()
    async with serving(runtime(scripted([text("Once"), gate(here)], "Again."))) as server:
        ada = await server.client()
        session = await new_session(ada)
        await ada.post(f"{session}/messages", json={"text": "first"})
        await here.reached()
        await ada.post(f"{session}/messages", json={"text": "second", "when_busy": "queue"})
        stopped = (await ada.post(f"{session}/stop", json={})).json()
        assert stopped["state"] == "stopped"
        assert (await ada.get(session)).json()["state"] == "held"
        assert (await ada.post(f"{session}/resume")).json()["turn_id"] is not None
        assert (await ada.get(f"{session}/result", params={"wait": 10})).json()["text"] == "Again."
        assert (await ada.post(f"{session}/retry")).status_code == 409


async def test_events_come_as_pages_too(runtime: Runtime) -> None:
    """E1: the same log, for clients that ask instead of listening."""
    async with serving(runtime(["Hello Ada."])) as server:
        ada = await server.client()
        session = await new_session(ada)
        await ada.post(f"{session}/messages", json={"text": "hi"})
        await ada.get(f"{session}/result", params={"wait": 10})
        everything = (await ada.get(f"{session}/events")).json()
        paged: list[Any] = []
        position = 0
        while (page := (await ada.get(f"{session}/events", params={"after": position, "limit": 3})).json())["items"]:
            paged += page["items"]
            position = page["next"]
        assert paged == everything["items"]
        ends = (await ada.get(f"{session}/events", params={"types": "turn.completed"})).json()["items"]
        assert [each["type"] for each in ends] == ["turn.completed"]
        assert (await ada.get(f"{session}/events", headers={"Last-Event-ID": "x"})).status_code == 422
