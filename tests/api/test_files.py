"""Files that are kept with a session are read by their owner, and can do nothing in a browser."""

import asyncio
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai import Tool
from typer.testing import CliRunner

import outlast as public
from outlast import Client
from outlast.api.routes.files import disposition
from outlast.cli.main import app
from outlast.errors import Conflict, NotFound
from outlast.handles.files import StoredFile
from outlast.testing import call
from outlast.wire.attachment import Attachment
from tests.support.network.server import client_of, serving
from tests.support.turns.runtime import Runtime, events_of, scripted

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(92))


def draw() -> str:
    """Draw."""
    public.artifact("../river map.html", b"<script>alert(1)</script>", "text/html")
    return "x" * 600_000


async def test_files_of_messages_and_calls_are_read(runtime: Runtime, tmp_path: Path) -> None:
    """A3, D12, K1: over HTTP, with the client, the command and the library: the same bytes, name and type."""
    async with serving(runtime(scripted([call("draw")], "Done."), tools=[Tool(draw)])) as server:
        _, token = await server.outlast.keys.make("ada", "laptop")
        async with Client(server.url, token) as client:
            session = await client.sessions.create()
            await (await session.send("Go", files=[Attachment("rhine.png", PNG, "image/png")])).outcome(wait=20)
            here = await server.outlast.owned_by("ada").get(session.id)
            [given, *_] = await events_of(here, "input.accepted")
            [ended] = await events_of(here, "call.ended")
            image, page = given.data["files"][0]["id"], ended.data["artifacts"][0]["id"]
            assert image.startswith("fil_")
            found = await client.files.get(image)
            assert (found.name, found.media_type, found.data) == ("rhine.png", "image/png", PNG)
            kept = await server.outlast.files_of("ada").get(page)
            assert (kept.media_type, kept.data) == ("text/html", b"<script>alert(1)</script>")
            with pytest.raises(NotFound):
                await server.outlast.files_of("ben").get(page)
        target = tmp_path / "out.png"
        asked = ["files", "get", image, "--to", str(target), "--url", server.url, "--token", token]
        assert (await asyncio.to_thread(CliRunner().invoke, app, asked)).exit_code == 0
        assert target.read_bytes() == PNG
        ada = await server.client()
        answer = await ada.get(f"/v1/files/{page}")
        assert answer.headers["content-disposition"].startswith('attachment; filename="river map.html"')
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"
        for wrong in (f"fil_{'0' * 26}_{'0' * 64}", "x", "..%2f..%2fetc", f"fil_{here.id[4:]}_{'0' * 64}", "%00"):
            assert (await ada.get(f"/v1/files/{wrong}")).status_code == 404, wrong


async def test_a_file_is_read_in_ranges(runtime: Runtime) -> None:
    """D12: 206 and 416, HEAD without a body, 304 for what is still the same; odd ranges get the whole."""
    async with serving(runtime(scripted("Seen."))) as server, client_of(server) as client:
        session = await client.sessions.create()
        await (await session.send("Look", files=[Attachment("a.png", PNG, "image/png")])).outcome(wait=20)
        here = await server.outlast.owned_by("ada").get(session.id)
        path = f"/v1/files/{(await events_of(here, 'input.accepted'))[0].data['files'][0]['id']}"
        ada = await server.client()
        whole = await ada.get(path)
        assert (whole.status_code, whole.headers["content-type"], whole.content) == (200, "image/png", PNG)
        assert whole.headers["content-disposition"].startswith("inline")
        head = await ada.head(path)
        assert (head.status_code, head.headers["content-length"], head.content) == (200, "100", b"")
        for asked, first, last in (("0-9", 0, 9), ("90-", 90, 99), ("-5", 95, 99), ("98-500", 98, 99)):
            part = await ada.get(path, headers={"Range": f"bytes={asked}"})
            assert (part.status_code, part.headers["content-range"]) == (206, f"bytes {first}-{last}/100")
            assert part.content == PNG[first : last + 1]
        for asked in ("100-", "-0", "9-3"):
            none = await ada.get(path, headers={"Range": f"bytes={asked}"})
            assert (none.status_code, none.headers["content-range"], none.content) == (416, "bytes */100", b"")
        for odd in ("bytes=0-1,3-4", "bytes=x-1", "bytes=-", "lines=1-2"):
            assert (await ada.get(path, headers={"Range": odd})).content == PNG
        same = await ada.get(path, headers={"If-None-Match": whole.headers["etag"]})
        assert (same.status_code, same.content) == (304, b"")
        other = await ada.get(path, headers={"Range": "bytes=0-9", "If-Range": '"other"'})
        assert (other.status_code, other.content) == (200, PNG)


