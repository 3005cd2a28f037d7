"""The pages beside the chat in a real browser: no error in the console, nothing that axe finds serious."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator

import pytest
from cryptography.fernet import Fernet

from tests.support.processes.serving_process import ServingProcess
from tests.support.screens.browser import Browser, Page
from tests.support.screens.console import APP, Console, elsewhere, faults

SETTLED = """Promise.allSettled(document.getAnimations().filter((each) => each instanceof CSSTransition)
  .map((each) => each.finished)).then(() => true)"""
pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """One server for all, whose gates have names of their own."""
    keys = json.dumps([Fernet.generate_key().decode()])
    own = {"OUTLAST_ENCRYPTION_KEYS": keys, "OUTLAST_ALLOWED_NETWORKS": '["127.0.0.0/8"]'}
    with ServingProcess(tmp_path_factory.mktemp("pages"), app=APP, environment=own) as server:
        yield Console(server)


@pytest.fixture
async def page(browser: Browser, console: Console) -> AsyncIterator[Page]:
    """A tab that is signed in. Whatever a test does, nothing is asked for elsewhere, and no error is left."""
    async with browser.page() as page:
        await console.sign_in(page)
        yield page
        assert await elsewhere(page) == []
        assert await page.problems() == []


async def go(console: Console, page: Page, path: str) -> None:
    await page.open(f"{console.server.place.url}{path}")


async def becomes(page: Page, expression: str) -> None:
    """Wait for what no element shows; the page's policy refuses a predicate that is looked at again and again there."""
    for _ in range(400):
        if await page.evaluate(expression):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"this did not come true: {expression}")


