"""The console when its server dies: nothing lost, nothing twice (K2)."""

from pathlib import Path

import pytest

from tests.support.processes.serving_process import ServingProcess
from tests.support.screens.browser import Page
from tests.support.screens.console import APP, Console

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]


async def test_a_server_that_is_killed_in_the_middle_of_a_word(tmp_path: Path, page: Page) -> None:
    """K2, D1: two tabs say so, go on by themselves when it is back, and show each word once."""
    with ServingProcess(tmp_path, app=APP) as server:
        console = Console(server)
        await console.sign_in(page)
        await console.begin(page, "slow killed")
        await page.wait_for("[data-open] >> text=One")
        other = page.tab("other")
        await other.open(await page.evaluate("location.href"))
        await other.wait_for("[data-open] >> text=One")
        port = server.port
        server.kill()
        for each in (page, other):
            await each.wait_for("text=The server does not answer")
    with ServingProcess(tmp_path, app=APP, port=port) as server:
        console = Console(server)
        console.open_gate("killed")
        for each in (page, other):
            await each.wait_for("text=One two.")
            await each.wait_for("[data-turn][data-state=completed]")
            await console.is_as_the_server_says(each)
            assert await each.texts("[data-block=text]") == ["One two."]
        await page.open("about:blank")  # or it may still complain that its stream was cut, when it is asked last
        await other.open("about:blank")
    assert [each for each in await page.problems() if each.startswith("exception")] == []
