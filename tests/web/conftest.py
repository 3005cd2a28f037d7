"""A real browser, the pages that are built for it, and servers behind them."""

import os
from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest

from tests.support.processes.ai_sdk_process import serving
from tests.support.screens.browser import SKIP, Browser, Page, running_browser
from tests.support.screens.site import Site


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser process for all tests, started when first asked for."""
    if os.environ.get(SKIP) == "1":
        pytest.skip(f"{SKIP} is set")
    with running_browser() as browser:
        yield browser


@pytest.fixture
async def page(browser: Browser) -> AsyncIterator[Page]:
    """A tab in a browser that knows nothing yet. A test that leaves errors in its console fails."""
    async with browser.page() as page:
        yield page
        assert await page.problems() == []


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """For all tests, whose chats and gates have names of their own."""
    folder = tmp_path_factory.mktemp("site")
    pages = folder / "pages"
    pages.mkdir()
    with serving(folder, pages=pages) as server:
        assert httpx2.get(f"{server.url}/healthz", timeout=60).status_code == 200
        yield Site(server.url, pages)
