"""The console of a server process in a real browser: signed in, and what it shows beside what the server says."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from outlast.api.routes.server.page import BUILT
from tests.support.processes.serving_process import ServingProcess
from tests.support.screens.browser import Page

APP = "tests.support.apps.console_app:app"
AXE = Path(__file__).parents[3] / "web" / "node_modules" / "axe-core" / "axe.min.js"
MESSAGE = "textarea[aria-label=Message]"
_SHOWN = """[...document.querySelectorAll('[data-turn]')].flatMap((turn) =>
  [...turn.querySelectorAll(':scope [data-block]')].map((block) => {
    const kind = block.dataset.block;
    if (kind === 'call') return `call ${block.dataset.tool} ${block.dataset.outcome}`;
    if (kind === 'wake') return 'wake';
    return `${kind} ${(block.querySelector('[data-text]') ?? block).textContent.trim()}`;
  }))"""
_SERIOUS = """axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations
  .filter(({ impact }) => impact === 'serious' || impact === 'critical')
  .map(({ id, nodes }) => `${id}: ${nodes.map((each) => each.html).join(' ').slice(0, 400)}`))"""


@dataclass(frozen=True)
class Console:
    """One server. `open_gate` lets what waits for a name go on."""

    server: ServingProcess
    url: str = ""
    """Where the browser finds it, if not straight at the server."""

    @property
    def address(self) -> str:
        return self.url or self.server.place.url

    def open_gate(self, name: str) -> None:
        (self.server.folder / f"{name}.open").touch()

    def api(self) -> httpx2.AsyncClient:
        return self.server.client()

    async def sign_in(self, page: Page) -> None:
        """As a person does: by a link that works once."""
        assert (BUILT / "index.html").is_file(), "the console is not built: run `make console`"
        async with self.api() as api:
            token = (await api.post("/v1/login/links")).raise_for_status().json()["token"]
        await page.open(f"{self.address}/#token={token}")
        await page.wait_for(MESSAGE)

    async def begin(self, page: Page, text: str) -> str:
        """A new chat that begins with these words; its id."""
        await page.click("text=New chat")
        await page.wait_for("text=What should be done?")
        await send(page, text)
        await page.wait_for("[data-session]")
        return await session_of(page)

    async def view(self, session_id: str) -> dict[str, Any]:
        async with self.api() as api:
            return (await api.get(f"/v1/sessions/{session_id}/view")).raise_for_status().json()

    async def is_as_the_server_says(self, page: Page) -> None:
        """The blocks in the page, read from its elements, and their order are those of the server's own view."""
        session_id, shown, wanted = await session_of(page), None, list[str]()
        for _ in range(100):
            wanted = [_line(each) for turn in (await self.view(session_id))["turns"] for each in _blocks(turn)]
            shown = await page.evaluate(_SHOWN)
            if shown == wanted:
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"shown:\n{json.dumps(shown, indent=1)}\nthe server has:\n{json.dumps(wanted, indent=1)}")


def _blocks(turn: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in [*turn["kept"], *turn["blocks"]] if each["type"] != "file"]


def _line(block: dict[str, Any]) -> str:
    match block["type"]:
        case "call":
            return f"call {block['tool']} {block['outcome'] or block['state']}"
        case "wake":
            return "wake"
        case kind:
            return f"{kind} {block['text'].strip()}"


async def send(page: Page, text: str) -> None:
    await page.fill(MESSAGE, text)
    await page.press(MESSAGE, "Enter")


async def until(page: Page, expression: str) -> None:
    """Wait until it holds. Asked from outside: the page's own policy lets nothing be evaluated in it."""
    for _ in range(600):
        if await page.evaluate(f"Boolean({expression})"):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"it never came true: {expression}")


async def session_of(page: Page) -> str:
    return await page.evaluate("document.querySelector('[data-session]').dataset.session")


async def faults(page: Page) -> list[str]:
    """What axe finds serious."""
    await page.evaluate(AXE.read_text(encoding="utf-8"))
    return await page.evaluate(_SERIOUS)


async def elsewhere(page: Page) -> list[str]:
    """Addresses of other origins that the page has asked for."""
    return await page.evaluate(
        "performance.getEntriesByType('resource').map((each) => each.name).filter((each) => "
        "!each.startsWith(location.origin) && !each.startsWith('data:') && !each.startsWith('blob:'))"
    )
