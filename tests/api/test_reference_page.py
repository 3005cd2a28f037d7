"""The page at /docs: it says what the OpenAPI document says, and needs no network."""

import base64
import hashlib
from html.parser import HTMLParser
from typing import Any

import pytest

from outlast.api.reference import HEADERS, reference_page
from tests.support.network.server import serving
from tests.support.turns.runtime import Runtime

HOSTILE = "<script>alert(1)</script>'\"&`<b>`"


class Page(HTMLParser):
    """What a browser makes of it: text, ids, addresses and scripts."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.words = list[str]()
        self.tags = list[str]()
        self.ids = list[str]()
        self.links = list[str]()
        self.styles = list[str]()
        self.feed(source)
        self.close()
        self.text = " ".join(self.words)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), name
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src"):
                self.links.append(value or "")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] == "style" and not self.styles:
            self.styles.append(data)
        self.words.append(data.strip())


async def test_the_page_says_what_the_document_says(runtime: Runtime) -> None:
    """K6: every route, parameter, field and schema; every link leads somewhere on it."""
    async with serving(runtime()) as server:
        stranger = server.with_headers({})
        document = (await stranger.get("/openapi.json")).json()
        answer = await stranger.get("/docs")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    page = Page(answer.text)
    operations = [each for methods in document["paths"].values() for each in methods.values()]
    schemas = document["components"]["schemas"]
    assert set(page.ids) == {each["operationId"] for each in operations} | {f"schema-{name}" for name in schemas}
    assert len(page.ids) == len(set(page.ids))
    names = {each["name"] for operation in operations for each in operation.get("parameters", ())}
    names |= {field for each in schemas.values() for field in each.get("properties", ())}
    assert {each for each in names | set(document["paths"]) if each not in page.text} == set()
    assert {each for each in page.links if each != "openapi.json" and each.removeprefix("#") not in page.ids} == set()


async def test_the_page_loads_nothing_and_runs_nothing(runtime: Runtime) -> None:
    """G3: without a network, and with a policy that allows its one style and nothing else."""
    async with serving(runtime()) as server:
        stranger = server.with_headers({})
        answer = await stranger.get("/docs")
        assert (await stranger.get("/redoc")).status_code == 404
    page = Page(answer.text)
    assert {"script", "img", "link", "iframe", "form"} & set(page.tags) == set()
    assert "://" not in "".join(page.links)
    [style] = page.styles
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert base64.b64encode(hashlib.sha256(style.encode()).digest()).decode() in policy
    assert "unsafe" not in policy
    assert answer.headers["x-frame-options"] == HEADERS["X-Frame-Options"]


@pytest.mark.parametrize("where", ["title", "path", "tag", "name", "description", "default", "enum", "schema"])
def test_no_text_of_a_document_becomes_markup(where: str) -> None:
    """G4: titles, names and defaults may come from whoever wrote the agent."""
    given = {each: HOSTILE if each == where else "plain" for each in ("title", "path", "tag", "name", "description")}
    schema: dict[str, Any] = {"type": "string", "default": HOSTILE if where == "default" else "x"}
    if where == "enum":
        schema = {"enum": [HOSTILE]}
    operation = {
        "tags": [given["tag"]],
        "operationId": "do",
        "description": given["description"],
        "parameters": [{"name": given["name"], "in": "query", "schema": schema, "description": given["description"]}],
        "responses": {"200": {"description": given["description"]}},
    }
    named = HOSTILE if where == "schema" else "Thing"
    document = {
        "info": {"title": given["title"], "version": "1"},
        "paths": {given["path"]: {"get": operation}},
        "components": {"schemas": {named: {"properties": {given["name"]: schema}, "examples": [{"a": HOSTILE}]}}},
    }
    page = Page(reference_page(document))
    assert {"script", "b"} & set(page.tags) - {"b"} == set()
    assert page.tags.count("b") == 1, "the method alone"
    assert "alert(1)" in page.text
