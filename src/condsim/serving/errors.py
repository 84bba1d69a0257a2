"""Error responses: one form of JSON, with the text that the command line would print."""

from __future__ import annotations

import logging
import re
import reprlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.routing import Match

from condsim.errors import CondSimError, InputError, MissingExtraError, ModelError

_LOGGER = logging.getLogger(__name__)
_MAX_MESSAGE_CHARACTERS = 1000


class RequestError(HTTPException):
    """A rejected request: HTTP status, message and seconds after which to try again."""

    def __init__(self, status: int, message: str, *, retry_after: int | None = None) -> None:
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        if status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        if status == 408:
            headers["Connection"] = "close"
        super().__init__(status, message, headers)


@contextmanager
def faults_of_the_server() -> Iterator[None]:
    """Separate errors with a cause, such as a damaged index, which the caller cannot help."""
    try:
        yield
    except InputError as error:
        if error.__cause__ is None:
            raise
        raise ModelError(str(error)) from error


class ErrorDetail(BaseModel):
    """One line that says what is wrong, and the kind of error."""

    message: str
    type: str


class ErrorBody(BaseModel):
    """The form in which OpenAI's clients look for an error."""

    error: ErrorDetail


_STATUSES = {
    400: ("invalid_request_error", "The request breaks a rule."),
    401: ("authentication_error", "The API key is missing or wrong."),
    404: ("not_found_error", "There is no such model, or no index."),
    408: ("timeout_error", "The request did not arrive in time."),
    413: ("too_large_error", "The request exceeds a limit, which the text names."),
    415: ("invalid_request_error", "The body is not JSON."),
    422: ("invalid_request_error", "There is not one condition for each text."),
    429: ("rate_limit_error", "The queue is full; `Retry-After` says when to try again."),
    500: ("server_error", "The server failed; its log says why."),
    501: ("server_error", "The server lacks a library, which the text names."),
    503: ("server_error", "The answer took too long, or the server is stopping."),
}
RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorBody, "description": text} for status, (_, text) in _STATUSES.items()
}
"""Error responses of a route with a body, for the OpenAPI document."""


def error_response(error: Exception, request: Request | None = None) -> JSONResponse:
    """Convert an exception to a response; internal errors are logged and hidden."""
    status, headers, message = 400, None, str(error)
    if isinstance(error, StarletteHTTPException):
        status, headers, message = error.status_code, error.headers, str(error.detail)
        if request is not None and not isinstance(error, RequestError):
            message = _framework_message(error, request)
            if status == 405:
                headers = {"Allow": ", ".join(_methods(request))}
    elif isinstance(error, RequestValidationError):
        message = _validation_message(error.errors()[0])
    elif isinstance(error, MissingExtraError):
        status = 501
    elif not isinstance(error, InputError):
        _LOGGER.error("A request failed.", exc_info=error)
        status, message = 500, "The server failed on this request; its log says why."
    if len(message) > _MAX_MESSAGE_CHARACTERS:
        message = f"{message[:_MAX_MESSAGE_CHARACTERS]} …"
    kind = _STATUSES.get(status, _STATUSES[400])[0]
    return JSONResponse({"error": {"message": message, "type": kind}}, status, headers)


def _framework_message(error: StarletteHTTPException, request: Request) -> str:
    """Say what the framework's own text, such as "Not Found", leaves out."""
    if isinstance(cause := error.__cause__, UnicodeDecodeError):
        byte, place = cause.object[cause.start], cause.start
        return f"The body must be JSON in UTF-8; got the byte 0x{byte:02x} at position {place}."
    subject = f"{request.method} {request.url.path}"
    if error.status_code == 404:
        return f"{subject}: there is no such route; GET /openapi.json lists all."
    if error.status_code == 405:
        return f"{subject}: this route takes {' and '.join(_methods(request))}."
    return f"{subject}: {str(error.detail).removesuffix('.')}."


def _methods(request: Request) -> list[str]:
    """List the methods that the routes at the path of a request take."""
    methods = []
    for method in ("GET", "POST"):
        scope = {**request.scope, "method": method}
        if any(route.matches(scope)[0] is Match.FULL for route in request.app.routes):
            methods += ["GET", "HEAD"] if method == "GET" else [method]
    return methods


def _validation_message(fault: Mapping[str, Any]) -> str:
    """Describe the first rule that a body breaks."""
    _, *path = fault["loc"]
    rule = fault["msg"]
    if fault["type"] == "json_invalid":
        return f"The request is not valid JSON: {fault['ctx']['error']}."
    if fault["type"] == "value_error" and not path:
        return str(fault["ctx"]["error"])
    if not path:
        return "The request must be a JSON object."
    key = path[0]
    for part in path[1:]:
        key += f"[{part}]" if isinstance(part, int) else f".{part}"
    if fault["type"] == "extra_forbidden":
        return f"Unknown request key {key!r}."
    if fault["type"] == "missing":
        return f"The request key {key!r} is missing."
    rule = rule.removeprefix("Value error, ")
    rule = re.sub("^(Input|List) should", "must", rule).replace(" after validation", "")
    return f"Request key {key!r} {rule}; got {reprlib.repr(fault['input'])}."


def handle_errors(app: FastAPI) -> None:
    """Give all error responses of an app the same form."""

    async def respond(request: Request, error: Exception) -> JSONResponse:
        return error_response(error, request)

    for kind in (CondSimError, StarletteHTTPException, RequestValidationError, Exception):
        app.add_exception_handler(kind, respond)
