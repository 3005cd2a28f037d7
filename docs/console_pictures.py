"""Draws the console for the README, `python -m docs.console_pictures`: three pictures, and a recording of a server that
is killed in the middle of a sentence. Needs Chromium and the built console."""

import asyncio
import json
import tempfile
import time
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.processes.serving_process import ServingProcess
from tests.support.screens.browser import Browser, Page, running_browser
from tests.support.screens.console import MESSAGE, Console, session_of
from tests.support.screens.gallery import busy, demo_server, draw

DOCS = Path(__file__).parent
APP = "tests.support.apps.recorded_app:app"
PICTURES = {"chat": ("light", "console-chat.png"), "task": ("light", "console-task.png")}
DARK = {"approval": ("dark", "console-approval.png")}
RECORDING = DOCS / "console-kill.gif"
_GIF = DOCS / "gif.js"
_SIZE = (820, 460)
_LONGEST = 2.0


@dataclass
class Film:
    """Pictures of a page, each with the moment at which it was taken."""

    page: Page
    folder: Path
    frames: list[tuple[Path, float]] = field(default_factory=list[tuple[Path, float]])
    is_over: bool = False

    async def roll(self) -> None:
        while not self.is_over:
            path = self.folder / f"{len(self.frames):04}.png"
            await self.page.screenshot(str(path))
            self.frames.append((path, time.monotonic()))
            await asyncio.sleep(0.05)

    async def gif(self) -> bytes:
        """As it went, except that nothing stands still for long."""
        ends = [at for _, at in self.frames[1:]] + [self.frames[-1][1] + _LONGEST]
        frames = [
            (f"data:image/png;base64,{b64encode(path.read_bytes()).decode()}", round(min(_LONGEST, end - began) * 100))
            for (path, began), end in zip(self.frames, ends, strict=True)
        ]
        await self.page.open("about:blank")
        made = await self.page.evaluate(f"({_GIF.read_text(encoding='utf-8')})({json.dumps(frames)})")
        return b64decode(made)


async def pictures(browser: Browser) -> None:
    with tempfile.TemporaryDirectory() as name, demo_server(Path(name)) as server:
        console = Console(server)
        async with browser.page() as page:
            await console.sign_in(page)
            for scene in await busy(console):
                if scene.name in {**PICTURES, **DARK}:
                    theme, file = {**PICTURES, **DARK}[scene.name]
                    await draw(console, page, scene, theme, DOCS / file)


async def recording(browser: Browser) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, frames = Path(name) / "server", Path(name) / "frames"
        folder.mkdir()
        frames.mkdir()
        async with browser.page() as page:
            film = await _played(folder, Film(page, frames))
            RECORDING.write_bytes(await film.gif())


async def _played(folder: Path, film: Film) -> Film:
    page = film.page
    await page.resize(*_SIZE)
    with ServingProcess(folder, app=APP) as server:
        await Console(server).sign_in(page)
        await page.evaluate("localStorage.setItem('outlast.theme', 'light')")
        await page.click("text=New chat")
        await page.fill(MESSAGE, "How did the town get its bridge?")
        await page.press(MESSAGE, "Enter")
        await page.wait_for("[data-open] >> text=ferry")
        session, port = await session_of(page), server.port
        rolling = asyncio.create_task(film.roll())
        await asyncio.sleep(2.2)
        server.kill()
        await asyncio.sleep(2.5)
    with ServingProcess(folder, app=APP, port=port) as server:
        # The page itself takes pictures only: what is asked of it is asked one thing after the other.
        async with server.client() as api:
            await api.get(f"/v1/sessions/{session}/result", params={"wait": 60})
        await asyncio.sleep(1)
        film.is_over = True
        await rolling
    return film


async def _all(browser: Browser) -> None:
    await pictures(browser)
    await recording(browser)


def main() -> None:
    with running_browser() as browser:
        asyncio.run(_all(browser))


if __name__ == "__main__":
    main()
