"""What agents ask people for, answered in the console; and sub-sessions (K2, B8, C3)."""

import json
from collections.abc import AsyncIterator, Iterator

import pytest
from cryptography.fernet import Fernet

from tests.support.processes.serving_process import ServingProcess
from tests.support.screens.browser import Browser, Page
from tests.support.screens.console import APP, Console, elsewhere, faults, send, session_of, until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
DONE = "[data-block=text] >> text=The work is done."
"""Said, and not only told to the model in a note."""


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """One server for all, which can keep credentials."""
    own = {"OUTLAST_ENCRYPTION_KEYS": json.dumps([Fernet.generate_key().decode()])}
    with ServingProcess(tmp_path_factory.mktemp("people"), app=APP, environment=own) as server:
        yield Console(server)


@pytest.fixture
async def page(browser: Browser, console: Console) -> AsyncIterator[Page]:
    """A tab that is signed in, with room for the rail. No error is left, and nothing is asked for elsewhere."""
    async with browser.page() as page:
        await page.resize(1400, 850)
        await console.sign_in(page)
        yield page
        assert await elsewhere(page) == []
        assert await page.problems() == []


async def test_a_question_is_answered_where_it_stands(console: Console, page: Page) -> None:
    """K2, B8: a choice as buttons, words as words; also after a reload."""
    await console.begin(page, "paint")
    await page.wait_for("[data-request] >> text=Which colour?")
    await page.reload()
    await page.click("[data-request] >> css=button:has-text('blue')")
    await page.wait_for("[data-block=call][data-tool=paint] [data-task][data-state=succeeded]")
    await page.wait_for(DONE)
    await console.is_as_the_server_says(page)
    await send(page, "christen")
    await page.wait_for("[data-request] >> text=What is its name?")
    await page.fill("[aria-label='Your answer']", "Ada")
    await page.click("[data-request] >> css=button:has-text('Answer')")
    await page.wait_for("[data-block=call][data-tool=christen] [data-task][data-state=succeeded]")
    await until(page, "document.querySelectorAll('[data-block=wake]').length === 2")
    await page.wait_for("[data-turn]:last-of-type[data-state=completed]")
    await console.is_as_the_server_says(page)


async def test_a_connection_is_made_where_it_is_asked_for(console: Console, page: Page) -> None:
    """K2, A17: the tool goes on with it; what was written is nowhere in the page afterwards."""
    await console.begin(page, "issues")
    await page.wait_for("[data-request] input[type=password]")
    await page.fill("[data-request] input[type=password]", "ghp_secret")
    await page.click("[data-request] >> css=button:has-text('Connect')")
    await page.wait_for("[data-block=call][data-tool=issues] [data-task][data-state=succeeded]")
    await page.wait_for(DONE)
    await console.is_as_the_server_says(page)
    assert await page.evaluate("document.documentElement.innerHTML.includes('ghp_secret')") is False


async def test_a_tool_that_was_allowed_for_good_is_not_asked_about_again(console: Console, page: Page) -> None:
    """K2, A13: until that is taken back, among the settings of the chat."""
    await console.begin(page, "pay")
    await page.click("[data-request] input[type=checkbox]")
    await page.click("[data-request] >> text=Approve")
    await page.wait_for(DONE)
    await send(page, "pay")
    await until(page, "document.querySelectorAll('[data-block=call]').length === 2")
    await page.wait_for("text=Seen: paid 100")
    assert await page.texts("[data-request]") == []
    await console.is_as_the_server_says(page)
    await page.click("[aria-label='Settings of this chat']")
    await page.click("[data-always] >> css=button:has-text('Ask again')")
    await page.wait_for("[data-always]", state="hidden")
    await page.click("dialog [aria-label=Close]")
    await send(page, "pay")
    await page.click("[data-request] >> text=Approve")
    await page.wait_for("[data-request]", state="hidden")
    await page.wait_for("[data-turn]:last-of-type[data-state=completed]")
    await console.is_as_the_server_says(page)


