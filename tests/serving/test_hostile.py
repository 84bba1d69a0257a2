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
E, R, S = "/v1/embeddings", "/v1/rerank", "/v1/score"
X, Q = "/v1/explain", "/v1/search"
TWO = b'"sentence1": "a b", "sentence2": "c d"'


def http(
    path=S, body=PAIR, *, method="POST", kind="application/json", key=KEY, length=None, extra=b""
):
    """The bytes of a request."""
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    head += f"Authorization: Bearer {key}\r\n" if key is not None else ""
    head += f"Content-Type: {kind}\r\n" if kind is not None else ""
    head += f"Content-Length: {len(body) if length is None else length}\r\n"
    return head.encode() + extra + b"\r\n" + body


def chunked(*chunks):
    return http(extra=b"Transfer-Encoding: chunked\r\n").replace(
        b"Content-Length: 23\r\n", b""
    ).removesuffix(PAIR) + b"".join(chunks)


HOSTILE = {
    # cut or broken JSON
    "no body": (http(body=b""), 400),
    "open brace": (http(body=b"{"), 400),
    "cut string": (http(body=b'{"pairs": [["a'), 400),
    "cut after key": (http(body=b'{"pairs"'), 400),
    "cut escape": (http(body=b'{"pairs": [["\\u00'), 400),
    "trailing comma": (http(body=b'{"pairs": [["a", "b"],]}'), 400),
    "two values": (http(body=PAIR + PAIR), 400),
    "single quotes": (http(body=b"{'pairs': []}"), 400),
    "comment": (http(body=b"/* */" + PAIR), 400),
    "byte order mark": (http(body=b"\xef\xbb\xbf" + PAIR), 400),
    "UTF-16": (http(body=PAIR.decode().encode("utf-16")), 400),
    "UTF-32": (http(body=PAIR.decode().encode("utf-32")), 400),
    "NUL bytes": (http(body=b"\0" * 100), 400),
    "control character in a string": (http(body=b'{"pairs": [["a\n", "b"]]}'), 400),
    "only spaces": (http(body=b" " * 1000), 400),
    # encodings
    "byte that is no UTF-8": (http(body=b'{"pairs": [["a\xff", "b"]]}'), 400),
    "cut UTF-8": (http(body=b'{"pairs": [["a\xe2\x82", "b"]]}'), 400),
    "overlong UTF-8": (http(body=b'{"pairs": [["a\xc0\xaf", "b"]]}'), 400),
    "surrogate in UTF-8": (http(body=b'{"pairs": [["a\xed\xa0\x80", "b"]]}'), 400),
    "lone surrogate": (http(body=b'{"pairs": [["\\ud800", "b"]]}'), 400),
    "reversed surrogates": (http(body=b'{"pairs": [["\\udc00\\ud800", "b"]]}'), 400),
    # depth and size
    "deep list": (http(body=b"[" * 4000), 400),
    "deep list, closed": (http(body=b"[" * 2000 + b"]" * 2000), 400),
    "deep objects": (http(body=b'{"a":' * 900), 400),
    "deep pairs": (http(body=b'{"pairs": ' + b"[" * 1500 + b"]" * 1500 + b"}"), 400),
    "body above the limit": (http(body=b'{"pairs": [["a", "' + b"b" * 6000 + b'"]]}'), 413),
    "text above the limit": (http(body=b'{"pairs": [["a", "' + b"b" * 600 + b'"]]}'), 413),
    "rows above the limit": (http(body=b'{"pairs": [' + b'["a","b"],' * 60 + b'["a","b"]]}'), 413),
    "conditions above the limit": (
        http(body=b'{"pairs": [["a","b"]], "conditions": [' + b'"c",' * 60 + b'"c"]}'),
        413,
    ),
    "inputs above the limit": (http(E, b'{"input": [' + b'"a",' * 60 + b'"a"]}'), 413),
    "documents above the limit": (
        http(R, b'{"query": "q", "documents": [' + b'"a",' * 60 + b'"a"]}'),
        413,
    ),
    "length announced above the limit": (http(body=b"", length=10**12), 413),
    "length of many digits": (http(body=b"", length="9" * 19), 413),
    # numbers
    "huge whole number": (
        http(R, b'{"query":"q","documents":["a"],"top_n":1' + b"0" * 4000 + b"}"),
        400,
    ),
    "huger whole number": (
        http(R, b'{"query":"q","documents":["a"],"top_n":1' + b"0" * 4500 + b"}"),
        400,
    ),
    "huger whole number for a list": (http(body=b'{"pairs":1' + b"0" * 4500 + b"}"), 400),
    "huge whole number for a text": (http(body=b'{"pairs":[["a",-1' + b"0" * 4500 + b"]]}"), 400),
    "huge exponent": (http(R, b'{"query":"q","documents":["a"],"top_n":1e999999}'), 400),
    "top_n 0": (http(R, b'{"query":"q","documents":["a"],"top_n":0}'), 400),
    "top_n below 0": (http(R, b'{"query":"q","documents":["a"],"top_n":-5}'), 400),
    "top_n a fraction": (http(R, b'{"query":"q","documents":["a"],"top_n":1.5}'), 400),
    "top_n true": (http(R, b'{"query":"q","documents":["a"],"top_n":true}'), 400),
    "NaN": (http(R, b'{"query":"q","documents":["a"],"top_n":NaN}'), 400),
    "Infinity": (http(E, b'{"input":"a","dimensions":-Infinity}'), 400),
    "dimensions of another model": (http(E, b'{"input":"a","dimensions":3}'), 400),
    # types
    "a list": (http(body=b"[]"), 400),
    "a number": (http(body=b"7"), 400),
    "a string": (http(body=b'"pairs"'), 400),
    "null": (http(body=b"null"), 400),
    "pairs null": (http(body=b'{"pairs": null}'), 400),
    "pairs of numbers": (http(body=b'{"pairs": [[1, 2]]}'), 400),
    "pairs of one": (http(body=b'{"pairs": [["a"]]}'), 400),
    "pairs of three": (http(body=b'{"pairs": [["a", "b", "c"]]}'), 400),
    "no pairs": (http(body=b'{"pairs": []}'), 400),
    "conditions a text": (http(body=b'{"pairs": [["a", "b"]], "conditions": "c"}'), 400),
    "no conditions": (http(body=b'{"pairs": [["a", "b"]], "conditions": []}'), 400),
    "empty text": (http(body=b'{"pairs": [["a", ""]]}'), 400),
    "blank text": (http(body=b'{"pairs": [["a", "\\u2003\\t"]]}'), 400),
    "empty condition": (http(body=b'{"pairs": [["a", "b"]], "conditions": [" "]}'), 400),
    "unknown key": (http(body=b'{"pairs": [["a", "b"]], "__class__": 1}'), 400),
    "unknown scale": (http(body=b'{"pairs": [["a", "b"]], "scale": "x"}'), 400),
    "model a list": (http(body=b'{"pairs": [["a", "b"]], "model": ["x"]}'), 400),
    "model a path": (http(body=b'{"pairs": [["a", "b"]], "model": "../../etc/passwd"}'), 404),
    "model of many characters": (http(E, b'{"input":"a","model":"' + b"m" * 3000 + b'"}'), 404),
    "token ids": (http(E, b'{"input": [1, 2, 3]}'), 400),
    "lists of token ids": (http(E, b'{"input": [[1, 2], [3]]}'), 400),
    "input an object": (http(E, b'{"input": {"text": "a"}}'), 400),
    "unknown format": (http(E, b'{"input": "a", "encoding_format": "int8"}'), 400),
    "conditions of another number": (
        http(E, b'{"input": ["a","b"], "condition": ["c","d","e"]}'),
        400,
    ),
    "documents of objects without text": (
        http(R, b'{"query":"q","documents":[{"body":"a"}]}'),
        400,
    ),
    "document text a number": (http(R, b'{"query":"q","documents":[{"text":5}]}'), 400),
    "query a list": (http(R, b'{"query":["q"],"documents":["a"]}'), 400),
    "texts where documents belong": (http(R, b'{"query":"q","texts":["a"]}'), 400),
    "clusters of two texts": (http("/v1/cluster", b'{"texts": ["a", "b"]}'), 400),
    "more clusters than texts": (http("/v1/cluster", b'{"texts": ["a","b","c"], "k": 9}'), 400),
    "huge number of clusters": (http("/v1/cluster", b'{"texts": ["a","b","c"], "k": 1e9}'), 400),
    # explanations
    "explain nothing": (http(X, b"{}"), 400),
    "explain a list": (http(X, b"[" + TWO + b"]"), 400),
    "explain one text": (http(X, b'{"sentence1": "a"}'), 400),
    "explain pairs": (http(X), 400),
    "explain an empty text": (http(X, b'{"sentence1": "", "sentence2": "b"}'), 400),
    "explain a number": (http(X, b'{"sentence1": 1, "sentence2": "b"}'), 400),
    "explain null": (http(X, b'{"sentence1": null, "sentence2": "b"}'), 400),
    "explain a blank condition": (http(X, b"{" + TWO + b', "condition": "  "}'), 400),
    "explain conditions": (http(X, b"{" + TWO + b', "condition": ["c"]}'), 400),
    "explain on an unknown scale": (http(X, b"{" + TWO + b', "scale": "percent"}'), 400),
    "explain with no samples": (http(X, b"{" + TWO + b', "samples": 0}'), 400),
    "explain with samples below 0": (http(X, b"{" + TWO + b', "samples": -1}'), 400),
    "explain with many samples": (http(X, b"{" + TWO + b', "samples": 1000000}'), 400),
    "explain with samples of many digits": (
        http(X, b"{" + TWO + b', "samples": 1' + b"0" * 400 + b"}"),
        400,
    ),
    "explain with a fraction of samples": (http(X, b"{" + TWO + b', "samples": 2.5}'), 400),
    "explain with samples as text": (http(X, b"{" + TWO + b', "samples": "9"}'), 400),
    "explain with a seed": (http(X, b"{" + TWO + b', "seed": 1}'), 400),
    "explain by a reader": (http(X, b"{" + TWO + b', "read": "os.system"}'), 400),
    "explain by another model": (http(X, b"{" + TWO + b', "model": "other"}'), 404),
    "explain a text above the limit": (
        http(X, b'{"sentence1": "' + b"b " * 300 + b'", "sentence2": "b"}'),
        413,
    ),
    "explain a condition above the limit": (
        http(X, b"{" + TWO + b', "condition": "' + b"c" * 600 + b'"}'),
        413,
    ),
    "explain a surrogate": (http(X, b'{"sentence1": "\\udfff", "sentence2": "b"}'), 400),
    "explain without a key": (http(X, b"{" + TWO + b"}", key=None), 401),
    "explain by GET": (http(X, b"", method="GET"), 405),
    # search, where there is no index
    "search without an index": (http(Q, b'{"query": "a", "conditions": ["c"]}'), 404),
    "search nothing": (http(Q, b"{}"), 400),
    "search a list": (http(Q, b'{"query": ["a"]}'), 400),
    "search for the top 0": (http(Q, b'{"query": "a", "top": 0}'), 400),
    "search for too many": (http(Q, b'{"query": "a", "top": 100000}'), 400),
    "search and rescore too many": (http(Q, b'{"query": "a", "rescore": 1000000}'), 400),
    "search at least 2": (http(Q, b'{"query": "a", "at_least": 2}'), 400),
    "search at least NaN": (http(Q, b'{"query": "a", "at_least": NaN}'), 400),
    "search with weights as text": (http(Q, b'{"query": "a", "weights": ["1"]}'), 400),
    "search with a weight without end": (http(Q, b'{"query": "a", "weights": [1e999]}'), 400),
    "search where a list": (http(Q, b'{"query": "a", "where": ["x"]}'), 400),
    "search in another index": (http(Q, b'{"query": "a", "index": "/etc"}'), 400),
    "search without a key": (http(Q, b'{"query": "a"}', key=None), 401),
    # the page
    "page upwards": (http("/page/../routes", b"", method="GET"), 404),
    "page upwards, encoded": (http("/page/%2e%2e%2froutes", b"", method="GET"), 404),
    "page that is absolute": (http("/page//etc/passwd", b"", method="GET"), 404),
    "page with NUL": (http("/page/main.js%00", b"", method="GET"), 404),
    "page by POST": (http("/", b"{}"), 405),
    # types of content
    "no content type": (http(kind=None), 415),
    "plain text": (http(kind="text/plain"), 415),
    "a form": (http(kind="application/x-www-form-urlencoded"), 415),
    "multipart": (http(kind="multipart/form-data; boundary=x"), 415),
    "XML": (
        http(
            kind="application/xml", body=b"<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]>"
        ),
        415,
    ),
    "gzip that is none": (http(body=b"\x1f\x8b\x08\0\0", extra=b"Content-Encoding: gzip\r\n"), 400),
    # keys
    "no key": (http(key=None), 401),
    "empty key": (http(key=""), 401),
    "part of the key": (http(key=KEY[:-1]), 401),
    "key and more": (http(key=KEY + "0"), 401),
    "key in Latin-1": (http(key="ÿ" * 20), 401),
    "basic authentication": (http(key=None, extra=b"Authorization: Basic c2s6eA==\r\n"), 401),
    "two keys": (http(key="wrong", extra=f"Authorization: Bearer {KEY}\r\n".encode()), 401),
    "no key for metrics": (http("/metrics", b"", method="GET", key=None), 401),
    # paths and methods
    "unknown path": (http("/v1/nothing"), 404),
    "path upwards": (http("/v1/../../../etc/passwd"), 404),
    "path upwards, encoded": (http("/%2e%2e/%2e%2e/etc/passwd"), 404),
    "path with NUL": (http("/v1/score%00"), 404),
    "path that is no UTF-8": (http("/%ff%fe"), 404),
    "slash at the end": (http("/v1/score/"), 404),
    "long path": (http("/" + "a" * 8000), 404),
    "long query": (http(S + "?" + "a" * 8000, b""), 400),
    "GET": (http(body=b"", method="GET"), 405),
    "PUT": (http(method="PUT"), 405),
    "DELETE": (http(method="DELETE"), 405),
    "TRACE": (http(body=b"", method="TRACE"), 405),
    "unknown method": (http(method="BREW"), 405),
    # HTTP itself; the answer is plain text
    "no HTTP": (b"hello\r\n\r\n", 400),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 64, 400),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", None),
    "no host": (b"GET /health HTTP/1.1\r\n\r\n", 400),
    "header flood": (b"GET /health HTTP/1.1\r\n" + b"a: b\r\n" * 20_000, 400),
    "long header": (b"GET /health HTTP/1.1\r\nHost: x\r\na: " + b"b" * 200_000, 400),
    "line folding": (b"GET /health HTTP/1.1\r\nHost: x\r\na b: c\r\n\r\n", 400),
    "NUL in a header": (b"GET /health HTTP/1.1\r\nHost: x\r\na: \0\r\n\r\n", 400),
    "two lengths": (http(extra=b"Content-Length: 5\r\n"), 400),
    "length below 0": (http(length=-5), 400),
    "length no number": (http(length="abc"), 400),
    "chunk size no number": (chunked(b"zz\r\n"), None),
    "cut chunk": (chunked(b"ffff\r\n{}"), 408),
    "chunks above the limit": (chunked(*[b"400\r\n" + b"x" * 1024 + b"\r\n"] * 8), 413),
    "body shorter than its length": (http(length=500), 408),
}


