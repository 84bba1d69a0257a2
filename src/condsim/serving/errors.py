"""Answers that are no result: one form of JSON, with the text that the command line would print."""

from __future__ import annotations

import logging

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from condsim.errors import CondSimError, InputError, MissingExtraError

_LOGGER = logging.getLogger(__name__)
_LONGEST = 1000  # characters of a message, which may quote what was given


class RequestError(CondSimError):
    """A request that is refused with an HTTP status, and seconds after which to try again."""

    def __init__(self, status: int, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        if status == 401:
            self.headers["WWW-Authenticate"] = "Bearer"
        if status == 408:
            self.headers["Connection"] = "close"


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
    413: ("too_large_error", "The request is longer than a limit, which the text names."),
    415: ("invalid_request_error", "The body is not JSON."),
    429: ("rate_limit_error", "The queue is full; `Retry-After` says when to try again."),
    500: ("server_error", "The server failed; its log says why."),
    501: ("server_error", "The server lacks a library, which the text names."),
    503: ("server_error", "The answer took too long, or the server is stopping."),
}
RESPONSES: dict[int | str, dict[str, object]] = {
    status: {"model": ErrorBody, "description": text} for status, (_, text) in _STATUSES.items()
}
"""What a route that takes a body may answer, apart from 200, for the OpenAPI document."""


def answer_to(error: Exception, *, what: str = "") -> JSONResponse:
    """Makes the answer for what was raised; a caller is told nothing of faults of ours."""
    # ``what``: method and path, for errors that do not say more than a status.
    status, headers, message = 400, {}, str(error)
    if isinstance(error, RequestError):
        status, headers = error.status, error.headers
    elif isinstance(error, HTTPException):
        status, headers = error.status_code, dict(error.headers or {})
        message = f"{what}: {error.detail}."
    elif isinstance(error, MissingExtraError):
        status = 501
    elif not isinstance(error, InputError):
        _LOGGER.error("A request failed.", exc_info=error)
        status, message = 500, "The server failed on this request; its log says why."
    if len(message) > _LONGEST:
        message = f"{message[:_LONGEST]} …"
    kind = _STATUSES.get(status, _STATUSES[400])[0]
    return JSONResponse({"error": {"message": message, "type": kind}}, status, headers)


def answer_in_one_form(app: FastAPI) -> None:
    """Lets an app answer all errors in this form."""

    async def on_error(request: Request, error: Exception) -> JSONResponse:
        return answer_to(error, what=f"{request.method} {request.url.path}")

    for kind in (CondSimError, HTTPException, Exception):
        app.add_exception_handler(kind, on_error)