async def test_what_an_agent_may_not_do_is_refused_with_words(console: Console, page: Page) -> None:
    """K2, B8: the model is told why."""
    session_id = await console.begin(page, "pay")
    await page.click("[data-request] >> css=button:has-text('Refuse')")
    await page.fill("[aria-label='Why not']", "too much")
    await page.click("[data-request] >> css=button:has-text('Refuse')")
    await page.wait_for("[data-task][data-state=failed], [data-task][data-state=canceled]")
    await page.wait_for("[data-block=wake]")
    await page.wait_for("[data-turn]:last-of-type[data-state=completed]")
    await console.is_as_the_server_says(page)
    assert "too much" in json.dumps((await console.view(session_id))["turns"])


async def test_a_sub_session_is_opened_live(console: Console, page: Page) -> None:
    """K2, C3: from the rail; its words come while they are said, its page leads back, and the task's page has it beside
    its output."""
    parent = await console.begin(page, "delegate river")
    await page.wait_for("text=It goes on.")
    await page.click("[data-rail] >> text=Look over its shoulder")
    await until(page, f"(document.querySelector('[data-session]')?.dataset.session ?? '{parent}') !== '{parent}'")
    await page.wait_for("[data-block=message] >> text=survey river")
    await page.wait_for("[data-task][data-state=running] [role=progressbar]")
    await console.is_as_the_server_says(page)
    child = await session_of(page)
    other = page.tab("other")
    await other.resize(1400, 850)
    await other.open(f"{console.address}/tasks")
    await other.click("ul[aria-label=Tasks] [data-state=running] a:has-text('survey river')")
    await other.wait_for(f"[data-session={child}] >> text=It goes on.")
    assert await faults(other) == []
    console.open_gate("river")
    for each in (page, other):
        await each.wait_for(DONE)
        await console.is_as_the_server_says(each)
    await page.click("text=To the parent")
    await page.wait_for(f"[data-session={parent}] {DONE}")
    await console.is_as_the_server_says(page)


async def test_a_question_two_levels_down_is_answered_at_the_root(console: Console, page: Page) -> None:
    """K2, B8, C3: it stands in the chat of the root, its number in the name of the tab, and the work goes on."""
    root = await console.begin(page, "deep 0")
    await page.wait_for("[data-below] >> text=Which colour?")
    await until(page, "document.title.startsWith('(1) ')")
    assert await session_of(page) == root
    assert await faults(page) == []
    await page.reload()
    await page.click("[data-below] >> css=button:has-text('red')")
    await page.wait_for("[data-below]", state="hidden")
    await page.wait_for("[data-rail] [data-state=succeeded]")
    await until(page, "document.querySelectorAll('[data-rail] [data-state=succeeded]').length >= 3")
    await page.wait_for(DONE)
    await until(page, "!document.title.startsWith('(')")
    await console.is_as_the_server_says(page)


async def test_a_whole_tree_is_stopped(console: Console, page: Page) -> None:
    """K2, B4, C3: the work of the sub-agent, too; the chat says that it is on hold."""
    await console.begin(page, "delegate tree")
    await page.wait_for("text=It goes on.")
    await until(page, "document.querySelectorAll('[data-rail] [data-state=running]').length === 2")
    await page.click("[data-rail] >> css=button:has-text('Stop all')")
    await page.wait_for("dialog >> text=2 background tasks are cancelled")
    await page.click("dialog >> css=button:has-text('Stop all')")
    await until(page, "document.querySelectorAll('[data-rail] [data-state=canceled]').length === 2")
    await page.wait_for("[data-held]")
    await console.is_as_the_server_says(page)
    await send(page, "hello")
    await page.wait_for("[data-block=message] >> text=hello")
    await page.wait_for("[data-held]", state="hidden")
    await page.wait_for("[data-turn]:last-of-type[data-state=completed]")
    await console.is_as_the_server_says(page)
