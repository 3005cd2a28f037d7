"""The console in a real browser: after each flow, what it shows is what the server's view has (K2)."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.processes.serving_process import ServingProcess
from tests.support.screens.browser import Browser, Page
from tests.support.screens.console import APP, MESSAGE, Console, elsewhere, faults, send, until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """One server for all, whose gates have names of their own."""
    with ServingProcess(tmp_path_factory.mktemp("console"), app=APP) as server:
        yield Console(server)


@pytest.fixture
async def page(browser: Browser, console: Console) -> AsyncIterator[Page]:
    """A tab that is signed in. Whatever a test does, nothing is asked for elsewhere, and no error is left."""
    async with browser.page() as page:
        await console.sign_in(page)
        yield page
        assert await elsewhere(page) == []
        assert await page.problems() == []


async def test_an_answer_is_shown_while_it_is_said(console: Console, page: Page) -> None:
    """K2, D3: word by word, and then as it is kept; the chat stands in the list under its first words."""
    await console.begin(page, "slow first")
    await page.wait_for("[data-open] >> text=One")
    await console.is_as_the_server_says(page)
    console.open_gate("first")
    await page.wait_for("text=One two.")
    await page.wait_for("[data-turn][data-state=completed]")
    await console.is_as_the_server_says(page)
    await page.wait_for("nav[aria-label=Chats] >> text=slow first")
    await send(page, "hello")
    await page.wait_for("text=Hello there.")
    await console.is_as_the_server_says(page)


async def test_a_reload_in_the_middle_of_a_word_loses_and_doubles_nothing(console: Console, page: Page) -> None:
    """K2, D1: also a second tab shows the same."""
    await console.begin(page, "slow second")
    await page.wait_for("[data-open] >> text=One")
    await page.reload()
    await page.wait_for("[data-open] >> text=One")
    other = page.tab("other")
    await other.open(await page.evaluate("location.href"))
    await other.wait_for("[data-open] >> text=One")
    console.open_gate("second")
    for each in (page, other):
        await each.wait_for("text=One two.")
        await each.wait_for("[data-turn][data-state=completed]")
        await console.is_as_the_server_says(each)


async def test_nine_tabs_use_one_connection(console: Console, page: Page) -> None:
    """K2: browsers allow six for a server; with one a tab, the seventh could not even send."""
    session_id = await console.begin(page, "hello")
    await page.wait_for("text=Hello there.")
    tabs = [page.tab(f"tab {number}") for number in range(8)]
    for each in tabs:
        await each.open(f"{console.server.place.url}/sessions/{session_id}")
        await each.wait_for("text=Hello there.")
    await send(tabs[-1], "slow nine")
    await tabs[0].wait_for("[data-open] >> text=One")
    console.open_gate("nine")
    for each in (page, tabs[0], tabs[-1]):
        await each.wait_for("text=One two.")
        await console.is_as_the_server_says(each)


async def test_a_parked_call_is_the_live_task_and_then_its_end(console: Console, page: Page) -> None:
    """K2, C3: in the same place; the wake is a note, and the woken answer comes by itself."""
    await console.begin(page, "survey river")
    await page.wait_for("[data-task][data-state=running] [role=progressbar]")
    await page.wait_for("text=1 of 4 places · upstream")
    await page.wait_for("text=It goes on.")
    await page.wait_for("[data-tool=survey] >> text=goes on in the background")
    await console.is_as_the_server_says(page)
    console.open_gate("river")
    await page.wait_for("[data-task][data-state=succeeded]")
    await page.wait_for("[data-tool=survey] >> text=goes on in the background", state="hidden")
    await page.wait_for("[data-block=wake]")
    await page.wait_for("text=The work is done.")
    await console.is_as_the_server_says(page)


async def test_a_waiting_message_is_a_chip_until_it_is_heard(console: Console, page: Page) -> None:
    """K2, D10: it can be changed and taken back, and then stands where the model was told it."""
    await console.begin(page, "slow chips")
    await page.wait_for("[data-open] >> text=One")
    await send(page, "and birds")
    await page.wait_for("[data-waiting=message] >> text=and birds")
    await send(page, "never said")
    await page.wait_for("[data-waiting=message] >> text=never said")
    await page.click("[data-waiting=message]:has-text('never said') [aria-label='Take it back']")
    await page.wait_for("[data-waiting=message] >> text=never said", state="hidden")
    await page.click("[data-waiting=message] [aria-label='Edit the waiting message']")
    await page.fill("[aria-label='The waiting message']", "and frogs")
    await page.press("[aria-label='The waiting message']", "Enter")
    await page.wait_for("[data-waiting=message] >> text=and frogs")
    console.open_gate("chips")
    await page.wait_for("text=You said and frogs.")
    assert await page.texts("[data-waiting]") == []
    await console.is_as_the_server_says(page)


async def test_stop_says_what_is_kept_and_holds(console: Console, page: Page) -> None:
    """K2, B4: what was said stays; the next message goes on."""
    await console.begin(page, "slow stopped")
    await page.wait_for("[data-open] >> text=One")
    await page.click("[aria-label=Stop]")
    await page.wait_for("[data-turn][data-state=stopped]")
    await page.wait_for("text=what was said and done is kept")
    await page.wait_for("[data-held]")
    await console.is_as_the_server_says(page)
    await send(page, "hello")
    await page.wait_for("text=Hello there.")
    assert await page.texts("[data-held]") == []
    await console.is_as_the_server_says(page)


async def test_only_of_a_call_whose_effect_is_unknown_is_it_asked_what_it_did(console: Console, page: Page) -> None:
    """K2, A2: the other one only looked; what is said of the first stands beside it."""
    await console.begin(page, "charge never")
    await until(page, "document.querySelectorAll('[data-call][data-outcome=running]').length === 2")
    await page.click("[aria-label=Stop]")
    await page.wait_for("[data-turn][data-state=stopped]")
    await page.wait_for("[data-call]:has-text('charge') >> text=it may or may not have worked")
    charged, looked = await page.texts("[data-call][data-outcome=interrupted]")
    assert "It worked" in charged
    assert ("may or may not" in looked, "It worked" in looked) == (False, False)
    await console.is_as_the_server_says(page)
    await page.click("text=It worked")
    await page.wait_for("text=said: it worked.")
    await console.is_as_the_server_says(page)


async def test_a_call_is_approved_where_it_stands(console: Console, page: Page) -> None:
    """K2, B8: with the arguments that it will run with; also after a reload."""
    await console.begin(page, "pay")
    await page.wait_for("[data-request]")
    await page.reload()
    await page.wait_for("[data-request] textarea")
    assert await page.evaluate("document.querySelector('[data-request] textarea').value") == '{\n  "euros": 100\n}'
    await page.click("[data-request] >> text=Approve")
    await page.wait_for("[data-task][data-state=succeeded]")
    await page.wait_for("text=The work is done.")
    await console.is_as_the_server_says(page)


async def test_a_failure_is_told_and_can_be_gone_on_from(console: Console, page: Page) -> None:
    """K2, E6: in words, with a button."""
    await console.begin(page, "fail")
    await page.wait_for("[data-failed]")
    await page.wait_for("text=Go on")
    await console.is_as_the_server_says(page)


async def test_an_answer_is_made_once_more_in_its_place(console: Console, page: Page) -> None:
    """K2, D3: what was asked stays above it; the older answer is gone, also after a reload."""
    await console.begin(page, "hello")
    await page.wait_for("text=Hello there.")
    first = await page.evaluate("document.querySelector('[data-turn]').dataset.turn")
    await page.click("[aria-label='Answer once more']")
    await until(page, f"![...document.querySelectorAll('[data-turn]')].some((each) => each.dataset.turn === '{first}')")
    await page.wait_for("[data-turn][data-state=completed]")
    for _ in range(2):
        await page.wait_for("text=Hello there.")
        assert await page.texts("[data-block=message]") == ["hello"]
        await console.is_as_the_server_says(page)
        await page.reload()


async def test_an_edited_message_goes_on_in_a_chat_of_its_own(console: Console, page: Page) -> None:
    """K2: with all that was there before it; the chat it was in stays as it is."""
    before = await console.begin(page, "hello")
    await page.wait_for("text=Hello there.")
    await send(page, "about frogs")
    await page.wait_for("text=You said about frogs.")
    await page.wait_for("[data-turn][data-state=completed]")
    await page.click("[data-turn]:last-of-type [data-block=message]:has-text('about frogs') [aria-label^=Edit]")
    await page.fill("[aria-label='The message, edited']", "about birds")
    await page.click("[data-turn] >> text=Send")
    await until(page, f"document.querySelector('[data-session]')?.dataset.session !== '{before}'")
    await page.wait_for("text=You said about birds.")
    await page.wait_for("[data-before] >> text=Hello there.")
    await console.is_as_the_server_says(page)
    told = [each["text"] for turn in (await console.view(before))["turns"] for each in turn["blocks"] if "text" in each]
    assert "about birds" not in told


async def test_after_ten_seconds_of_silence_it_says_what_it_waits_for(console: Console, page: Page) -> None:
    """K2: in words, not three dots for ever."""
    await console.begin(page, "slow silence")
    await page.wait_for("[data-open] >> text=One")
    assert await page.texts("[data-waits]") == []
    await page.wait_for("[data-waits] >> text=The model has paused in its answer.")
    console.open_gate("silence")
    await page.wait_for("text=One two.")
    assert await page.texts("[data-waits]") == []


async def test_a_draft_is_there_after_a_reload(console: Console, page: Page) -> None:
    """K2: what was begun and not sent."""
    await console.begin(page, "hello")
    await page.wait_for("text=Hello there.")
    await page.fill(MESSAGE, "half a thou")
    await page.reload()
    await until(page, "document.querySelector('textarea')?.value === 'half a thou'")


async def test_a_typed_answer_is_a_card(console: Console, page: Page) -> None:
    """K2, A1: its fields by their names, also after a reload; no agent looks mute."""
    await console.begin(page, "report")
    await page.wait_for("[data-output]")
    shown = "document.querySelector('[data-output] dl').innerText.split(/\\s+/).join(' ')"
    assert await page.evaluate(shown) == "city Oslo birds 12"
    await page.reload()
    await page.wait_for("[data-output]")
    assert await page.evaluate(shown) == "city Oslo birds 12"
    await console.is_as_the_server_says(page)


async def test_hostile_words_stay_words(console: Console, page: Page) -> None:
    """K2: no script runs, no picture is asked for, no address but http and mailto can be followed."""
    await console.begin(page, "hostile")
    await page.wait_for("[data-turn][data-state=completed]")
    await page.wait_for("text=a box")
    answer = "document.querySelector('[data-block=text]')"
    assert await page.evaluate(f"{answer}.querySelectorAll('script, img, iframe, [onclick], [onerror]').length") == 0
    links = await page.evaluate(f"[...{answer}.querySelectorAll('a')].map((each) => each.href)")
    assert [each for each in links if not each.startswith("https://evil.example/")] == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
async def test_axe_finds_no_serious_fault(console: Console, page: Page, theme: str, width: int) -> None:
    """K2: on the chat with all that stands in it, in both themes, also as wide as a phone."""
    await page.resize(width, 850)
    await page.evaluate(f"localStorage.setItem('outlast.theme', '{theme}')")
    await page.reload()
    await page.wait_for(MESSAGE)
    assert await faults(page) == []
    if width < 700:
        await page.click("[aria-label='Open the side bar']")
    await console.begin(page, "hostile")
    await page.wait_for("[data-turn][data-state=completed]")
    await send(page, "pay")
    await page.wait_for("[data-request]")
    await send(page, f"slow {theme}{width}")
    await page.wait_for("[data-open] >> text=One")
    await send(page, "and birds")
    await page.wait_for("[data-waiting=message]")
    assert await faults(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out"