async def test_a_large_value_is_a_preview_with_its_file(runtime: Runtime) -> None:
    """K2: events over HTTP tell where the whole is, and never how it is kept."""
    words = "ö" * 300_000
    async with serving(runtime(scripted([call("echo", words=words)], "Done."), tools=[Tool(len_of)])) as server:
        ada = await server.client()
        session = f"/v1/sessions/{(await ada.post('/v1/sessions', json={})).json()['id']}"
        await ada.post(f"{session}/messages", json={"text": "Go"})
        await ada.get(f"{session}/result", params={"wait": 20})
        page = await ada.get(f"{session}/events", params={"types": "call.started,call.ended"})
        assert '"$file"' not in page.text
        value = page.json()["items"][0]["data"]["args"]["words"]
        assert (value["bytes"], value["href"]) == (600_000, f"/v1/files/{value['file_id']}")
        assert value["$preview"].startswith("öööö")
        assert (await ada.get(value["href"])).text == words
        async with ada.stream(
            "GET", f"{session}/events", headers={"Accept": "text/event-stream"}, params={"types": "call.started"}
        ) as stream:
            async for line in stream.aiter_lines():
                if line.startswith("data:"):
                    assert value["file_id"] in line
                    assert '"$file"' not in line
                    break


def len_of(words: str) -> int:
    return len(words)


len_of.__name__ = "echo"


@pytest.mark.parametrize(
    "name",
    ['a"b\r\nSet-Cookie: x=1', "../../etc/passwd", "C:\\temp\\x.exe", "ünïcödé 河.txt", "", ".", "\x00\x07", "x" * 900],
)
def test_names_are_safe_in_headers(name: str) -> None:
    """D12: whatever a tool or a person called a file."""
    said = disposition(StoredFile("fil_a_b", name, "text/html", b""))
    assert said.isascii()
    assert said.isprintable()
    assert said.count('"') == 2
    assert "/" not in said
    assert "\\" not in said
    assert len(said) < 1_500


async def test_files_are_uploaded_listed_and_deleted(runtime: Runtime, tmp_path: Path) -> None:
    """D12, K1: over HTTP, with the client, the command and the library; a name that is taken gets a number."""
    async with serving(runtime(scripted("Done."))) as server:
        _, token = await server.outlast.keys.make("ada", "laptop")
        async with Client(server.url, token) as client:
            session = await client.sessions.create()
            first = await session.files.add("rhine.png", PNG, "image/png")
            again = await session.files.add("rhine.png", PNG, "image/png")
            other = await session.files.add("rhine.png", b"another", "image/png; x=y")
            assert (first, first.origin, other.name) == (again, "upload", "rhine (2).png")
            assert [each.name for each in await session.files.list()] == ["rhine (2).png", "rhine.png"]
            page = await session.files.page(limit=1)
            assert (page.items, page.next) == ([other], "rhine (2).png")
            here = await server.outlast.owned_by("ada").get(session.id)
            assert await here.files.list() == await session.files.list()
            await client.files.delete(other.id)
            with pytest.raises(NotFound):
                await client.files.get(other.id)
            with pytest.raises(NotFound):
                await client.files.delete(other.id)
            assert (await client.files.get(first.id)).data == PNG
        told = ["--url", server.url, "--token", token]
        source = tmp_path / "levels.csv"
        source.write_text("3\n5\n")
        run = CliRunner().invoke
        assert (await asyncio.to_thread(run, app, ["files", "put", session.id, str(source), *told])).exit_code == 0
        listed = await asyncio.to_thread(run, app, ["files", "list", session.id, "--json", *told])
        assert '"media_type": "text/csv"' in listed.output
        [kept, _] = await here.files.list()
        assert (await asyncio.to_thread(run, app, ["files", "delete", kept.id, *told])).exit_code == 0
        assert [each.name for each in await here.files.list()] == ["rhine.png"]


async def test_what_is_no_file_or_too_much_is_refused_with_words(runtime: Runtime) -> None:
    """D12: odd names, wrong types, huge uploads, and more than a session may have."""
    async with serving(runtime(scripted("Done."), max_file_bytes=1_000, max_session_bytes=1_500)) as server:
        ada = await server.client()
        session_id = (await ada.post("/v1/sessions", json={})).json()["id"]
        path = f"/v1/sessions/{session_id}/files"

        async def refused(status: int, name: str, content: bytes = b"x", kind: str = "text/plain") -> str:
            answer = await ada.post(path, params={"name": name}, content=content, headers={"Content-Type": kind})
            assert answer.status_code == status, answer.text
            return answer.text

        assert "names only" in await refused(422, "../../etc/passwd")
        assert "do not show" in await refused(422, "a\x00b")
        assert "media type" in await refused(422, "a", kind="nonsense")
        assert "at most 1000" in await refused(413, "a", b"x" * 1_001)
        assert (await ada.post(path, params={"name": "a"}, content=bytes(range(250)) * 4)).status_code == 201
        assert "at most 1500" in await refused(413, "b", b"x" * 600)
        assert (await ada.post(path)).status_code == 422


