"""A picture of each page in both themes, to be looked at: `OUTLAST_PICTURES=folder` keeps them (K2)."""

import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.screens.browser import Browser
from tests.support.screens.console import Console, elsewhere, faults
from tests.support.screens.gallery import busy, demo_server, draw

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
_SPILLED = re.compile(r"\bundefined\b|\bNaN\b|\[object |Invalid Date|\bnull\b")
_GROUND = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)"


@pytest.fixture
async def console(tmp_path: Path) -> AsyncIterator[Console]:
    with demo_server(tmp_path) as server:
        yield Console(server)


async def test_each_page_is_drawn_in_both_themes(console: Console, browser: Browser, tmp_path: Path) -> None:
    """K2: with things on it; nothing sticks out, nothing of the program's own shows through, nothing that axe finds
    serious."""
    kept = os.environ.get("OUTLAST_PICTURES")
    folder = Path(kept) if kept else tmp_path
    folder.mkdir(parents=True, exist_ok=True)
    async with browser.page() as page:
        await console.sign_in(page)
        for scene in await busy(console):
            for theme in ("light", "dark"):
                path = folder / f"{scene.name}-{theme}.png"
                await draw(console, page, scene, theme, path)
                assert path.stat().st_size > 8_000, "a page with something on it"
                bright = sum(await page.evaluate(_GROUND)) > 3 * 128
                assert bright == (theme == "light"), (scene.name, theme)
                assert _SPILLED.findall(await page.evaluate("document.body.innerText")) == [], scene.name
                assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), scene.name
                assert await faults(page) == [], (scene.name, theme)
        assert await elsewhere(page) == []
        assert await page.problems() == []
        await page.open("about:blank")
