"""The page that tries the model: hand-written files, nothing from elsewhere."""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import Response

from condsim.serving.errors import RequestError

_KINDS = {
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
    one.name: one.read_bytes()
    for one in files("condsim.serving").joinpath("page").iterdir()
    if one.name.partition(".")[2] in _KINDS
}

router = APIRouter(include_in_schema=False)


@router.get("/")
async def playground() -> Response:
    """Gives the page."""
    return await part("index.html")


@router.get("/page/{name}")
async def part(name: str) -> Response:
    """Gives a file of the page; those who have no key see it, too, for it asks for one."""
    if name not in _FILES:
        raise RequestError(404, "The page has no such file.")
    kind = _KINDS[name.partition(".")[2]]
    return Response(_FILES[name], media_type=kind, headers=_HEADERS)
