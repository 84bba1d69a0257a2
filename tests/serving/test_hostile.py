"""Requests that no honest client sends: none gets a traceback, hangs, or stops the server."""

from __future__ import annotations

import json
import socket
import time
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

pytest.importorskip("fastapi")

KEY = "sk-hostile-0123456789"
PAIR = b'{"pairs": [["a", "b"]]}'


def http(
    path="/v1/score",
    body=PAIR,
    *,
    method="POST",
    kind="application/json",
    key=KEY,
    length=None,
    extra=b"",
):
    """The bytes of a request."""
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    head += f"Authorization: Bearer {key}\r\n" if key is not None else ""
    head += f"Content-Type: {kind}\r\n" if kind is not None else ""
    head += f"Content-Length: {len(body) if length is None else length}\r\n"
    return head.encode() + extra + b"\r\n" + body


def chunked(*chunks):
    request = http(body=b"", extra=b"Transfer-Encoding: chunked\r\n")
    return request.replace(b"Content-Length: 0\r\n", b"") + b"".join(chunks)


def rows(template, row, count=61):
    return template.replace(b"ROWS", b", ".join([row] * count))


HOSTILE = {
    "no body": (http(body=b""), 400),
    "cut JSON": (http(body=b'{"pairs": [["a'), 400),
    "byte that is not UTF-8": (http(body=b'{"pairs": [["a\xff", "b"]]}'), 400),
    "lone surrogate": (http(body=b'{"pairs": [["\\ud800", "b"]]}'), 400),
    "lone surrogate as a key": (http(body=b'{"pairs": [["a", "b"]], "\\ud800": 1}'), 400),
    "deep list": (http(body=b"[" * 4000), 400),
    "whole number of 4,500 digits": (http(body=b'{"pairs":1' + b"0" * 4500 + b"}"), 400),
    "NaN": (http("/v1/search", b'{"query": "a", "at_least": NaN}'), 400),
    "list for an object": (http(body=b"[]"), 400),
    "pair of three": (http(body=b'{"pairs": [["a", "b", "c"]]}'), 400),
    "blank text": (http(body=b'{"pairs": [["a", "\\u2003\\t"]]}'), 400),
    "unknown key": (http(body=b'{"pairs": [["a", "b"]], "__class__": 1}'), 400),
    "model of many characters": (
        http("/v1/embeddings", b'{"input":"a","model":"' + b"m" * 3000 + b'"}'),
        404,
    ),
    "token ids": (http("/v1/embeddings", b'{"input": [1, 2, 3]}'), 400),
    "more clusters than texts": (http("/v1/cluster", b'{"texts": ["a","b","c"], "k": 9}'), 400),
    "search without an index": (http("/v1/search", b'{"query": "a"}'), 404),
    "text above the limit": (http(body=b'{"pairs": [["a", "' + b"b" * 600 + b'"]]}'), 413),
    "rows above the limit": (http(body=rows(b'{"pairs": [ROWS]}', b'["a", "b"]')), 413),
    "announced length above the limit": (http(body=b"", length="9" * 19), 413),
    "chunks above the limit": (chunked(*[b"400\r\n" + b"x" * 1024 + b"\r\n"] * 8), 413),
    "body shorter than its length": (http(length=500), 408),
    "plain text": (http(kind="text/plain"), 415),
    "no content type": (http(kind=None), 415),
    "no key": (http(key=None), 401),
    "part of the key": (http(key=KEY[:-1]), 401),
    "key in Latin-1": (http(key="ÿ" * 20), 401),
    "no key for metrics": (http("/metrics", b"", method="GET", key=None), 401),
    "path upwards": (http("/v1/../../../etc/passwd"), 404),
    "page upwards, encoded": (http("/page/%2e%2e%2froutes", b"", method="GET"), 404),
    "GET for POST": (http(body=b"", method="GET"), 405),
    # The answer to what is not HTTP is plain text.
    "not HTTP": (b"hello\r\n\r\n", 400),
    "long header": (b"GET /health HTTP/1.1\r\nHost: x\r\na: " + b"b" * 200_000, 400),
}


def send(url: str, request: bytes) -> bytes:
    """Sends bytes and reads until the server closes."""
    address = urlsplit(url)
    answer = b""
    with socket.create_connection((address.hostname, address.port), timeout=20) as connection:
        # The server may close before it has read everything.
        with suppress(ConnectionError):
            connection.sendall(request)
            while received := connection.recv(65536):
                answer += received
        return answer


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server with a key and low limits."""
    from tests.serving.conftest import running

    folder = tmp_path_factory.mktemp("guarded")
    (folder / "keys").write_text(f"{KEY}\n")
    words = ["--api-key-file", str(folder / "keys"), "--max-bytes", "5000", "--max-rows", "50"]
    with running(folder, *words, "--max-characters", "500", "--time-limit", "2") as server:
        yield server


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_request_is_refused_in_one_line(guarded, name):
    request, status = HOSTILE[name]
    head, _, body = send(guarded.url, request).partition(b"\r\n\r\n")
    assert head.split()[1] == str(status).encode(), body[:500]
    for secret in (b"Traceback", b"site-packages", b".py", b"condsim/", KEY.encode()):
        assert secret not in body
    if b"application/json" in head:
        message = json.loads(body)["error"]["message"]
        assert 0 < len(message) < 1100
        assert "\n" not in message
    else:
        assert body == b"Invalid HTTP request received."


@pytest.mark.slow
def test_slow_head_is_cut_off(guarded):
    address = urlsplit(guarded.url)
    start = time.monotonic()
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        connection.sendall(b"POST /v1/score HTTP/1.1\r\n")
        with suppress(ConnectionError):
            while time.monotonic() - start < 30:
                connection.sendall(b"a: b\r\n")
                time.sleep(0.2)
    assert 5 < time.monotonic() - start < 20


def test_server_survives_and_its_log_is_clean(guarded):
    answer = send(guarded.url, http())
    assert answer.startswith(b"HTTP/1.1 200")
    assert b'"scores":[[' in answer
    log = guarded.log.read_text()
    assert "Traceback" not in log
    assert KEY not in log
