"""One stream over all of an owner's sessions (E6, P4, P7)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import httpx2
from pydantic_ai import Tool
from pydantic_core import from_json

import outlast
from outlast import hints
from outlast.client.streams import FeedStream
from outlast.store.repositories.outputs import HEAD, TAIL
from outlast.testing import call
from tests.support.moments.checkpoint import Checkpoint
from tests.support.network.server import Frame, client_of, frames, serving
from tests.support.turns.runtime import Runtime, scripted

EVENTS = {"Accept": "text/event-stream"}


async def facts(response: httpx2.Response) -> AsyncIterator[Frame]:
    """Without what is said to this reader only."""
    async for each in frames(response):
        if not each.data["type"].startswith("stream."):
            yield each


async def test_an_owner_follows_all_sessions_in_one_stream(runtime: Runtime) -> None:
    """E6: states of every session of the owner, resumable; another owner's never appear."""
    async with serving(runtime(["One.", "Two."])) as server:
        ada, ben = await server.client(), await server.client("ben")
        first, second = [(await ada.post("/v1/sessions", json={})).json()["id"] for _ in range(2)]
        await ben.post("/v1/sessions", json={})
        seen: list[Frame] = []
        async with ada.stream("GET", "/v1/events", headers=EVENTS) as response:
            async for each in facts(response):
                seen.append(each)
                if len(seen) == 2:
                    await ada.post(f"/v1/sessions/{first}/messages", json={"text": "hi"})
                if each.data["type"] == "turn.started":
                    break
        position = seen[-1].id
        assert position is not None
        async with ada.stream("GET", "/v1/events", headers={**EVENTS, "Last-Event-ID": position}) as response:
            async for each in facts(response):
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


async def test_a_stream_says_where_it_was_opened_and_when_it_is_live(runtime: Runtime) -> None:
    """E6: first `stream.opened`, after what was there `stream.live`, both without an id; comments while it is still."""
    async with serving(runtime(["One."], heartbeat="PT0.1S")) as server:
        ada = await server.client()
        created = (await ada.post("/v1/sessions", json={})).json()["id"]
        async with asyncio.timeout(20), ada.stream("GET", "/v1/events", headers=EVENTS) as response:
            lines: list[str] = []
            async for line in response.aiter_lines():
                lines.append(line)
                if line.startswith(":"):
                    break
        told = [from_json(line[6:]) for line in lines if line.startswith("data: ")]
        assert [each["type"] for each in told] == ["stream.opened", "session.created", "stream.live"]
        opened = told[0]["data"]
        assert {"cursor", "now", "version", "heartbeat_seconds", "outputs"} == opened.keys()
        assert (opened["cursor"], opened["version"], opened["heartbeat_seconds"]) == ("1.0", outlast.__version__, 0.1)
        assert [line for line in lines if line.startswith("id: ")] == ["id: 1.1"]
        assert (told[0]["session_id"], told[1]["session_id"]) == (None, created)


async def test_a_session_is_told_from_the_position_that_is_asked_for(runtime: Runtime) -> None:
    """E6: a page that has a session up to an event goes on there, over a cut too; no position is refused."""
    async with serving(runtime(["One.", "Two."])) as server:
        ada, ben = await server.client(), await server.client("ben")
        one, two = [(await ada.post("/v1/sessions", json={})).json()["id"] for _ in range(2)]
        for each in (one, two):
            await ada.post(f"/v1/sessions/{each}/messages", json={"text": "hi"})
            await ada.get(f"/v1/sessions/{each}/result", params={"wait": 10})
        log = (await ada.get(f"/v1/sessions/{one}/events")).json()["items"]
        position, end = log[3]["number"], (await ada.get("/v1/events", params={"after": "now"})).json()["next"]
        params = {"after": end, "sessions": f"{one}:{position},{two}:now"}
        seen = await until_live(ada, params)
        assert [each.data for each in seen] == log[4:]
        resumed = await until_live(ada, params, {"Last-Event-ID": seen[2].id or ""})
        assert [each.data for each in resumed] == log[7:], "the cursor of the reader that comes back counts"
        again = await until_live(ada, {**params, "after": seen[2].id or ""})
        assert [each.data for each in again] == log[4:], "who asks for a position anew is given it"
        assert (await ada.get("/v1/events", params=params)).json()["items"] == log[4:]
        for wrong in (f"{one}:-1", f"{one}:x", f"{one}:{'9' * 19}"):
            assert (await ada.get("/v1/events", params={"sessions": wrong})).status_code == 422
        assert (await ben.get("/v1/events", params={"sessions": f"{one}:now"})).status_code == 404


