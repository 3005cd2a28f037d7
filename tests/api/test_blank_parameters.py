"""Query parameters as pages send them when they have nothing to say: empty, `undefined`, `null` (K3, G3)."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import quote

import pytest

from outlast.testing import gate, text
from tests.support.moments.checkpoint import Checkpoint
from tests.support.network.server import Served, serving
from tests.support.turns.runtime import Runtime, scripted

REGENERATE = {"trigger": "regenerate-message"}
BLANK = ("", "undefined", "null")
WORDS = {"search", "external_id", "agent", "kind", "owner_id"}
"""In these anybody may mean the words themselves."""


@pytest.fixture
async def server(database_url: str) -> AsyncIterator[Served]:
    async with serving(Runtime(database_url)(scripted("Hello."), max_requests_per_minute=10**6)) as server:
        yield server


def asked_by_query(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Every path that is read, with each of its query parameters."""
    return [
        (path, parameter["name"])
        for path, methods in document["paths"].items()
        for parameter in methods.get("get", {}).get("parameters", [])
        if parameter["in"] == "query"
    ]


async def test_a_parameter_without_a_value_is_as_good_as_none(server: Served) -> None:
    """Of every route there is: an empty box, `${undefined}` or `${null}` in an address ends no page in an error."""
    admin = await server.client(role="admin")
    session = (await admin.post("/v1/sessions", json={})).json()["id"]
    await admin.post(f"/v1/sessions/{session}/messages", json={"text": "hello"})
    await admin.get(f"/v1/sessions/{session}/result", params={"wait": 10})
    asked = asked_by_query((await admin.get("/openapi.json")).json())
    assert {("/api/chat/{chat_id}/stream", "after"), ("/v1/tasks", "state"), ("/v1/events", "after")} <= set(asked)
    known = {"session_id": session, "chat_id": session}
    for path, name in asked:
        path = re.sub(r"\{(\w+)\}", lambda named: known.get(named[1], "unknown"), path)
        without = await admin.get(path)
        for value in BLANK:
            got = await admin.get(path, params={name: value})
            assert got.status_code == without.status_code, (path, name, value, got.text)
            if not (value and name in WORDS):
                assert got.text == without.text, (path, name, value)


async def test_a_word_that_means_nothing_elsewhere_can_be_searched_for(server: Served) -> None:
    """Only where it cannot be a value `null` is taken for none."""
    ada = await server.client()
    for title in ("undefined and null", "other"):
        await ada.post("/v1/sessions", json={"title": title})
    for word, found in (("null", 1), ("undefined", 1), ("", 2)):
        items = (await ada.get("/v1/sessions", params={"search": word, "limit": ""})).json()["items"]
        assert len(items) == found, word


async def test_other_parameters_are_left_as_they_are(server: Served) -> None:
    """One that is blank takes nothing else away, and what is wrong is still said."""
    ada = await server.client()
    for number in range(3):
        await ada.post("/v1/sessions", json={"title": f"a&b={number} ü"})
    kept = await ada.get("/v1/sessions?cursor=undefined&limit=1&search=a%26b%3D1+%C3%BC&metadata=&archived")
    assert [each["title"] for each in kept.json()["items"]] == ["a&b=1 ü"]
    assert (await ada.get("/v1/sessions", params={"limit": "many"})).status_code == 422
    assert (await ada.get("/v1/sessions", params={"cursor": "none"})).status_code == 422


@pytest.mark.parametrize("value", BLANK)
async def test_a_stream_begins_at_its_beginning_without_a_last_event(server: Served, value: str) -> None:
    """A page that keeps the last id itself sends the header also when it has none."""
    ada = await server.client()
    session = (await ada.post("/v1/sessions", json={})).json()["id"]
    for path in (f"/v1/sessions/{session}/events", "/v1/events"):
        got = await ada.get(path, headers={"Last-Event-ID": value})
        assert (got.status_code, got.text) == (200, (await ada.get(path)).text)


UNKNOWN = (
    "",
    "undefined",
    "null",
    "NaN",
    "welcome",
    "trn_unknown",
    "ses_1",
    "-1",
    str(2**70),
    "\x00",
    "\ud83d",
    "ü" * 90,
)


async def test_a_page_that_names_no_answer_of_the_chat_gets_the_one_that_runs(database_url: str) -> None:
    """A greeting of the page's own, an answer of a chat that was deleted, nothing yet: no page ends in an error."""
    here = Checkpoint()
    async with serving(Runtime(database_url)(scripted([text("One "), gate(here), text("two.")]))) as server:
        ada = await server.client()
        addresses = [f"/api/chat/mine/stream?after={quote(each, errors='surrogatepass')}&wait=" for each in UNKNOWN]
        assert [(await ada.get(each)).status_code for each in addresses] == [204] * len(UNKNOWN), "no such chat yet"
        async with ada.stream("POST", "/api/chat", json=_said("mine")), AsyncExitStack() as pages:
            await here.reached()
            resumed = [await pages.enter_async_context(ada.stream("GET", each)) for each in addresses]
            assert [each.status_code for each in resumed] == [200] * len(UNKNOWN)
            here.open()
            for each in resumed:
                frames = "".join([line async for line in each.aiter_lines()])
                assert ('"delta":"One "' in frames, '"delta":"two."' in frames) == (True, True)
        assert [(await ada.get(each)).status_code for each in addresses] == [204] * len(UNKNOWN), "nothing runs"


async def test_a_page_without_an_answer_gets_the_first_one_even_if_it_is_over(server: Served) -> None:
    """It may end between reading the messages and the reconnect: `after=start` misses nothing."""
    ada = await server.client()
    assert (await ada.get("/api/chat/mine/stream", params={"after": "start"})).status_code == 204
    first = await ada.post("/api/chat", json=_said("mine"))
    again = await ada.get("/api/chat/mine/stream", params={"after": "start"})
    assert (again.status_code, again.text) == (200, first.text)


async def test_a_page_gets_no_answer_that_was_made_again(database_url: str) -> None:
    """Whatever it names as its last one, also an answer that was itself made again, or nothing."""
    said: list[tuple[str, dict[str, str]]]
    said = [("m1", {}), ("m2", {}), ("m2", REGENERATE), ("m2", REGENERATE), ("m3", {})]
    async with serving(Runtime(database_url)(scripted(*["Hello."] * len(said)))) as server:
        ada = await server.client()
        made = [(await ada.post("/api/chat", json=_said("mine", id_) | how)).text for id_, how in said]
        turns = [re.findall(r'"messageId":"(trn_[^"]+)"', each)[0] for each in made]
        for after, which in zip(["start", *turns[:4]], [0, 3, 3, 3, 4], strict=True):
            got = await ada.get("/api/chat/mine/stream", params={"after": after})
            assert got.text == made[which], (after, which)
        assert (await ada.get("/api/chat/mine/stream", params={"after": turns[4]})).status_code == 204


def _said(chat: str, message_id: str = "m1") -> dict[str, Any]:
    message = {"id": message_id, "role": "user", "parts": [{"type": "text", "text": "hello"}]}
    return {"id": chat, "messages": [message], "trigger": "submit-message"}
