"""Files in the console, in a real browser: sent by button, drop and paste, shown where they are safe, and saved."""

import base64
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.apps.console_app import PICTURE
from tests.support.processes.serving_process import ServingProcess
from tests.support.screens.browser import Browser, Page
from tests.support.screens.console import APP, MESSAGE, Console, elsewhere, faults, send, session_of, until

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
_SHOWN = "img[alt='{name}']"
_IS_LOADED = '(() => {{ const image = document.querySelector("{selector}"); return image.naturalWidth === 8; }})()'
_GIVE = """((kind, selector, files) => {
  const given = new DataTransfer();
  for (const [name, type, data] of files)
    given.items.add(new File([Uint8Array.from(atob(data), (each) => each.charCodeAt(0))], name, { type }));
  const options = { bubbles: true, cancelable: true };
  const event = kind === "paste"
    ? new ClipboardEvent(kind, { ...options, clipboardData: given })
    : new DragEvent(kind, { ...options, dataTransfer: given });
  document.querySelector(selector).dispatchEvent(event);
})"""


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    own = {"OUTLAST_MAX_FILE_BYTES": "100000"}
    with ServingProcess(tmp_path_factory.mktemp("files"), app=APP, environment=own) as server:
        yield Console(server)


@pytest.fixture
async def page(browser: Browser, console: Console) -> AsyncIterator[Page]:
    """A tab that is signed in. Whatever a test does, nothing is asked for elsewhere, and no error is left."""
    async with browser.page() as page:
        await console.sign_in(page)
        yield page
        assert await elsewhere(page) == []
        assert await page.problems() == []


async def give(page: Page, kind: str, *files: tuple[str, str, bytes], to: str = MESSAGE) -> None:
    """As if somebody dragged them there or pasted them."""
    shown = [[name, type_, base64.b64encode(data).decode()] for name, type_, data in files]
    await page.evaluate(f"{_GIVE}({json.dumps(kind)}, {json.dumps(to)}, {json.dumps(shown)})")


async def is_shown(page: Page, name: str) -> None:
    selector = _SHOWN.format(name=name)
    await page.wait_for(selector)
    await page.until(_IS_LOADED.format(selector=selector))


async def test_files_are_dropped_pasted_and_chosen(console: Console, page: Page, tmp_path: Path) -> None:
    """K2, D12: each is named before it is sent and can be left out; the picture reaches the model as one."""
    await give(page, "dragover", ("river.png", "image/png", PICTURE))
    await page.wait_for("[data-drop]")
    await give(page, "drop", ("river.png", "image/png", PICTURE), ("wrong.txt", "text/plain", b"wrong"))
    await page.wait_for("[data-drop]", state="hidden")
    await give(page, "paste", ("bridge.png", "image/png", PICTURE + b" "))
    chosen = tmp_path / "levels.csv"
    chosen.write_text("place,metres\nbridge,2\n")
    await page.choose("input[type=file]", chosen)
    await page.wait_for("[data-attached='levels.csv']")
    await page.click("[data-attached='wrong.txt'] button")
    assert await faults(page) == []
    await send(page, "images")
    await page.wait_for("text=I was sent 2 images.")
    await is_shown(page, "river.png")
    await is_shown(page, "bridge.png")
    await page.wait_for("[data-attached]", state="hidden")
    session_id = await page.evaluate("document.querySelector('[data-session]').dataset.session")
    async with console.api() as api:
        items = (await api.get(f"/v1/sessions/{session_id}/files")).raise_for_status().json()["items"]
    assert [(each["name"], each["media_type"]) for each in items] == [
        ("bridge.png", "image/png"),
        ("levels.csv", "text/csv"),
        ("river.png", "image/png"),
    ]
    await page.click("css=button[aria-label='Look at levels.csv']")
    await page.wait_for("[data-preview-of='levels.csv'] >> text=bridge,2")
    assert await faults(page) == []
    await page.reload()
    await is_shown(page, "river.png")


