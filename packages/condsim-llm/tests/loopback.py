"""A small server that speaks chat completions on 127.0.0.1, and misbehaves when it is told to.

Run it as a process of its own: ``python loopback.py [--delay 0.05] [--key KEY]``. The first line it
prints is the base URL; it ends when its standard input is closed, so it never outlives a test.

- ``POST /v1/chat/completions`` answers a number that depends on the prompt alone (``answer_to``).
- ``GET /v1/models`` lists ``MODELS``.
- ``POST /rules`` forgets all so far and sets what to do instead, a list of ``Rule`` fields: the
  first rule that fits a request and is not used up decides.
- ``GET /seen`` returns the requests so far: path, prompt, body and headers of each, and when.
- ``POST /reset`` forgets the rules and the requests.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

MODELS = ("tiny-chat", "tiny-chat-large")
TOP = (("4", -0.4), ("3", -1.4), ("3.5", -2.6), (" 4", -3.0), ("four", -3.5))


@dataclass
class Rule:
    """What to do with requests; a field that is not given leaves the usual answer."""

    path: str = "/v1/chat/completions"
    prompt: str = ""  # part of the prompt
    has: str = ""  # a field of the request's body
    times: int | None = None  # requests it holds for
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None  # text is sent as it is, anything else as JSON
    message: dict[str, Any] | None = None  # the answered message
    finish: str = "stop"
    cut: bool = False  # half of the body, then the connection is closed
    blanks: int = 0  # MB of blanks, packed by gzip
    hang: bool = False
    close: bool = False
    delay: float | None = None


def answer_to(prompt: str) -> str:
    """The answer to a prompt: a number from 1.0 to 5.0."""
    return f"{1 + zlib.crc32(prompt.encode()) % 41 / 10:.1f}"


@dataclass(frozen=True)
class Loopback:
    """A running server."""

    url: str
    process: subprocess.Popen[str]

    def rules(self, *rules: dict[str, Any]) -> None:
        self._call("POST", "/rules", json.dumps(rules))

    def seen(self) -> dict[str, Any]:
        return self._call("GET", "/seen")

    def reset(self) -> None:
        self._call("POST", "/reset")

    def _call(self, method: str, path: str, body: str = "") -> Any:
        connection = HTTPConnection(urlsplit(self.url).netloc, timeout=10)
        try:
            connection.request(method, path, body)
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()


@contextmanager
def running(*words: str) -> Iterator[Loopback]:
    """Starts a server in a process of its own and stops it at the end."""
    command = [sys.executable, __file__, *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        try:
            yield Loopback(process.stdout.readline().strip(), process)
        finally:
            process.terminate()


class State:
    def __init__(self, delay: float, key: str | None, quiet: bool) -> None:
        self.delay, self.key, self.quiet = delay, key, quiet
        self.rules: list[Rule] = []
        self.seen: list[dict[str, Any]] = []
        self.count = self.now = self.most = 0

    def reset(self) -> None:
        self.rules.clear()
        self.seen.clear()
        self.count = self.most = 0

    def note(self, path: str, prompt: str, body: Any, headers: dict[str, str]) -> None:
        self.count += 1
        if not self.quiet:
            request = {"path": path, "prompt": prompt, "body": body, "headers": headers}
            self.seen.append({**request, "at": time.monotonic()})

    def rule(self, path: str, prompt: str, body: dict[str, Any]) -> Rule:
        for rule in self.rules:
            fits = rule.path == path and rule.prompt in prompt
            if fits and (not rule.has or rule.has in body) and rule.times != 0:
                rule.times = None if rule.times is None else rule.times - 1
                return rule
        return Rule(path)


class Connection(asyncio.Protocol):
    def __init__(self, state: State) -> None:
        self.state, self.data = state, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self.data += data
        head, blank, rest = self.data.partition(b"\r\n\r\n")
        if not blank:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (li.partition(": ") for li in lines)}
        length = int(headers.get("content-length", 0))
        if len(rest) >= length:
            self.data = b""  # one request at a time: clients wait for the answer
            method, path, _ = first.split(" ")
            self.request(method, path, headers, json.loads(rest or b"null"))

    def request(self, method: str, path: str, headers: dict[str, str], body: Any) -> None:
        if method == "POST" and path in ("/rules", "/reset"):
            self.state.reset()
            self.state.rules = [Rule(**rule) for rule in body or ()]
            return self.send(200, {})
        if path == "/seen":
            state = self.state
            return self.send(200, {"seen": state.seen, "count": state.count, "most": state.most})
        chat = method == "POST" and path == "/v1/chat/completions"
        prompt = body["messages"][-1]["content"] if chat else ""
        self.state.note(path, prompt, body, headers)
        sent = headers.get("authorization")
        if self.state.key is not None and sent != f"Bearer {self.state.key}":
            error = {"message": f"Incorrect API key provided: {sent}", "code": "invalid_api_key"}
            return self.send(401, {"error": error})
        return self.answer(path, prompt, body, self.state.rule(path, prompt, body or {}))

    def answer(self, path: str, prompt: str, body: Any, rule: Rule) -> None:
        if rule.close:
            return self.transport.close()
        if rule.hang:
            return None
        if rule.status != 200 or rule.body is not None:
            answer = rule.body
        elif path == "/v1/models":
            answer = {"object": "list", "data": [{"id": name} for name in MODELS]}
        elif path == "/v1/chat/completions":
            answer = completion(prompt, body, rule)
        else:
            return self.send(404, {"detail": "Not Found"})
        self.state.now += 1
        self.state.most = max(self.state.most, self.state.now)
        delay = self.state.delay if rule.delay is None else rule.delay
        if delay:
            asyncio.get_running_loop().call_later(delay, self.reply, rule, answer)
        else:
            self.reply(rule, answer)
        return None

    def reply(self, rule: Rule, answer: Any) -> None:
        self.state.now -= 1
        if rule.blanks:
            data = gzip.compress(b" " * (rule.blanks * 2**20))
            head = (
                f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(data)}\r\n\r\n"
            )
            return self.transport.write(head.encode() + data)
        return self.send(rule.status, answer, rule.headers, cut=rule.cut)

    def send(
        self, status: int, body: Any, headers: dict[str, str] | None = None, *, cut: bool = False
    ) -> None:
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        lines = [f"HTTP/1.1 {status} Status", "Content-Type: application/json"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        head = "\r\n".join([*lines, f"Content-Length: {len(data)}", "", ""]).encode()
        self.transport.write(head + (data[: len(data) // 2] if cut else data))
        if cut:
            self.transport.close()


def completion(prompt: str, body: dict[str, Any], rule: Rule) -> dict[str, Any]:
    text = answer_to(prompt)
    choice: dict[str, Any] = {"index": 0, "finish_reason": rule.finish}
    choice["message"] = rule.message or {"role": "assistant", "content": text}
    if body.get("logprobs"):
        top = [{"token": token, "logprob": value} for token, value in TOP]
        words = [
            {"token": "Answer", "logprob": -0.1, "top_logprobs": []},
            {"token": ":", "logprob": -0.1, "top_logprobs": []},
            {"token": "4", "logprob": -0.4, "top_logprobs": top},
        ]
        choice["logprobs"] = {"content": words}
    usage = {"prompt_tokens": len(prompt.split()), "completion_tokens": 3, "total_tokens": 0}
    return {
        "id": "chat-1",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [choice],
        "usage": usage,
    }


async def serve(state: State) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(state), "127.0.0.1", 0, backlog=256)
    sys.stdout.write(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1\n")
    sys.stdout.flush()
    await loop.run_in_executor(None, sys.stdin.read)  # until the parent is gone


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--key", help="refuse every other key")
    parser.add_argument("--quiet", action="store_true", help="count requests, keep none")
    words = parser.parse_args()
    asyncio.run(serve(State(words.delay, words.key, words.quiet)))
