"""Reading a page of the web: its text, within limits, and nothing private."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai import Agent
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelMessage

from outlast import Outlast, Settings
from outlast.outgoing.addresses import networks
from outlast.testing import ScriptedModel, Step, call, tool_returns
from outlast.toolkit import fetch_tool
from outlast.toolkit.fetch import fetch
from outlast.toolkit.page_text import page_text

HERE = networks(["127.0.0.1/32"])


def said(body: bytes, kind: str = "text/html", status: str = "200 OK", more: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{more}Content-Length: {len(body)}\r\n\r\n".encode() + body


@asynccontextmanager
async def site(pages: dict[str, bytes | None]) -> AsyncGenerator[str]:
    """None: no answer at all."""

    open_ones: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_ones.add(writer)
        path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
        page = pages.get(path, said(b"nothing here", status="404 Not Found"))
        if page is not None:
            writer.write(page)
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for each in open_ones:
            each.close()


async def read(url: str, *, most_bytes: int = 100_000, timeout: float = 20) -> dict[str, object]:
    return await fetch(url, allowed=HERE, most_bytes=most_bytes, timeout=timeout)


async def test_the_text_of_a_page_is_read_without_scripts_and_styles() -> None:
    """A14."""
    page = (
        "<title>Fjords &amp; more</title><style>p{}</style><script>alert('x<b>')</script><h1>Oslo</h1><p>It  rains.<br>"
    )
    async with site({"/": said(page.encode(), "text/html; charset=utf-8")}) as url:
        found = await read(url)
    assert (found["title"], found["text"], found["status"]) == ("Fjords & more", "Oslo\nIt rains.", 200)


HOSTILE = {
    "tags": "<svg>" * 100_000 + "</style>" * 100_000,
    "open tags": "<a " * 300_000,
    "open comments": "<!--" * 300_000,
    "declarations": "<![" * 300_000,
    "quotes": "<a " + "x='" * 300_000 + '<b y="' * 100_000,
    "ends": "<script>" + "</script " * 100_000,
    "brackets": "<" * 500_000,
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", HOSTILE)
async def test_no_page_holds_up_the_process(name: str) -> None:
    """A14, P8: a text of half a megabyte is read in about a second, whatever a stranger has put into it."""
    async with site({"/": said(HOSTILE[name].encode())}) as url:
        assert (await read(url, most_bytes=1_500_000))["status"] == 200


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("a<svg/>b<script/>c", "abc"),
        ("<object><svg><p>x</object>b", "b"),
        ("<p title='a > b'>One</p>5 < 6 &amp; 7", "One\n5 < 6 & 7"),
        ("<textarea><b>x</b></textarea><TITLE>T</TITLE><STYLE>p</style>y", "<b>x</b>\ny"),
        ("<script>if (a < b) '</p>'</script ><noscript>n</noscript>z<!-- <p> -->", "z"),
        ('<!DOCTYPE html><?xml?>x<unknown-tag a="\'">y</unknown-tag>', "xy"),
        ("<p>cut off <a href='x", "cut off"),
    ],
)
def test_what_a_reader_would_see(html: str, text: str) -> None:
    """A14."""
    assert page_text(html)[1] == text


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(["<", ">", "/", "!--", "-->", "a", "svg", "script", "'", '"', "=", " ", "&", "x"])))
def test_any_text_is_taken(pieces: list[str]) -> None:
    """A14: however broken it is."""
    page_text("".join(pieces))


async def test_redirects_are_followed_and_each_is_judged_anew() -> None:
    """A14, G5: a public page cannot lead to a private one."""
    moved = {"/a": said(b"", status="302 Found", more="Location: /b\r\n"), "/b": said(b"plain", "text/plain")}
    moved["/inside"] = said(b"", status="307 So", more="Location: http://169.254.169.254/latest\r\n")
    moved["/file"] = said(b"", status="301 So", more="Location: file:///etc/passwd\r\n")
    moved["/round"] = said(b"", status="302 Found", more="Location: /round\r\n")
    async with site(dict(moved)) as url:
        assert (await read(f"{url}/a"))["text"] == "plain"
        with pytest.raises(ToolFailed, match="not a public address"):
            await read(f"{url}/inside")
        with pytest.raises(ToolFailed, match="begins with https"):
            await read(f"{url}/file")
        with pytest.raises(ToolFailed, match="more than 5 redirects"):
            await read(f"{url}/round")


async def test_large_silent_and_other_files_are_bounded_and_named() -> None:
    """A14: bytes, time and kind."""
    pages = {"/long": said(b"x" * 5_000, "text/plain"), "/pdf": said(b"%PDF", "application/pdf"), "/hangs": None}
    async with site(pages) as url:
        found = await read(f"{url}/long", most_bytes=1_000)
        assert (found["text"], "1000 bytes" in str(found["left_out"])) == ("x" * 1_000, True)
        assert "no text" in str((await read(f"{url}/pdf"))["message"])
        with pytest.raises(ToolFailed, match=r"was not read within|Timeout"):
            await read(f"{url}/hangs", timeout=0.2)


@pytest.mark.parametrize(
    "url",
    ["", "example.org", "ftp://example.org/", "http://", "http://[", "http://a:b@example.org/", "http://\0/", "x" * 99],
)
async def test_an_odd_address_is_refused_with_words(url: str) -> None:
    """A14."""
    with pytest.raises(ToolFailed):
        await read(url)


@pytest.mark.parametrize("allowed", [(), ("127.0.0.0/8",)])
async def test_private_addresses_are_refused_unless_the_operator_allows_them(
    tmp_path: Path, allowed: tuple[str, ...]
) -> None:
    """G5, A14: by the setting that webhooks have."""
    async with site({"/": said(b"inside", "text/plain")}) as url:

        def script(messages: list[ModelMessage]) -> Step:
            return "Done." if tool_returns(messages) else call("fetch_page", url=url)

        agent = Agent(ScriptedModel(script), tools=[fetch_tool()])
        settings = Settings(allowed_networks=allowed)
        async with Outlast(agent, database=tmp_path / "app.db", settings=settings) as outlast:
            [done] = (await (await outlast.sessions.create()).ask("Read it.")).calls
    assert (done.result["text"] == "inside") if allowed else "not a public address" in str(done)
