"""A real browser that tests drive: one process for all of them, and for each its own cookies, storage and tabs.

`async with browser.page() as page` gives a tab; `page.tab("other")` is another one beside it. Whatever waits, waits for
a condition in the page, and says what the page shows if it does not come true.
"""

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from tests.support.screens.node import FOLDER, node

SKIP = "OUTLAST_SKIP_BROWSER"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MOST_BYTES = 64 * 1024 * 1024


def executable() -> str:
    found = next((path for name in NAMES if (path := shutil.which(name)) is not None), None)
    assert found is not None, (
        "There is no browser for these tests. Install one (Debian: `apt-get install chromium`, which `make test` does "
        f"for root), or set {SKIP}=1 to leave them out."
    )
    return found


class Page:
    """A tab. Selectors are Playwright's: CSS, `text=…`, `role=…`; of several elements the first is meant."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tab: str, numbers: "count[int]"):
        self._reader, self._writer, self._tab, self._numbers = reader, writer, tab, numbers

    def tab(self, name: str) -> "Page":
        """Another tab of the same browser, with the same cookies and storage."""
        return Page(self._reader, self._writer, name, self._numbers)

    async def open(self, url: str, *, until: str = "load") -> None:
        """`until="commit"`: only that its first bytes are there."""
        await self._do("goto", url, {"waitUntil": until})

    async def reload(self) -> None:
        await self._do("reload")

    async def click(self, selector: str) -> None:
        await self._do("click", selector=selector)

    async def fill(self, selector: str, text: str) -> None:
        await self._do("fill", text, selector=selector)

    async def select(self, selector: str, value: str) -> None:
        """One of the choices of a list."""
        await self._do("selectOption", value, selector=selector)

    async def choose(self, selector: str, file: Path) -> None:
        """Choose a file in a field for files, shown or not."""
        await self._do("setInputFiles", str(file), selector=selector)

    async def press(self, selector: str, key: str) -> None:
        await self._do("press", key, selector=selector)

    async def wait_for(self, selector: str, *, state: str = "visible") -> None:
        """Wait until there is such an element; `state="hidden"`: until there is none."""
        await self._do("waitForSelector", selector, {"state": state})

    async def until(self, expression: str) -> None:
        """Wait until a JavaScript expression holds in the page."""
        await self._do("waitForFunction", expression)

    async def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, if it is a text, a number, a truth or a list."""
        return await self._do("evaluate", expression)

    async def texts(self, selector: str) -> list[str]:
        """The text of each element that fits, in order."""
        return await self.evaluate(
            f"[...document.querySelectorAll({json.dumps(selector)})].map((each) => each.innerText.trim())"
        )

    async def screenshot(self, path: str) -> None:
        await self._do("screenshot", {"path": path, "fullPage": True})

    async def tasks_of(self, seconds: float) -> list[tuple[float, float]]:
        """What its own thread does for so long: of each task the milliseconds by the clock, and those of processor."""
        found: list[float] = await self._do("tasksOf", seconds * 1_000)
        return list(zip(found[::2], found[1::2], strict=True))

    async def resize(self, width: int, height: int) -> None:
        await self._do("setViewportSize", {"width": width, "height": height})

    async def problems(self) -> list[str]:
        """What went wrong in all tabs since it was last asked for: errors in the console, exceptions."""
        return await self._do("problems")

    async def _do(self, method: str, *args: Any, selector: str | None = None) -> Any:
        try:
            return await self._ask(method, *args, selector=selector)
        except RuntimeError as exc:
            raise AssertionError(f"{exc}\nThe page shows:\n{await self._shown()}") from exc

    async def _shown(self) -> str:
        try:
            return await self._ask("evaluate", "document.body.innerText")
        except RuntimeError as exc:
            return f"nothing: {exc}"

    async def _ask(self, method: str, *args: Any, selector: str | None = None) -> Any:
        """One command at a time for a connection: what a test does is in order."""
        command = {"id": next(self._numbers), "tab": self._tab, "method": method, "args": args}
        if selector is not None:
            command["selector"] = selector
        self._writer.write(json.dumps(command).encode() + b"\n")
        answer = json.loads(await self._reader.readline())
        assert answer["id"] == command["id"]
        if "error" in answer:
            raise RuntimeError(f"{method} {selector or ''} {args}: {answer['error']}")
        return answer["result"]


@dataclass(frozen=True)
class Browser:
    """A browser process that takes commands on a port of this machine."""

    port: int

    @asynccontextmanager
    async def page(self) -> AsyncGenerator[Page]:
        """A tab in a browser that knows nothing yet."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=MOST_BYTES)
        try:
            yield Page(reader, writer, "first", count())
        finally:
            writer.close()
            await writer.wait_closed()


@contextmanager
def running_browser() -> Generator[Browser]:
    command = [node(), "browser.mjs", executable()]
    process = subprocess.Popen(command, cwd=FOLDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment())
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin, process.stdout:
        try:
            port = process.stdout.readline().strip()
            assert port, "the browser did not start: what it said stands above"
            yield Browser(int(port))
        finally:
            process.stdin.close()
            process.wait(20)


def _environment() -> dict[str, str]:
    """Pages of this machine only: a proxy would be asked for them."""
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
