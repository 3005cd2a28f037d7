"""The example page in a real browser, with the stock clients of versions 5, 6 and 7 (K3)."""

import json
from collections.abc import AsyncIterator

import httpx2
import pytest

from tests.support.screens.browser import Page
from tests.support.screens.site import Site

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

VERSIONS = ("5", "6", "7")
ANSWERS = "li.assistant .text"


@pytest.fixture
async def api(site: Site) -> AsyncIterator[httpx2.AsyncClient]:
    """What happens behind the page's back; the owner is the page's."""
    async with httpx2.AsyncClient(base_url=site.url, timeout=30) as api:
        yield api


async def send(page: Page, text: str) -> None:
    await page.fill("input", text)
    await page.click("text=Send")


async def opened(page: Page, site: Site, version: str = "7") -> str:
    """A new chat; the id of its session."""
    await page.open(site.page(version))
    await page.wait_for("text=Send")
    return (await page.evaluate("location.hash")).removeprefix("#")


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_page_that_is_reloaded_during_its_first_answer_goes_on(
    site: Site, page: Page, api: httpx2.AsyncClient, version: str
) -> None:
    """The answer is shown from its first word, once, and its end comes without another reload."""
    gate = await opened(page, site, version)
    await send(page, f"slow {gate}")
    await page.wait_for("text=One")
    await page.reload()
    await page.wait_for("text=One")
    assert await page.texts("li.user") == [f"slow {gate}"]
    await api.post(f"/gates/{gate}")
    await page.wait_for("text=One two.")
    await page.wait_for("text=Send")
    assert await page.texts(ANSWERS) == ["One two."]
    assert await page.texts("[role=alert]") == []
    await page.reload()
    await page.wait_for("text=One two.")
    assert (await page.texts("li.user"), await page.texts(ANSWERS)) == ([f"slow {gate}"], ["One two."])


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_parked_call_is_done_in_its_place_and_the_woken_answer_appears(
    site: Site, page: Page, api: httpx2.AsyncClient, version: str
) -> None:
    """The card of the older message does not stay at "running", and nobody has to reload for the new answer."""
    gate = await opened(page, site, version)
    await send(page, f"survey {gate}")
    await page.wait_for("text=It goes on.")
    await page.wait_for("li.assistant .call[data-state=running]")
    await page.wait_for("text=In the background")
    await api.post(f"/gates/{gate}")
    await page.wait_for("text=The survey is done.")
    await page.wait_for("text=Send")
    assert await page.texts(ANSWERS) == ["It goes on.", "The survey is done."]
    assert await page.texts("li.assistant:nth-child(2) .call .state") == ["done"]
    assert await page.texts("[role=status]") == [""]
    await send(page, "hello")
    await page.wait_for("text=Hello there.")
    await page.reload()
    await page.wait_for("text=Hello there.")
    assert await page.texts(ANSWERS) == ["It goes on.", "The survey is done.", "Hello there."]
    assert await page.texts(".call .state") == ["done"]


async def test_a_parked_call_shows_how_far_it_is(site: Site, page: Page, api: httpx2.AsyncClient) -> None:
    """A bar while it runs, also after a reload, and none once it is done."""
    gate = await opened(page, site)
    await send(page, f"measure {gate}")
    await page.wait_for("text=It goes on.")
    for _ in range(2):
        await page.wait_for(".call[data-state=running] progress")
        bar = "(({ value, max }) => [value, max])(document.querySelector('.call progress'))"
        assert await page.evaluate(bar) == [1, 4]
        assert await page.texts(".call small") == ["1 of 4 places"]
        await page.reload()
    await page.wait_for(".call progress")
    await api.post(f"/gates/{gate}")
    await page.wait_for(".call[data-state=done]")
    assert await page.texts(".call progress, .call small") == []