def send(url: str, request: bytes) -> bytes:
    """Sends bytes and reads until the server closes."""
    address = urlsplit(url)
    answer = b""
    with socket.create_connection((address.hostname, address.port), timeout=20) as connection:
        try:
            connection.sendall(request)
            while some := connection.recv(65536):
                answer += some
        except ConnectionError:  # the server has had enough
            pass
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


def test_table_of_hostile_requests_is_long():
    assert len(HOSTILE) >= 150


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_request_is_refused_in_one_line(guarded, name):
    request, status = HOSTILE[name]
    answer = send(guarded.url, request)
    assert answer.startswith(b"HTTP/1.1 4")
    if status is None:  # a good head, but then no HTTP: uvicorn cuts into its own answer
        return
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.split()[1] == str(status).encode(), answer[:500]
    for secret in (b"Traceback", b"site-packages", b".py", b"condsim/", KEY.encode()):
        assert secret not in answer
    if b"application/json" in head:
        message = json.loads(body)["error"]["message"]
        assert message
        assert "\n" not in message
        assert len(message) < 1100
    else:
        assert body == b"Invalid HTTP request received."


def test_slow_body_is_cut_off(guarded):
    address = urlsplit(guarded.url)
    began = time.monotonic()
    with socket.create_connection((address.hostname, address.port), timeout=20) as connection:
        connection.sendall(http(length=len(PAIR) + 50))
        answer = connection.recv(65536)
        assert answer.startswith(b"HTTP/1.1 408"), answer
        assert b"--time-limit" in answer + connection.recv(65536)
    assert 1 < time.monotonic() - began < 10


@pytest.mark.slow
def test_slow_head_is_cut_off(guarded):
    address = urlsplit(guarded.url)
    began = time.monotonic()
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        connection.sendall(b"POST /v1/score HTTP/1.1\r\n")
        with suppress(ConnectionError):
            while time.monotonic() - began < 30:
                connection.sendall(b"a: b\r\n")
                time.sleep(0.2)
    assert 5 < time.monotonic() - began < 20


def test_server_lives_on_and_its_log_is_clean(guarded):
    answer = send(guarded.url, http())
    assert answer.startswith(b"HTTP/1.1 200")
    assert b'"scores":[[' in answer
    log = guarded.log.read_text()
    assert "Traceback" not in log
    assert KEY not in log