async def test_a_file_that_is_refused_is_told_in_words(console: Console, page: Page) -> None:
    """K2, D12: the message waits, with what it says; without the file, it is sent."""
    await console.begin(page, "hello")
    await page.wait_for("text=Hello there.")
    await give(page, "paste", ("huge.bin", "application/octet-stream", bytes(100_001)))
    await send(page, "images")
    await page.wait_for("[data-waiting=unsent] >> text=a file has at most 100000")
    await page.click("css=button[aria-label='Discard']")
    await page.wait_for("[data-waiting=unsent]", state="hidden")
    await give(page, "paste", ("river.png", "image/png", PICTURE))
    await page.press(MESSAGE, "Enter")
    await page.wait_for("text=You said river.png")
    await is_shown(page, "river.png")
    assert [each for each in await page.problems() if "413" not in each] == []


async def test_what_a_tool_made_is_looked_at_and_saved(console: Console, page: Page) -> None:
    """K2, A3: a picture as itself, a page as its text, which can do nothing; the rest is saved, under its name."""
    session_id = await console.begin(page, "draw")
    await page.wait_for("text=The work is done.")
    await is_shown(page, "levels.png")
    async with console.api() as api:
        [task] = (await api.get("/v1/tasks", params={"session": session_id})).raise_for_status().json()["items"]
    await page.open(f"{console.server.place.url}/tasks/{task['id']}")
    await is_shown(page, "levels.png")
    await page.click("css=button[aria-label='Look at levels.html']")
    await page.wait_for("[data-preview-of='levels.html'] >> text=<script>")
    assert await page.evaluate("document.title") != "taken"
    assert await page.evaluate("document.querySelectorAll('[data-preview-of] script, iframe').length") == 0
    assert await page.evaluate("document.querySelectorAll(\"[aria-label='Look at levels.bin']\").length") == 0
    for name in ("levels.bin", "levels.html", "levels.csv"):
        said = await page.evaluate(
            f"fetch(document.querySelector(\"a[aria-label='Save {name}']\").href).then(({{ headers }}) => "
            "[headers.get('content-disposition'), headers.get('x-content-type-options')])"
        )
        assert said[0].startswith(f'attachment; filename="{name}"'), said
        assert said[1] == "nosniff"
    assert await faults(page) == []
    await page.resize(390, 850)
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out"


async def test_an_edited_message_takes_its_files_along(console: Console, page: Page) -> None:
    """K2, D12: into the chat in which it goes on, where one of them can be left out."""
    before = await console.begin(page, "hello")
    await page.wait_for("text=Hello there.")
    await give(page, "paste", ("river.png", "image/png", PICTURE), ("levels.csv", "text/csv", b"place,metres\n"))
    await send(page, "images of the river")
    await page.wait_for("text=I was sent 1 images.")
    await page.wait_for("[data-turn]:last-of-type[data-state=completed]")
    await page.click("[data-block=message]:has-text('of the river') [aria-label^=Edit]")
    await page.click("[data-turn] [data-attached='levels.csv'] button")
    await page.fill("[aria-label='The message, edited']", "images of the bridge")
    await page.click("[data-turn] >> text=Send")
    await until(
        page, f"![null, '{before}'].includes(document.querySelector('[data-session]')?.dataset.session ?? null)"
    )
    await page.wait_for("text=images of the bridge")
    await page.wait_for("text=I was sent 1 images.")
    await is_shown(page, "river.png")
    [message] = [
        each
        for turn in (await console.view(await session_of(page)))["turns"]
        for each in turn["blocks"]
        if each["type"] == "message"
    ]
    assert [each["name"] for each in message["files"]] == ["river.png"]
    assert await faults(page) == []


async def test_a_chat_that_begins_with_a_file_is_edited(console: Console, page: Page) -> None:
    """K2, D12: the first message of all has no words but those of its file."""
    await give(page, "paste", ("river.png", "image/png", PICTURE))
    await send(page, "images")
    await page.wait_for("text=I was sent 1 images.")
    await page.wait_for("[data-turn][data-state=completed]")
    before = await session_of(page)
    await page.click("[data-block=message] [aria-label^=Edit]")
    await page.fill("[aria-label='The message, edited']", "images once more")
    await page.click("[data-turn] >> text=Send")
    await until(
        page, f"![null, '{before}'].includes(document.querySelector('[data-session]')?.dataset.session ?? null)"
    )
    await page.wait_for("text=I was sent 1 images.")
    await is_shown(page, "river.png")
