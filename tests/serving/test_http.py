"""Keys, methods, origins and bodies: what the server checks before a route."""

from __future__ import annotations

import gzip

import pytest
from tests.serving.test_routes import PAIRS, Stub, message

from condsim.errors import InputError


def test_keys_given_as_one_text_are_one_key(client):
    ask = client(Stub(), keys="a-long-secret")
    for key, status in (("a", 401), ("-", 401), ("", 401), ("a-long-secret", 200)):
        headers = {"Authorization": f"Bearer {key}"}
        assert ask.post("/v1/score", json={"pairs": PAIRS}, headers=headers).status_code == status


@pytest.mark.parametrize("keys", ["", [""], ["secret", " "], ["a key"], [b"bytes"], [None], ["ÿ"]])
def test_keys_that_no_header_can_hold_are_refused(client, keys):
    with pytest.raises(InputError, match="'keys' must be a str of printable ASCII") as caught:
        client(Stub(), keys=keys)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("path", ["/", "/health", "/ready", "/v1/models", "/info", "/metrics"])
def test_head_is_answered_as_get_without_the_body(client, path):
    ask = client(Stub())
    head, get = ask.head(path), ask.get(path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == get.headers["content-type"]
    if path != "/metrics":
        assert head.headers["content-length"] == get.headers["content-length"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/", "GET, HEAD, POST"),
        ("HEAD", "/v1/score", "POST"),
        ("OPTIONS", "/v1/embeddings", "POST"),
        ("DELETE", "/v1/models", "GET, HEAD"),
    ],
)
def test_another_method_is_405_with_all_that_the_path_takes(client, method, path, allowed):
    answer = client(Stub()).request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


PREFLIGHT = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type,x-stainless-os",
}


def test_preflight_is_answered_to_allowed_origins_only(client):
    ask = client(Stub(), keys="secret", origins="https://app.example")
    for origin, status in (("https://app.example", 200), ("https://other.example", 400)):
        asked = ask.options("/v1/score", headers={"Origin": origin, **PREFLIGHT})
        assert asked.status_code == status
        # The answer to a request has the header, also if the key is missing.
        answer = ask.post("/v1/score", json={"pairs": PAIRS}, headers={"Origin": origin})
        assert answer.status_code == 401
        allowed = origin if status == 200 else None
        assert answer.headers.get("access-control-allow-origin") == allowed
    closed = client(Stub(), keys="secret")
    answer = closed.options("/v1/score", headers={"Origin": "https://app.example", **PREFLIGHT})
    assert answer.status_code == 405
    assert "access-control-allow-origin" not in answer.headers
    open_to_all = client(Stub(), origins=["*"]).get("/health", headers={"Origin": "https://a.b"})
    assert open_to_all.headers["access-control-allow-origin"] == "*"


@pytest.mark.parametrize("origin", ["app.example", "https://app.example/", "", "HTTPS://A.B", 7])
def test_origin_of_another_form_is_refused(client, origin):
    with pytest.raises(InputError, match="--allow-origin"):
        client(Stub(), origins=[origin])


def test_body_that_cannot_be_parsed_is_told_apart(client):
    ask = client(Stub())

    def refused(content, **headers):
        head = {"Content-Type": "application/json", **headers}
        answer = ask.post("/v1/score", content=content, headers=head)
        return answer.status_code, message(answer)

    zipped = gzip.compress(b'{"pairs": [["a", "b"]]}')
    assert refused(zipped, **{"Content-Encoding": "gzip"}) == (
        415,
        "The body must not be compressed; got 'Content-Encoding: gzip'.",
    )
    assert refused('{"pairs": [["café", "b"]]}'.encode("latin-1")) == (
        400,
        "The body must be JSON in UTF-8; got the byte 0xe9 at position 16.",
    )
    identity = {"Content-Encoding": "identity", "Content-Type": "application/json"}
    answer = ask.post("/v1/score", content=b'{"pairs": [["a", "b"]]}', headers=identity)
    assert answer.status_code == 200
