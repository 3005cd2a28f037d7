"""Pages for people: the console, which is built from `web/`, and one that describes the API.

The console is one document for several addresses, each a route of its own, so that an address that nobody knows keeps
its problem. The document finds its files and the API by a relative base: it works below any path that Outlast is
mounted at, also behind a proxy that says nothing of its prefix.
"""

import gzip
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from outlast.api.reference import HEADERS, reference_page
from outlast.errors import NotFound

router = APIRouter(include_in_schema=False)
BUILT = Path(__file__).parents[2] / "console"
PAGES = (
    "/",
    "/sessions/{session_id}",
    "/tasks",
    "/tasks/{task_id}",
    "/needs",
    "/schedules",
    "/webhooks",
    "/usage",
    "/keys",
    "/connections",
)
_POLICY = (
    "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types outlast"
)
_SAFE = {
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_KINDS = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
    ".png": "image/png",
}
_BASE = '<base href="./"'
_MISSING = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Outlast</title>
<h1>Outlast</h1>
<p>The server runs, but its console has not been built. In the source folder, with Node 20 or later:</p>
<pre>make console</pre>
<p>It also works without: <code>outlast send "hello" --wait</code>, <code>outlast ps</code>,
<code>outlast logs -f TASK</code>. The API is described at <a href="docs">docs</a>.</p>
</html>
"""


async def page(request: Request) -> HTMLResponse:
    """The console, whichever of its pages this is."""
    path = BUILT / "index.html"
    if not path.is_file():
        return HTMLResponse(_MISSING, headers={**_SAFE, "Cache-Control": "no-cache"})
    depth = request.scope["path"].removeprefix(request.scope.get("root_path", "")).strip("/").count("/")
    base = _BASE.replace("./", "../" * depth or "./")
    headers = {**_SAFE, "Content-Security-Policy": _POLICY, "Cache-Control": "no-cache"}
    return HTMLResponse(path.read_text(encoding="utf-8").replace(_BASE, base, 1), headers=headers)


for _path in PAGES:
    router.add_api_route(_path, page, methods=["GET", "HEAD"])


@router.get("/assets/{name}")
async def asset(request: Request, name: str) -> Response:
    """A file of the console. Its name changes with what it holds, so that browsers keep it."""
    kind = _KINDS.get(Path(name).suffix)
    if kind is None or name not in _assets():
        raise NotFound(f"The console has no file {name!r}.")
    headers = {**_SAFE, "Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", "") and not kind.startswith(("font/", "image/png")):
        return Response(_packed(name), media_type=kind, headers={**headers, "Content-Encoding": "gzip"})
    return Response((BUILT / "assets" / name).read_bytes(), media_type=kind, headers=headers)


@router.api_route("/favicon.ico", methods=["GET", "HEAD"])
async def favicon() -> Response:
    """Nothing: browsers look for one by themselves where a page names none, and would tell of an error."""
    return Response(status_code=204, headers={**_SAFE, "Cache-Control": "public, max-age=86400"})


def _assets() -> Mapping[str, Path]:
    """What was built, by name: nothing else of the folder, and nothing outside of it, can be asked for."""
    return {each.name: each for each in (BUILT / "assets").glob("*")}


@cache
def _packed(name: str) -> bytes:
    return gzip.compress((BUILT / "assets" / name).read_bytes())


@router.get("/docs")
async def docs(request: Request) -> HTMLResponse:
    """Made from the document that programs get: it says the same."""
    return HTMLResponse(reference_page(request.app.openapi()), headers=HEADERS)
