"""The console over HTTP: its addresses, its policy, below a path, and when it was not built (K2)."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from outlast.api import create_app
from outlast.api.routes.server import page
from tests.support.turns.runtime import Runtime, scripted

INDEX = '<!doctype html><head><base href="./" /><script type="module" src="./assets/index-1.js"></script></head>'


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As a build leaves it."""
    folder = tmp_path / "console"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text(INDEX)
    (folder / "assets" / "index-1.js").write_text("console.log(1)")
    (tmp_path / "secret.js").write_text("secret")
    monkeypatch.setattr(page, "BUILT", folder)
    return folder


@pytest.fixture(params=["", "/below/here"])
async def client(runtime: Runtime, request: pytest.FixtureRequest) -> AsyncIterator[httpx2.AsyncClient]:
    """By itself, and mounted in another app."""
    prefix: str = request.param
    async with runtime(scripted("Hello.")) as outlast:
        app = create_app(outlast)
        served = Starlette(routes=[Mount(prefix, app)]) if prefix else app
        base = f"http://test{prefix}"
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(served), base_url=base) as client:
            yield client


@pytest.mark.parametrize(
    ("path", "base"),
    [("/", "./"), ("/tasks", "./"), ("/sessions/ses_1", "../"), ("/tasks/tsk_1", "../")],
)
async def test_every_page_finds_its_files(client: httpx2.AsyncClient, built: Path, path: str, base: str) -> None:
    """K2: one document for all pages, whose base leads back to where Outlast is mounted, whatever stands before."""
    answer = await client.get(path)
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-cache")
    assert f'<base href="{base}"' in answer.text
    script = answer.url.join(base).join("assets/index-1.js")
    assert (await client.get(script)).text == "console.log(1)"
    assert (await client.head(path)).status_code == 200


async def test_a_browser_that_looks_for_an_icon_finds_no_error(client: httpx2.AsyncClient) -> None:
    """K2: it asks by itself, for pages that name none; without a key."""
    for answer in (await client.get("/favicon.ico"), await client.head("/favicon.ico")):
        assert (answer.status_code, answer.content) == (204, b"")


async def test_its_policy_lets_nothing_in_from_elsewhere(client: httpx2.AsyncClient, built: Path) -> None:
    """K2: no inline script or style, no other origin, and scripts' addresses only by one named policy."""
    policy = (await client.get("/")).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "require-trusted-types-for 'script'; trusted-types outlast" in policy
    assert re.findall(r"unsafe-\w+|https?:|\*", policy) == []


async def test_files_are_kept_by_browsers_and_packed(client: httpx2.AsyncClient, built: Path) -> None:
    """K2: their names change with what they hold."""
    packed = await client.get("/assets/index-1.js", headers={"Accept-Encoding": "gzip"})
    plain = await client.get("/assets/index-1.js", headers={"Accept-Encoding": "identity"})
    assert (packed.headers["content-encoding"], packed.text) == ("gzip", plain.text)
    assert "content-encoding" not in plain.headers
    for each in (packed, plain):
        assert (each.headers["content-type"], each.headers["x-content-type-options"]) == (
            "text/javascript; charset=utf-8",
            "nosniff",
        )
        assert "immutable" in each.headers["cache-control"]


@pytest.mark.parametrize(
    "path", ["/elsewhere", "/sessions", "/tasks/a/b", "/assets/other.js", "/assets/..%2f..%2fsecret.js", "/assets/"]
)
async def test_an_unknown_address_keeps_its_problem(client: httpx2.AsyncClient, built: Path, path: str) -> None:
    """K2: programs that mistype an address are not given a page, and nothing but what was built can be read."""
    answer = await client.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")


async def test_a_server_without_its_console_says_how_to_build_it(
    client: httpx2.AsyncClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K2: in place of a page that does not work."""
    monkeypatch.setattr(page, "BUILT", tmp_path / "nothing")
    answer = await client.get("/")
    assert answer.status_code == 200
    assert "make console" in answer.text