@pytest.mark.parametrize("version", VERSIONS)
async def test_stop_ends_the_turn_and_not_only_the_connection(
    site: Site, page: Page, api: httpx2.AsyncClient, version: str
) -> None:
    """What was said stays, the turn is over for everybody, and the chat goes on."""
    gate = await opened(page, site, version)
    await send(page, f"slow {gate}")
    await page.wait_for("text=One")
    await page.click("text=Stop")
    await page.wait_for("text=Stopped.")
    assert (await api.get(f"/v1/sessions/{gate}/result")).json()["state"] == "stopped"
    await send(page, "hello")
    await page.wait_for("text=Hello there.")
    assert await page.texts(ANSWERS) == ["One", "Hello there."]


async def test_a_task_that_ends_without_waking_anybody_is_shown_as_ended(
    site: Site, page: Page, api: httpx2.AsyncClient
) -> None:
    """After Stop no turn tells what became of it: the page is told by the events."""
    gate = await opened(page, site)
    await send(page, f"survey {gate}")
    await page.wait_for("text=It goes on.")
    await send(page, f"slow more-{gate}")
    await page.wait_for("text=One")
    await page.click("text=Stop")
    await page.wait_for("text=Stopped.")
    await page.wait_for(".call[data-state=running]")
    await api.post(f"/gates/{gate}")
    await page.wait_for(".call[data-state=done]")
    assert await page.texts(ANSWERS) == ["It goes on.", "One"]


async def test_a_task_that_a_person_settled_is_shown_so(site: Site, page: Page, api: httpx2.AsyncClient) -> None:
    """Not as failed, which it was only as long as nobody knew; also after a reload."""
    gate = await opened(page, site)
    await send(page, f"dredge {gate}")
    await page.wait_for("text=It goes on.")
    [task] = (await api.get("/v1/tasks", params={"session": gate})).json()["items"]
    await api.post(f"/v1/tasks/{task['id']}/cancel", json={"wait": 10})
    await page.wait_for(".call[data-state=failed]")
    settled = await api.post(f"/v1/tasks/{task['id']}/settle", json={"verdict": "worked"})
    assert settled.status_code == 200, settled.text
    for _ in range(2):
        await page.wait_for(".call[data-state='settled: worked']")
        assert await page.texts(".call .state") == ["settled: worked"]
        await page.wait_for("text=Send")
        await page.reload()
    await api.post(f"/gates/{gate}")


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_typed_answer_is_shown_as_json(site: Site, page: Page, version: str) -> None:
    """While it comes, and after a reload; an answer in words is not shown so."""
    await opened(page, site, version)
    await send(page, "report")
    await page.wait_for("li.assistant pre")
    await page.reload()
    await page.wait_for("li.assistant pre")
    [said] = await page.texts("li.assistant pre")
    assert json.loads(said) == {"city": "Oslo", "birds": 12}
    await send(page, "hello")
    await page.wait_for("text=Hello there.")
    assert await page.texts("li.assistant pre") == [said]


async def test_two_pages_of_a_chat_show_the_same(site: Site, page: Page, api: httpx2.AsyncClient) -> None:
    """What is said in one appears in the other, while it is being answered."""
    gate = await opened(page, site)
    other = page.tab("other")
    await other.open(await page.evaluate("location.href"))
    await other.wait_for("text=Send")
    await send(page, f"slow {gate}")
    await other.wait_for("text=One")
    await api.post(f"/gates/{gate}")
    await other.wait_for("text=One two.")
    await page.wait_for("text=One two.")
    for each in (page, other):
        assert (await each.texts("li.user"), await each.texts(ANSWERS)) == ([f"slow {gate}"], ["One two."])


async def test_a_chat_that_is_not_there_is_told_in_words(site: Site, page: Page) -> None:
    """A deleted session, or a wrong address."""
    await page.open(f"{site.page()}#ses_unknown")
    await page.wait_for("text=There is no such session.")
    assert await page.problems() == [
        "console: Failed to load resource: the server responded with a status of 404 (Not Found)"
    ]
    await page.click("text=Begin a new chat")
    await page.wait_for("text=Send")