async def is_sound(page: Page) -> None:
    """In both themes, and as wide as a phone: readable for everybody, and nothing sticks out."""
    for theme in ("light", "dark"):
        await page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        await page.evaluate(SETTLED)
        assert await faults(page) == []
    await page.resize(390, 850)
    assert await faults(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out"
    await page.resize(1280, 850)


async def test_background_work_stands_beside_the_chat(console: Console, page: Page) -> None:
    """K2, C3: live, with its bar and last line; cancelled there, with the truth."""
    await page.resize(1400, 850)
    await console.begin(page, "survey rail")
    await page.wait_for("[data-rail] [data-state=running] [role=progressbar]")
    await page.wait_for("[data-rail] >> text=1 of 4 places")
    await page.wait_for("[data-rail] [data-last-line] >> text=At the first bridge.")
    await is_sound(page)
    await page.resize(1400, 850)
    await page.click("[data-rail] [data-state=running] >> text=Cancel")
    await page.wait_for("[data-rail] [data-state=canceled]")


async def test_a_task_has_a_page_that_follows_its_output(console: Console, page: Page) -> None:
    """K2, C3: found in the list of all chats; it opens at the end, is searched, and shows how the work ended."""
    await console.begin(page, "survey task")
    await page.wait_for("[data-task][data-state=running]")
    await go(console, page, "/tasks?state=open&tool=survey")
    await page.wait_for("ul[aria-label=Tasks] [data-state=running]")
    await is_sound(page)
    await page.click("ul[aria-label=Tasks] [data-state=running] a")
    await page.wait_for("[role=log] >> text=At the first bridge.")
    await page.fill("[aria-label='Search the output']", "BRIDGE")
    await page.press("[aria-label='Search the output']", "Enter")
    await page.wait_for("[data-found='1']")
    await page.wait_for("[role=log] mark")
    await is_sound(page)
    console.open_gate("task")
    await page.wait_for("h1 [data-state=succeeded]")
    await page.wait_for("text=Twelve birds.")


async def test_what_waits_for_a_person_is_decided_in_one_place(console: Console, page: Page) -> None:
    """K2, B7, B8: over all chats, with its number in the name of the tab; approved with other arguments."""
    await console.begin(page, "pay")
    await page.wait_for("[data-request]")
    await page.wait_for("[data-needs='1']")
    await becomes(page, "document.title === '(1) pay · Outlast'")
    await page.click("nav[aria-label=Places] >> text=Needs you")
    await page.wait_for("ul[aria-label='What waits for you'] [data-request]")
    await is_sound(page)
    await page.fill("[aria-label='Arguments of the call']", '{"euros": 7}')
    await page.click("text=Approve with these")
    await page.wait_for("text=Nothing waits for you")
    await becomes(page, "document.title === 'Outlast'")
    await is_sound(page)
    await go(console, page, "/tasks?tool=pay")
    await page.click("ul[aria-label=Tasks] a")
    await page.wait_for("text=paid 7")
    await page.wait_for("text=approved")


async def test_usage_is_shown(console: Console, page: Page) -> None:
    """K2, H3: of today and of this week."""
    await go(console, page, "/usage")
    await page.wait_for("text=This week")
    await page.wait_for("text=Requests")
    await is_sound(page)


async def test_a_key_is_shown_once_and_revoked(console: Console, page: Page) -> None:
    """K2: made for an owner; what is kept of it opens nothing."""
    await go(console, page, "/keys")
    await page.click("text=New key")
    await page.wait_for("text=Make the key")
    await is_sound(page)
    await page.fill("input[placeholder='nightly report']", "nightly")
    await page.click("text=Make the key")
    await page.wait_for("[data-secret]")
    (secret,) = await page.texts("[data-secret]")
    await is_sound(page)
    await page.click("text=I have kept it")
    await page.wait_for("[data-key] >> text=nightly")
    assert secret not in await page.evaluate("document.body.innerText")
    await page.click("[data-key]:has-text('nightly') >> text=Revoke")
    await page.click("dialog >> css=button:has-text('Revoke')")
    await page.wait_for("[data-key]:has-text('nightly') >> text=revoked")


async def test_a_connection_is_kept_without_being_shown(console: Console, page: Page) -> None:
    """K2, E6: set, listed, removed; the value is nowhere in the page afterwards."""
    await go(console, page, "/connections")
    await page.wait_for("text=No connections yet")
    await page.fill("input[placeholder=github]", "github")
    await page.fill("input[type=password]", "ghp_never_shown")
    await page.press("input[type=password]", "Enter")
    await page.wait_for("[data-connection=github]")
    await is_sound(page)
    assert await page.evaluate("document.documentElement.innerHTML.includes('ghp_never_shown')") is False
    assert await page.evaluate("document.querySelector('input[type=password]').value") == ""
    await page.click("[data-connection=github] >> text=Remove")
    await page.click("dialog >> css=button:has-text('Remove')")
    await page.wait_for("text=No connections yet")


async def test_a_schedule_is_made_with_its_next_times_and_fired(console: Console, page: Page) -> None:
    """K2, F1: five times before it is made; paused, resumed, fired by hand, and its past is told."""
    await console.begin(page, "hello")
    await page.wait_for("text=Hello there.")
    await go(console, page, "/schedules")
    await page.wait_for("text=Nothing is scheduled")
    await page.click("text=New schedule")
    await page.fill("input[placeholder='Tell me what is new']", "hello by itself")
    await page.fill("input[placeholder='0 8 * * *']", "0 8 * * 1-5")
    await page.wait_for("[data-preview='5']")
    await is_sound(page)
    await page.click("text=Make it")
    await page.wait_for("[data-schedule][data-state=active]")
    await page.click("[data-schedule] button")
    await page.click("css=button:has-text('Fire now')")
    await page.wait_for("[data-fire=ran]")
    await is_sound(page)
    await page.click("css=button:has-text('Pause')")
    await page.wait_for("[data-schedule][data-state=paused]")
    await page.click("css=button:has-text('Resume')")
    await page.wait_for("[data-schedule][data-state=active]")
    await page.click("[data-schedule] >> text=Delete")
    await page.click("dialog >> css=button:has-text('Delete')")
    await page.wait_for("text=Nothing is scheduled")


async def test_a_monitor_is_made_and_looks(console: Console, page: Page) -> None:
    """K2, F4: a tool is run until its result is what was wanted; what it saw last is shown, and its task is led to."""
    console.open_gate("monitored")
    await console.begin(page, "hello")
    await page.wait_for("text=Hello there.")
    await go(console, page, "/schedules")
    await page.click("text=New schedule")
    await page.select("select:has(option[value=monitor])", "monitor")
    await page.fill("input[placeholder='fetch_report']", "look")
    await page.fill('input[placeholder=\'{"day": "today"}\']', '{"name": "monitored"}')
    await page.select("select:has(option[value=changed])", "equals")
    await page.fill("div:has(> label:text-is('This')) > input", '"gone"')
    await page.fill("input[placeholder='0 8 * * *']", "30 7 * * *")
    await page.wait_for("[data-preview='5']")
    await is_sound(page)
    await page.click("text=Make it")
    await page.wait_for("[data-schedule][data-state=active] >> text=watches")
    await page.click("[data-schedule] button")
    await page.click("css=button:has-text('Fire now')")
    await page.wait_for("[data-schedule] >> text=seen")
    await page.wait_for("[data-fire=ran]")
    await is_sound(page)
    await page.click("[data-schedule] >> text=Delete")
    await page.click("dialog >> css=button:has-text('Delete')")
    await page.wait_for("text=Nothing is scheduled")


async def test_a_webhook_is_made_tested_and_switched_off(console: Console, page: Page) -> None:
    """K2, G5: the secret is shown once; each message stands in the log with its tries, and is sent again."""
    await go(console, page, "/webhooks")
    await page.wait_for("text=Nobody else is told")
    await page.click("text=New webhook")
    await page.fill("input[type=url]", f"{console.server.place.url}/nobody")
    await is_sound(page)
    await page.click("text=Make the webhook")
    await page.wait_for("[data-secret]")
    await page.click("text=I have kept it")
    await page.click("[data-webhook] button")
    await page.click("text=Send a test")
    await page.wait_for("[data-delivery] >> text=One try")
    await is_sound(page)
    await page.click("css=button:has-text('Switch off')")
    await page.wait_for("[data-webhook][data-state=off]")
    await page.wait_for("[data-webhook] >> text=the last message did not arrive")
    await page.click("css=button:has-text('Switch on')")
    await page.wait_for("[data-webhook][data-state=active]")
    await page.click("text=New secret")
    await page.click("dialog >> css=button:has-text('Make it')")
    await page.wait_for("[data-secret]")
    await page.click("text=I have kept it")
    await page.click("[data-webhook] >> text=Delete")
    await page.click("dialog >> css=button:has-text('Delete')")
    await page.wait_for("text=Nobody else is told")


async def test_everything_is_reached_by_the_keyboard(console: Console, page: Page) -> None:
    """K2: pages and chats by a few letters of their names; a list of the keys; none of it while somebody writes."""
    await console.begin(page, "hello palette")
    await page.wait_for("text=Hello there.")
    await page.press("body", "Control+k")
    await page.fill("[aria-label='What you look for']", "usa")
    await page.wait_for("[data-palette] [aria-selected=true] >> text=Usage")
    await is_sound(page)
    await page.press("[aria-label='What you look for']", "Enter")
    await page.wait_for("h1 >> text=Usage")
    await page.press("body", "Control+k")
    await page.fill("[aria-label='What you look for']", "hello palette")
    await page.wait_for("[data-palette] >> text=hello palette")
    await page.press("[aria-label='What you look for']", "Enter")
    await page.wait_for("text=Hello there.")
    await page.press("[aria-label='Search chats']", "?")
    assert await page.texts("[data-help]") == []
    await page.evaluate("document.activeElement.blur()")
    await page.press("body", "?")
    await page.wait_for("[data-help]")
    await is_sound(page)
    await page.press("body", "Escape")
    await page.wait_for("[data-help]", state="hidden")
    await page.press("body", "g")
    await page.press("body", "n")
    await page.wait_for("h1 >> text=Needs you")


async def test_a_megabyte_of_output_opens_at_its_end(console: Console, page: Page) -> None:
    """K2, C3: in colours, with few elements; earlier parts on demand; what the server finds far away is shown."""
    await console.begin(page, "flood")
    await page.wait_for("[data-task][data-state=succeeded]")
    await go(console, page, "/tasks?tool=flood")
    await page.click("ul[aria-label=Tasks] a")
    await page.wait_for("[role=log] .ansi-red >> text=The last line.")
    assert await page.evaluate("document.querySelectorAll('[role=log] [data-index]').length") < 200
    before = int(await page.evaluate("document.querySelector('[role=log]').dataset.lines"))
    await page.click("css=button:has-text('Earlier')")
    await becomes(page, f"Number(document.querySelector('[role=log]').dataset.lines) > {before + 100}")
    await page.fill("[aria-label='Search the output']", "The first line.")
    await page.press("[aria-label='Search the output']", "Enter")
    await page.click("[data-found='1'] li button")
    await page.wait_for("[role=log] mark >> text=The first line.")
    await is_sound(page)
    await page.click("[aria-label='To the end of the output']")
    await page.wait_for("[role=log] .ansi-red >> text=The last line.")
