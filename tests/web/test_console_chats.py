"""What can be done with chats and messages in the console (K2, D10)."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.processes.serving_process import ServingProcess
from tests.support.screens.browser import Browser, Page
from tests.support.screens.console import APP, MESSAGE, Console, elsewhere, send, session_of, until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
CHATS = "nav[aria-label=Chats]"


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """One server for all, whose chats have names of their own."""
    with ServingProcess(tmp_path_factory.mktemp("chats"), app=APP) as server:
        yield Console(server)


@pytest.fixture
async def page(browser: Browser, console: Console) -> AsyncIterator[Page]:
    """A tab that is signed in. Whatever a test does, nothing is asked for elsewhere, and no error is left."""
    async with browser.page() as page:
        await console.sign_in(page)
        yield page
        assert await elsewhere(page) == []
        assert await page.problems() == []


async def choose(page: Page, what: str) -> None:
    """From the menu of the chat that is shown."""
    await page.click("[data-session] header [aria-label^='More for']")
    await page.click(f"[role=menuitem]:has-text('{what}')")


async def test_a_chat_is_renamed_found_archived_forked_and_deleted(console: Console, page: Page) -> None:
    """K2, D10: each shown at once, and in the list at the side."""
    first = await console.begin(page, "hello to the herons")
    await page.wait_for("[data-turn][data-state=completed]")
    await choose(page, "Rename")
    await page.fill("dialog [aria-label=Title]", "Herons")
    await page.press("dialog [aria-label=Title]", "Enter")
    await page.wait_for(f"{CHATS} >> text=Herons")
    await page.wait_for("h1 >> text=Herons")
    await until(page, "document.title === 'Herons · Outlast'")
    await choose(page, "Fork")
    await until(page, f"(document.querySelector('[data-session]')?.dataset.session ?? '{first}') !== '{first}'")
    await page.wait_for("[data-before] >> text=hello to the herons")
    await page.wait_for("[data-before] >> text=Hello there.")
    await console.is_as_the_server_says(page)
    await choose(page, "Delete")
    await page.click("dialog >> css=button:has-text('Delete')")
    await page.wait_for("text=What should be done?")
    await page.fill("[aria-label='Search chats']", "herons")
    await page.click(f"{CHATS} >> text=Herons")
    await page.wait_for(f"[data-session={first}]")
    await choose(page, "Archive")
    await page.wait_for(f"{CHATS} >> text=No chat has these words.")
    await page.click("css=button:has-text('Archive')")
    await page.wait_for(f"{CHATS} >> text=Herons")
    await choose(page, "Take out of the archive")
    await page.wait_for(f"{CHATS} >> text=No chat has these words.")


async def test_a_chat_is_exported(console: Console, page: Page) -> None:
    """K2, D10: what is saved is the whole chat, which can be imported elsewhere."""
    await console.begin(page, "hello export")
    await page.wait_for("[data-turn][data-state=completed]")
    await page.evaluate(
        "void (HTMLAnchorElement.prototype.click = function () { document.body.dataset.saved = this.href })"
    )
    await choose(page, "Export")
    await until(page, "document.body.dataset.saved")
    told = await page.evaluate("fetch(document.body.dataset.saved).then((answer) => answer.text())")
    assert "hello export" in told
    assert "Hello there." in told


async def test_how_a_message_is_sent_is_chosen_at_the_button(console: Console, page: Page) -> None:
    """K2, B7: it waits its turn, is heard at the next step, or ends what is being said; the composer never locks."""
    await console.begin(page, "slow ways")
    await page.wait_for("[data-open] >> text=One")
    for how, hint in (("Queue", "answered after this"), ("Steer", "heard at the next step")):
        await page.fill(MESSAGE, f"by {how}")
        await page.click("[aria-label='How to send']")
        await page.click(f"[role=menuitem]:has-text('{how}')")
        await page.wait_for(f"[data-waiting=message]:has-text('by {how}') >> text={hint}")
    await page.fill(MESSAGE, "hello at once")
    await page.click("[aria-label='How to send']")
    await page.click("[role=menuitem]:has-text('Interrupt')")
    await page.wait_for("[data-turn][data-state=stopped]")
    await until(page, "document.querySelectorAll('[data-waiting]').length === 0")
    await until(page, "![...document.querySelectorAll('[data-turn]')].some((each) => each.dataset.state === 'running')")
    assert {"slow ways", "by Queue", "by Steer", "hello at once"} == set(await page.texts("[data-block=message]"))
    await console.is_as_the_server_says(page)


async def test_what_waits_when_it_is_stopped_is_held_and_then_said(console: Console, page: Page) -> None:
    """K2, B4, B7: the chip stays; "Go on" says it."""
    await console.begin(page, "slow hold")
    await page.wait_for("[data-open] >> text=One")
    await page.fill(MESSAGE, "hello afterwards")
    await page.press(MESSAGE, "Control+Enter")
    await page.wait_for("[data-waiting=message] >> text=answered after this")
    await page.click("[aria-label=Stop]")
    await page.wait_for("[data-held] >> text=One message waits")
    assert await page.texts("[data-waiting=message] [data-text]") == ["hello afterwards"]
    await console.is_as_the_server_says(page)
    await page.reload()
    await page.wait_for("[data-waiting=message] >> text=hello afterwards")
    await page.click("[data-held] >> css=button:has-text('Go on')")
    await page.wait_for("text=Hello there.")
    await until(page, "document.querySelectorAll('[data-waiting], [data-held]').length === 0")
    await console.is_as_the_server_says(page)


async def test_a_message_that_was_not_sent_is_sent_again_once(console: Console, page: Page) -> None:
    """K2, B6: it says why not, and stays; sent again it is said once."""
    await console.begin(page, "hello")
    await page.wait_for("[data-turn][data-state=completed]")
    await page.evaluate(
        "(() => { const real = window.fetch; let left = 1;"
        " window.fetch = (url, given) => given?.method === 'POST' && left-- > 0"
        " ? Promise.reject(new TypeError('cut')) : real(url, given); return true })()"
    )
    await send(page, "about frogs")
    await page.wait_for("[data-waiting=unsent] >> text=The server does not answer")
    await page.click("[aria-label='Send again']")
    await page.wait_for("text=You said about frogs.")
    assert await page.texts("[data-block=message]") == ["hello", "about frogs"]
    assert await page.texts("[data-waiting]") == []
    await console.is_as_the_server_says(page)


async def test_answers_and_code_are_copied(console: Console, page: Page) -> None:
    """K2: the answer as it was said, with its Markdown; of code nothing but the code."""
    await console.begin(page, "hostile")
    await page.wait_for("[data-turn][data-state=completed]")
    await page.evaluate(
        "(() => { navigator.clipboard.writeText = async (text) => { document.body.dataset.copied = text } })()"
    )
    await page.click("[aria-label='Copy the code']")
    await until(page, "document.body.dataset.copied?.startsWith('print(')")
    assert await page.evaluate("document.body.dataset.copied") == 'print("<script>alert(6)</script>")'
    await page.click("[aria-label='Copy the answer']")
    await until(page, "document.body.dataset.copied.startsWith('# Look')")


async def test_a_typed_output_is_a_card(console: Console, page: Page) -> None:
    """K2, B1: of the agent that was chosen for the new chat; its fields by their names."""
    await page.click("text=New chat")
    await page.click("fieldset label:has-text('surveyor')")
    await send(page, "Report.")
    await page.wait_for("[data-output] >> text=Oslo")
    assert (await page.texts("[data-output] dd")) == ["Oslo", "12", '["Ada","Bob"]']
    await console.is_as_the_server_says(page)
    await page.click("[aria-label='Settings of this chat']")
    facts = await page.texts("dialog dd")
    assert facts[:2] == ["surveyor", "as the agent says"]
    assert "no" in facts, "whether it is a dry run"


async def test_a_call_is_one_line_with_more_on_demand(console: Console, page: Page) -> None:
    """K2, A12: in words, how long it took; what it was given and what it gave; a picture stands in the chat."""
    await console.begin(page, "find Ada")
    await page.wait_for("[data-call][data-outcome=success] >> text=Found Ada")
    await page.wait_for("[data-turn][data-state=completed]")
    await page.click("[data-call] button[aria-expanded=false]")
    await page.wait_for("[data-call] >> text=Ada is here")
    await page.wait_for("[data-call] pre:has-text('name')")
    await console.is_as_the_server_says(page)
    await send(page, "draw")
    await until(page, "document.querySelector('[data-block=call] [data-file] img')?.naturalWidth > 0")
    await page.wait_for("[data-turn]:last-of-type[data-state=completed]")
    await console.is_as_the_server_says(page)


async def test_steps_that_nobody_needs_are_folded(console: Console, page: Page) -> None:
    """K2, D3: reasoning is closed, the same after a reload; opened on demand."""
    await console.begin(page, "hello folded")
    await page.wait_for("[data-turn][data-state=completed]")
    for _ in range(2):
        await page.wait_for("[data-block=reasoning] summary >> text=Thought")
        assert await page.evaluate("document.querySelector('[data-block=reasoning]').open") is False
        await page.reload()
    await page.click("[data-block=reasoning] summary")
    await page.wait_for("[data-block=reasoning] >> text=Hm.")


async def test_what_came_while_nobody_looked_is_marked(console: Console, page: Page) -> None:
    """K2: in the list as unread, and in the chat a line before the first news, with what it is."""
    away = await console.begin(page, "survey lake")
    await page.wait_for("text=It goes on.")
    await page.wait_for("[data-turn][data-state=completed]")
    await page.click("text=New chat")
    await page.wait_for("text=What should be done?")
    console.open_gate("lake")
    await page.wait_for(f"{CHATS} li:has-text('survey lake') [aria-label=unread]")
    await page.reload()
    await page.click(f"{CHATS} >> text=survey lake")
    await page.wait_for("[data-away] >> text=1 answer, 1 end of background work")
    assert await session_of(page) == away
    await page.wait_for(f"{CHATS} li:has-text('survey lake') [aria-label=unread]", state="hidden")
    await console.is_as_the_server_says(page)


async def test_what_came_while_somebody_looked_is_read(console: Console, page: Page) -> None:
    """K2: in the browser and on the server: no mark stands at a chat whose answer was seen as it came."""
    session_id = await console.begin(page, "slow watched")
    await page.wait_for("[data-open] >> text=One")
    console.open_gate("watched")
    await page.wait_for("text=two.")
    await page.wait_for("[data-turn][data-state=completed]")
    is_unread = True
    async with console.api() as api:
        for _ in range(200):
            is_unread = (await api.get(f"/v1/sessions/{session_id}")).raise_for_status().json()["is_unread"]
            if not is_unread:
                break
            await asyncio.sleep(0.05)
    assert not is_unread, "what was seen as it came is still new to the server"
    await page.click("text=New chat")
    await page.wait_for(f"{CHATS} li:has-text('slow watched')")
    await page.wait_for(f"{CHATS} li:has-text('slow watched') [aria-label=unread]", state="hidden")


async def test_a_notice_is_given_to_who_asked_for_it(console: Console, page: Page) -> None:
    """K2: while nobody looks at the page; its number stands in the name of the tab on every page."""
    await page.evaluate(
        "(() => { window.told = []; window.Notification = class { static permission = 'default';"
        " static async requestPermission() { return (this.permission = 'granted') }"
        " constructor(title, { body }) { window.told.push(`${title}: ${body}`) } }; return 1 })()"
    )
    await page.click("nav[aria-label=Places] >> text=Needs you")
    await page.click("css=button:has-text('Notify me')")
    await page.wait_for("text=You are notified")
    await page.evaluate("Object.defineProperty(document, 'hidden', { get: () => true, configurable: true }) && 1")
    async with console.api() as api:
        session = (await api.post("/v1/sessions", json={})).json()["id"]
        await api.post(f"/v1/sessions/{session}/messages", json={"text": "pay"})
        await until(page, "window.told.length === 1")
        assert await page.evaluate("window.told") == ["Outlast: An agent needs you to go on."]
        await page.evaluate("Object.defineProperty(document, 'hidden', { get: () => false, configurable: true }) && 1")
        await page.click(f"{CHATS} a")
        await page.wait_for("[data-session]")
        await until(page, "/^\\(1\\) .+ · Outlast$/.test(document.title)")
        await page.click("nav[aria-label=Places] >> text=Tasks")
        await page.wait_for("ul[aria-label=Tasks] [data-state=awaiting_input]")
        await until(page, "document.title === '(1) Outlast'")
        await api.delete(f"/v1/sessions/{session}")
    await until(page, "document.title === 'Outlast'")
    await page.wait_for("ul[aria-label=Tasks] [data-state=awaiting_input]", state="hidden")


async def test_a_list_goes_on_beyond_a_hundred_chats(browser: Browser, tmp_path: Path) -> None:
    """K2: asked for, a page at a time; a new chat stands above all that is shown."""
    with ServingProcess(tmp_path, app=APP) as server:
        console = Console(server)
        async with console.api() as api:
            for number in range(103):
                (await api.post("/v1/sessions", json={"title": f"Chat {number}"})).raise_for_status()
        async with browser.page() as page:
            await console.sign_in(page)
            await page.wait_for(f"{CHATS} >> text=Chat 102")
            assert len(await page.texts(f"{CHATS} li")) == 100
            await page.click(f"{CHATS} >> css=button:has-text('More') >> nth=-1")
            await page.wait_for(f"{CHATS} >> text='Chat 0'")
            titles = [each.partition("\n")[0] for each in await page.texts(f"{CHATS} li")]
            assert titles == [f"Chat {number}" for number in reversed(range(103))]
            assert await page.texts(f"{CHATS} > button") == []
            await console.begin(page, "hello")
            await page.wait_for(f"{CHATS} li:first-child >> text=hello")
            assert len(await page.texts(f"{CHATS} li")) == 104
            assert await page.problems() == []
