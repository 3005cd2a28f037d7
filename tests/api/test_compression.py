"""Answers are compressed for clients that take that; streams and files stay as they are (G3, E1)."""

from outlast import Attachment
from tests.support.network.server import frames, serving
from tests.support.turns.runtime import Runtime, scripted


async def test_long_answers_are_compressed_and_short_ones_are_not(runtime: Runtime) -> None:
    async with serving(runtime(scripted("word " * 4_000))) as server:
        ada = await server.client("ada")
        session = await server.outlast.owned_by("ada").create()
        await session.ask("Hello")
        result = f"/v1/sessions/{session.id}/result"
        long = await ada.get(result)
        assert long.headers["content-encoding"] == "gzip"
        assert long.json()["text"] == ("word " * 4_000)
        plain = await ada.get(result, headers={"accept-encoding": "identity"})
        assert "content-encoding" not in plain.headers
        assert plain.json() == long.json()
        assert "content-encoding" not in (await ada.get("/v1/agents")).headers


async def test_streams_are_not_held_back(runtime: Runtime) -> None:
    async with serving(runtime(scripted("word " * 4_000))) as server:
        ada = await server.client("ada")
        session = await server.outlast.owned_by("ada").create()
        await session.ask("Hello")
        path = f"/v1/sessions/{session.id}/events"
        async with ada.stream("GET", path, headers={"accept": "text/event-stream"}) as response:
            assert "content-encoding" not in response.headers
            async for frame in frames(response):
                if frame.data.get("type") == "turn.completed":
                    break


async def test_files_keep_their_bytes(runtime: Runtime) -> None:
    async with serving(runtime(scripted("Thanks."))) as server:
        ada = await server.client("ada")
        session = await server.outlast.owned_by("ada").create()
        await session.ask("Look.", files=[Attachment("notes.txt", b"line\n" * 4_000, "text/plain")])
        delivered = [each.data async for each in session.events(follow=False) if each.type == "input.delivered"]
        file = await ada.get(f"/v1/files/{delivered[0]['files'][0]['id']}", headers={"range": "bytes=0-9999"})
        assert file.status_code == 206
        assert "content-encoding" not in file.headers
        assert len(file.content) == 10_000
