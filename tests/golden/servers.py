"""Servers that stand in for others: a language model with an OpenAI-compatible address."""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class LanguageModel(BaseHTTPRequestHandler):
    """Answers each prompt with a number, or a word, that follows from its length."""

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        """List the models."""
        self._send({"object": "list", "data": [{"id": "fake", "object": "model"}]})

    def do_POST(self) -> None:
        """Answer a prompt."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = asked.get("prompt") or "".join(
            str(message["content"]) for message in asked.get("messages", [])
        )
        if "High" in prompt and "Low" in prompt:
            text = "High: The use\nLow: The size"
        else:
            text = ("4", "2.0", "1", "5", "no idea", "3")[sum(map(ord, prompt)) % 6]
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "finish_reason": "stop", "message": message, "text": text}
        usage = {"prompt_tokens": 50, "completion_tokens": 2, "total_tokens": 52}
        self._send({"id": "1", "object": "x", "choices": [choice], "usage": usage})

    def _send(self, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


KINDS = {"language-model": LanguageModel}


def main() -> None:
    """Serve one kind and write the address to a file."""
    kind, place = sys.argv[1], Path(sys.argv[2])
    server = ThreadingHTTPServer(("127.0.0.1", 0), KINDS[kind])
    part = place.with_suffix(".part")
    part.write_text(f"http://127.0.0.1:{server.server_port}/v1")
    part.rename(place)
    server.serve_forever()


if __name__ == "__main__":
    main()
