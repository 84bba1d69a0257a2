"""Servers that stand in for others: an OpenAI-compatible language model and Label Studio."""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit


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

    def _send(self, value: object, status: int = 200) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class LabelStudio(LanguageModel):
    """Keeps projects and tasks; two of three accounts have answered every exported task."""

    projects: ClassVar[dict[int, list[dict[str, Any]]]] = {}

    def do_GET(self) -> None:
        """List accounts, show a project, or export its tasks."""
        parts = urlsplit(self.path).path.strip("/").split("/")
        if parts[1] == "users":
            self._send([_account(number, name) for number, name in enumerate(_NAMES, 1)])
        elif parts[1] == "version":
            self._send({"release": "1.20.0", "edition": "Community"})
        elif parts[-1] == "export":
            self._send([_exported(task) for task in self.projects[int(parts[2])]])
        else:
            tasks = self.projects[int(parts[2])]
            self._send({"id": int(parts[2]), "total_annotations_number": 2 * len(tasks)})

    def do_POST(self) -> None:
        """Make a project, add tasks to it, or predictions."""
        parts = urlsplit(self.path).path.strip("/").split("/")
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if len(parts) == 2:
            number = len(self.projects) + 1
            self.projects[number] = []
            self._send({**body, "id": number}, 201)
        elif parts[-1] == "import":
            tasks = self.projects[int(parts[2])]
            for task in body:
                tasks.append({"id": 100 * int(parts[2]) + len(tasks), "data": task["data"]})
            self._send({"task_count": len(body)}, 201)
        else:
            self._send({"created": len(body)}, 201)

    def do_PATCH(self) -> None:
        """Take a change."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._send({**body, "id": 1})


_NAMES = ("ann", "bob", "cleo")


def _account(number: int, name: str) -> dict[str, Any]:
    return {"id": number, "email": f"{name}@example.org", "username": name}


def _exported(task: dict[str, Any]) -> dict[str, Any]:
    number = task["id"]
    annotations = []
    for account in (1 + number % 3, 1 + (number + 1) % 3):
        fields = {
            "high": {"text": [f"The use {account}"]},
            "low": {"text": ["The size"]},
            "rating": {"choices": [str(1 + (number + account) % 5)]},
        }
        annotations.append(
            {
                "id": 10 * number + account,
                "unique_id": f"key-{number}-{account}",
                "completed_by": account,
                "lead_time": 3.5 + account,
                "created_at": "2026-01-01T00:00:00Z",
                "updated_at": f"2026-01-01T00:0{account}:00Z",
                "result": [
                    {"from_name": name, "to_name": "sentence1", "type": "x", "value": value}
                    for name, value in fields.items()
                ],
            }
        )
    return {**task, "annotations": annotations, "predictions": []}


KINDS = {"language-model": LanguageModel, "label-studio": LabelStudio}


def main() -> None:
    """Serve one kind and write the address to a file."""
    kind, place = sys.argv[1], Path(sys.argv[2])
    server = ThreadingHTTPServer(("127.0.0.1", 0), KINDS[kind])
    part = place.with_suffix(".part")
    part.write_text(f"http://127.0.0.1:{server.server_port}")
    part.rename(place)
    server.serve_forever()


if __name__ == "__main__":
    main()
