"""Pages for people: one to try the server with, and one that describes the API."""

from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, HTMLResponse

from outlast.api.reference import HEADERS, reference_page

router = APIRouter(include_in_schema=False)
_HERE = Path(__file__).parents[1]
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; connect-src 'self'; script-src 'self'; style-src 'unsafe-inline'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@router.get("/")
async def page() -> FileResponse:
    return FileResponse(_HERE / "page.html", headers=_HEADERS)


@router.get("/page.js")
async def script() -> FileResponse:
    return FileResponse(_HERE / "page.js", media_type="text/javascript", headers=_HEADERS)


@router.get("/docs")
async def docs(request: Request) -> HTMLResponse:
    """Made from the document that programs get: it says the same."""
    return HTMLResponse(reference_page(request.app.openapi()), headers=HEADERS)
