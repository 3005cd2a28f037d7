"""The console over a line that sleeps, below a path and behind a proxy, and when the server becomes another (K2)."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Mount, Route

from outlast import Outlast
from outlast.api import create_app
from tests.support.network.line import line_to
from tests.support.network.server import listening
from tests.support.processes.serving_process import ServingProcess
from tests.support.screens.browser import Page
from tests.support.screens.console import APP, MESSAGE, Console, elsewhere, send, until
from tests.support.turns.runtime import Runtime, scripted

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
_NEWER = """
from outlast.api.routes import feed
from tests.support.apps.console_app import app

feed.version = "99.0.0"
"""
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


@asynccontextmanager
async def _proxy(server: str, prefix: str) -> AsyncGenerator[str]:
    """A proxy that takes a prefix away and says nothing of it; the address below which it passes requests on."""
    async with httpx2.AsyncClient(base_url=server, timeout=60) as far:

        async def pass_on(request: Request) -> StreamingResponse:
            path = f"/{request.path_params['path']}"
            url = httpx2.URL(path, query=request.url.query.encode())
            asked = far.build_request(request.method, url, headers=request.headers.raw, content=await request.body())
            answer = await far.send(asked, stream=True)
            headers = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP_BY_HOP}
            return StreamingResponse(answer.aiter_raw(), answer.status_code, headers)

        methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
        async with listening(Starlette(routes=[Route(f"{prefix}/{{path:path}}", pass_on, methods=methods)])) as url:
            yield f"{url}{prefix}"


@asynccontextmanager
async def _mounted(outlast: Outlast[Any, Any], path: str) -> AsyncGenerator[str]:
    async with listening(Starlette(routes=[Mount(path, create_app(outlast))])) as url:
        yield f"{url}{path}"


async def test_a_laptop_that_slept_goes_on_where_it_was(tmp_path: Path, page: Page) -> None:
    """K2, D3: the connection is dead and nobody says so, while the server goes on; what was said meanwhile comes by
    itself, each word once, and what is written goes out."""
    with ServingProcess(tmp_path, app=APP, environment={"OUTLAST_HEARTBEAT": "1"}) as server:
        async with line_to(server.port) as line:
            console = Console(server, line.url)
            await console.sign_in(page)
            session_id = await console.begin(page, "slow nap")
            await page.wait_for("[data-open] >> text=One")
            other = page.tab("other")
            await other.open(await page.evaluate("location.href"))
            await other.wait_for("[data-open] >> text=One")
            line.sleep()
            console.open_gate("nap")
            async with server.client() as api:
                assert (await api.get(f"/v1/sessions/{session_id}/result?wait=30")).json()["state"] == "completed"
            assert "One two." not in await page.texts("[data-block=text]")
            line.wake()
            for each in (page, other):
                await each.wait_for("text=One two.")
                await each.wait_for("[data-turn][data-state=completed]")
                await console.is_as_the_server_says(each)
            await send(page, "hello")
            for each in (page, other):
                await each.wait_for("text=Hello there.")
                await console.is_as_the_server_says(each)
            assert await page.problems() == []
            for each in (page, other):
                await each.open("about:blank")


async def test_it_works_behind_a_proxy_that_says_nothing_of_its_prefix(tmp_path: Path, page: Page) -> None:
    """K2: signed in, a chat, its stream, a reload of an inner address, and the other pages."""
    with ServingProcess(tmp_path, app=APP) as server:
        async with _proxy(server.place.url, "/tools/agents") as url:
            console = Console(server, url)
            await console.sign_in(page)
            await console.begin(page, "slow proxied")
            await page.wait_for("[data-open] >> text=One")
            assert "/tools/agents/sessions/ses_" in await page.evaluate("location.pathname")
            await page.reload()
            await page.wait_for("[data-open] >> text=One")
            console.open_gate("proxied")
            await page.wait_for("text=One two.")
            await console.is_as_the_server_says(page)
            await page.click("nav[aria-label=Places] >> text=Tasks")
            await page.wait_for("text=No tasks yet")
            assert await page.evaluate("location.pathname") == "/tools/agents/tasks"
            assert await elsewhere(page) == []
            assert await page.problems() == []
            await page.open("about:blank")


async def test_it_works_where_outlast_is_mounted_in_another_app(runtime: Runtime, page: Page) -> None:
    """K2: also an inner address that is opened at once."""
    async with runtime(scripted("Hello there.")) as outlast, _mounted(outlast, "/below/here") as url:
        _, key = await outlast.keys.make("ada", "test", role="admin")
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}) as api:
            token = (await api.post(f"{url}/v1/login/links")).raise_for_status().json()["token"]
        await page.open(f"{url}/#token={token}")
        await page.wait_for(MESSAGE)
        await send(page, "hello")
        await page.wait_for("text=Hello there.")
        await page.wait_for("[data-turn][data-state=completed]")
        await page.open(await page.evaluate("location.href"))
        await page.wait_for("text=Hello there.")
        await page.open(f"{url}/usage")
        await page.wait_for("text=This week")
        assert await elsewhere(page) == []
        assert await page.problems() == []
        await page.open("about:blank")


async def test_a_page_whose_server_was_updated_says_so(tmp_path: Path, page: Page) -> None:
    """K2: it goes on working, and offers to be loaded anew; what was begun is still there then."""
    with ServingProcess(tmp_path, app=APP) as server:
        console = Console(server)
        await console.sign_in(page)
        await console.begin(page, "hello")
        await page.wait_for("text=Hello there.")
        port = server.port
    newer = tmp_path / "newer.py"
    newer.write_text(_NEWER)
    with ServingProcess(tmp_path, app="newer.py", port=port):
        await page.wait_for("[data-outdated]")
        await page.fill(MESSAGE, "half a thou")
        await page.click("text=Load the page anew")
        await until(page, "!document.querySelector('[data-outdated]') && document.querySelector('textarea')?.value")
        assert await page.evaluate("document.querySelector('textarea').value") == "half a thou"
        # While nothing listened, each try was an error that the browser itself writes down.
        assert [each for each in await page.problems() if "ERR_" not in each] == []
        await page.open("about:blank")