async def test_files_of_messages_and_calls_stay_as_long_as_their_session(runtime: Runtime) -> None:
    """D12, D3: they are listed, not deleted alone, and gone with it, rows and bytes."""
    async with runtime(scripted([call("draw")], "Done."), tools=[Tool(draw)]) as outlast:
        session = await outlast.sessions.create()
        await session.ask("Go", files=[Attachment("rhine.png", PNG, "image/png")])
        kept = {each.name: each for each in await session.files.list()}
        assert {name: each.origin for name, each in kept.items()} == {
            "rhine.png": "message",
            "river map.html": "artifact",
        }
        for each in kept.values():
            with pytest.raises(Conflict, match="as long as the session"):
                await outlast.files.delete(each.id)
        await outlast.sessions.delete(session.id)
        await eventually_gone(runtime.files / session.id)


async def eventually_gone(folder: Path) -> None:
    async with asyncio.timeout(20):
        while folder.exists():  # noqa: ASYNC110, ASYNC240
            await asyncio.sleep(0.02)


async def test_what_a_message_holds_too_stays_when_an_upload_is_deleted(runtime: Runtime) -> None:
    """D12: the name goes; history and its images are whole."""
    async with runtime(scripted("A river.", "Yes.")) as outlast:
        session = await outlast.sessions.create()
        kept = await session.files.add("rhine.png", PNG, "image/png")
        await session.ask("What is this?", files=[kept.id])
        await session.files.delete("rhine.png")
        assert await session.files.list() == []
        assert (await outlast.files.get(kept.id)).data == PNG
        assert (await session.ask("Sure?")).text == "Yes."
        for wrong in ("rhine.png", "../x", "", "fil_x"):
            with pytest.raises(NotFound):
                await session.files.delete(wrong)


def words_of(shown: str) -> str:
    """Without the frame and the line ends that a long path makes."""
    return re.sub(r"[\s│]+", " ", shown)


async def test_the_command_writes_over_nothing_and_through_no_link(runtime: Runtime, tmp_path: Path) -> None:
    """D12: a link that leads elsewhere is there already, also if nothing is at its end."""
    secret, link = tmp_path / "secret", tmp_path / "link"
    link.symlink_to(secret)
    async with serving(runtime(scripted("Done."))) as server:
        _, token = await server.outlast.keys.make("ada", "laptop")
        session = await server.outlast.owned_by("ada").create()
        kept = await session.files.add("a.txt", b"x", "text/plain")
        asked = ["files", "get", kept.id, "--to", str(link), "--url", server.url, "--token", token]
        done = await asyncio.to_thread(CliRunner().invoke, app, asked)
        assert (done.exit_code, "is there already" in words_of(done.output)) == (2, True)
    assert not secret.exists()


async def test_the_command_says_what_it_cannot_read_or_write(runtime: Runtime, tmp_path: Path) -> None:
    """D12: a folder that is not there, and what has no end."""
    async with serving(runtime(scripted("Done."))) as server:
        _, token = await server.outlast.keys.make("ada", "laptop")
        session = await server.outlast.owned_by("ada").create()
        kept = await session.files.add("a.txt", b"x", "text/plain")
        here = ["--url", server.url, "--token", token]
        for asked, said in (
            (["get", kept.id, "--to", str(tmp_path / "none" / "a.txt")], "cannot be written"),
            (["put", session.id, "/dev/zero"], "is no file"),
        ):
            done = await asyncio.to_thread(CliRunner().invoke, app, ["files", *asked, *here])
            assert (done.exit_code, said in words_of(done.output)) == (2, True), done.output


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200), st.sampled_from(["image/png", "text/html", "text/plain"]))
def test_no_name_gets_out_of_its_header(name: str, media_type: str) -> None:
    """D12, G2: whatever a file is called."""
    said = disposition(StoredFile("fil_x", name, media_type, b""))
    assert said.isascii()
    assert said.isprintable()
    kind, plain, whole = said.split("; ")
    assert kind == ("attachment" if media_type == "text/html" else "inline")
    assert plain.count('"') == 2
    assert not set("/\\") & set(plain)
    assert re.fullmatch(r"filename\*=UTF-8''[\w.%~!$&+^`|-]+", whole, re.ASCII)