async def until_live(
    client: httpx2.AsyncClient, params: dict[str, str], headers: dict[str, str] | None = None
) -> list[Frame]:
    """What is told of what is there."""
    seen: list[Frame] = []
    async with (
        asyncio.timeout(20),
        client.stream("GET", "/v1/events", params=params, headers={**EVENTS, **(headers or {})}) as response,
    ):
        async for each in frames(response):
            if each.data["type"] == "stream.live":
                break
            if each.id is not None:
                seen.append(each)
    return seen


async def test_the_output_of_tasks_comes_with_the_feed(runtime: Runtime) -> None:
    """B4, E6: from an offset or from now on, to its end; of the owner's tasks only, and only in a stream."""
    here = Checkpoint()
    lines = [f"line {number}\n" for number in range(300)]

    async def survey() -> str:
        outlast.output("before\n")
        await here()
        for line in lines:
            outlast.output(line)
            await asyncio.sleep(0)
        return "done"

    tool = Tool(survey, metadata=hints(budget=0.01))
    scripted_steps = scripted(call("survey"), "Running.", "Done.")
    async with serving(runtime(scripted_steps, tools=[tool])) as server, client_of(server) as client:
        ada, ben = await server.client(), await server.client("ben")
        session = await client.sessions.create()
        await (await session.send("go")).outcome(wait=10)
        [task] = await session.tasks()
        async with asyncio.timeout(10):
            while not (await client.tasks.output(task.id)).text:  # noqa: ASYNC110 - over HTTP
                await asyncio.sleep(0.02)
        text: dict[str, str] = {"0": "", "end": ""}
        async with asyncio.timeout(30), AsyncExitStack() as stack:
            feeds = {
                where: await stack.enter_async_context(client.events(after="now", outputs=[f"{task.id}:{where}"]))
                for where in text
            }
            following = {where: asyncio.create_task(_output(feed)) for where, feed in feeds.items()}
            while not all(feed.is_live for feed in feeds.values()):  # noqa: ASYNC110 - it tells nobody else
                await asyncio.sleep(0.02)
            here.open()
            found = {where: await each for where, each in following.items()}
        assert found == {"0": "before\n" + "".join(lines), "end": "".join(lines)}
        for client_, status in ((ben, 404), (ada, 200)):
            async with client_.stream("GET", "/v1/events", params={"outputs": task.id}, headers=EVENTS) as response:
                assert response.status_code == status
        for wrong in (f"{task.id}:x", f"{task.id}:now"):
            assert (await ada.get("/v1/events", params={"outputs": wrong}, headers=EVENTS)).status_code == 422
        assert (await ada.get("/v1/events", params={"outputs": "tsk_unknown"}, headers=EVENTS)).status_code == 404
        assert (await ada.get("/v1/events", params={"outputs": task.id})).status_code == 422


async def test_a_stream_tells_how_much_of_an_output_is_no_longer_kept(runtime: Runtime) -> None:
    """B4, E6: of a long output its head and its tail are told, and between them how many characters are missing."""
    line = f"{'x' * 1023}\n"
    count = (HEAD + 3 * TAIL) // len(line)

    async def survey() -> str:
        for _ in range(count):
            outlast.output(line)
        return "done"

    async with serving(runtime(["Done."], tools=[Tool(survey)])) as server, client_of(server) as client:
        session = await client.sessions.create()
        task = await client.tasks.wait((await session.spawn("survey")).id, seconds=30)
        assert task.state == "succeeded"
        offset, kept, missing = 0, 0, list[int]()
        async with asyncio.timeout(30), client.events(after="now", outputs=[f"{task.id}:0"]) as feed:
            async for _, event in feed:
                if event.type != "task.output":
                    continue
                data = event.data
                assert data["offset"] == offset + data["cut"]
                assert data["text"] == (line * count)[data["offset"] : data["next_offset"]]
                offset, kept = data["next_offset"], kept + len(data["text"])
                missing += [data["cut"]] if data["cut"] else []
                if offset == len(line) * count:
                    break
        assert len(missing) == 1
        assert missing[0] >= TAIL
        assert (kept >= HEAD + TAIL, kept + missing[0]) == (True, len(line) * count)


async def _output(feed: FeedStream) -> str:
    """All that is told until it ends with the last line."""
    text, offset = "", None
    async for _, event in feed:
        if event.type == "task.output":
            assert offset in (None, event.data["offset"])
            assert event.data["cut"] == 0
            text += event.data["text"]
            offset = event.data["next_offset"]
            if text.endswith("line 299\n"):
                return text
    raise AssertionError("it ended")
