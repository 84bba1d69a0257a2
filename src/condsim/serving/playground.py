"""The page to try the model: hand-written files that load nothing from elsewhere."""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import Response

from condsim.serving.errors import RequestError

_MEDIA_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
_FILES = {
    file.name: file.read_bytes()
    for file in files("condsim.serving").joinpath("page").iterdir()
    if file.name.partition(".")[2] in _MEDIA_TYPES
}

router = APIRouter(include_in_schema=False)


@router.get("/")
async def playground() -> Response:
    """Return the page."""
    return await page_file("index.html")


@router.get("/page/{name}")
async def page_file(name: str) -> Response:
    """Return a file of the page; it needs no key, since the page asks for one."""
    if name not in _FILES:
        raise RequestError(404, "The page has no such file.")
    media_type = _MEDIA_TYPES[name.partition(".")[2]]
    return Response(_FILES[name], media_type=media_type, headers=_HEADERS)
