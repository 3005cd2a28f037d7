"""The example as its README tells: its own agent behind `outlast serve`, its own build, its own proxy."""

import os
import re
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.processes.serving_process import ServingProcess
from tests.support.screens.browser import Page
from tests.support.screens.node import node

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

EXAMPLE = Path(__file__).parents[2] / "examples" / "page"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy: servers leave files beside it."""
    folder = tmp_path / "page"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("node_modules", "dist", "*.db*"))
    (folder / "node_modules").symlink_to(EXAMPLE / "node_modules")
    return folder


def run_node(folder: Path, *arguments: str) -> None:
    subprocess.run([node(), *arguments], cwd=folder, check=True, env=_environment())


@contextmanager
def previewing(folder: Path) -> Generator[str]:
    """The built page behind its proxy; gives the address that a person opens."""
    command = [node(), "node_modules/vite/bin/vite.js", "preview", "--host", "127.0.0.1", "--port", "0"]
    process = subprocess.Popen(command, cwd=folder, env=_environment(), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        try:
            yield next(found[0] for line in process.stdout if (found := re.search(r"http://127[^\s]+", line)))
        finally:
            process.terminate()
            process.wait(20)


def _environment() -> dict[str, str]:
    """Without what would lead to another server, and without colours in what is printed."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("OUTLAST_")}
    return {**own, "NO_COLOR": "1"}


async def test_the_birds_are_counted(folder: Path, page: Page) -> None:
    """README: it builds with strict types, finds the server, counts on in the background, says how many, and goes on
    with its answer after the server was killed and started again."""
    run_node(folder, "node_modules/typescript/bin/tsc")
    run_node(folder, "node_modules/vite/bin/vite.js", "build", "--logLevel", "warn")
    with ServingProcess(folder) as server, previewing(folder) as address:
        await page.open(address)
        await page.fill("input", "Please count for 2 seconds")
        await page.click("text=Send")
        await page.wait_for(".call[data-state=running]")
        await page.wait_for("text=I have counted them: there are 12 birds in the park.")
        await page.wait_for(".call[data-state=done]")
        await page.wait_for("text=Send")
        chat = (await page.evaluate("location.hash")).removeprefix("#")
        async with server.client() as api:
            assert (await api.get(f"/v1/sessions/{chat}")).json()["state"] == "idle"
        await page.fill("input", "hello")
        await page.click("text=Send")
        await page.wait_for("text=Ask me to")
        port = server.port
        server.kill()
        with ServingProcess(folder, port=port):
            is_whole = "document.body.innerText.split('than an answer should.').length === 4"
            await page.until(is_whole)
            await page.wait_for("text=Send")
            assert await page.evaluate(is_whole), "no word is there twice"
            assert await page.texts("[role=alert]") == []
            await page.open("about:blank")  # or it may still complain that its stream was cut, when it is asked last
        assert [each for each in await page.problems() if each.startswith("exception")] == []
