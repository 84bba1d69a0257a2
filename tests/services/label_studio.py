"""A Label Studio server of the tests' own, on loopback, and people who annotate through its API."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

PASSWORD = "a-password-of-the-tests"
OWNER = "owner@example.org"
_FORM_TOKEN = re.compile(r'csrfmiddlewaretoken" value="([^"]+)')
_START_S = 600


class Person:
    """An account, logged in as in a browser: what is submitted is this person's."""

    def __init__(self, url: str, email: str, *, invitation: str | None = None) -> None:
        self.url = url
        self.email = email
        self.browser = httpx.Client(base_url=url, follow_redirects=True, timeout=120)
        page = "/user/login/" if invitation is None else f"/user/signup/?token={invitation}"
        found = _FORM_TOKEN.search(self.browser.get(page).text)
        assert found is not None
        answer = self.browser.post(
            page,
            data={
                "email": email,
                "password": PASSWORD,
                "csrfmiddlewaretoken": found[1],
                "allow_newsletters": "false",
                "how_find_us": "Other",
            },
            headers={"Referer": url + page},
        )
        answer.raise_for_status()
        self.browser.headers["Referer"] = url
        self._csrf()
        assert self.call("GET", "/api/current-user/whoami")["email"] == email

    def _csrf(self) -> None:
        self.browser.headers["X-CSRFToken"] = self.browser.cookies.get("csrftoken") or ""

    def call(self, method: str, path: str, content: object = None) -> Any:
        answer = self.browser.request(method, path, json=content)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def close(self) -> None:
        self.browser.close()

    def token(self) -> str:
        """A personal access token."""
        return str(self.call("POST", "/api/token/", {})["token"])

    def invitation(self) -> str:
        return str(self.call("GET", "/api/invite")["token"])

    def submit(
        self,
        task: int,
        result: Sequence[object],
        *,
        seconds: float = 5.0,
        prediction: int | None = None,
        skipped: bool = False,
    ) -> int:
        content = {"result": list(result), "lead_time": seconds, "was_cancelled": skipped}
        if prediction is not None:
            content["parent_prediction"] = prediction
        return int(self.call("POST", f"/api/tasks/{task}/annotations/", content)["id"])

    def edit(self, annotation: int, result: Sequence[object]) -> None:
        self.call("PATCH", f"/api/annotations/{annotation}/", {"result": list(result)})


@contextmanager
def running_server(program: Path, folder: Path) -> Iterator[str]:
    """Starts a server with an account for `OWNER`, gives its address and stops it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        "LATEST_VERSION_CHECK": "0",  # each waits minutes for a network that is not there
        "COLLECT_ANALYTICS": "0",
        "SENTRY_DSN": "",
        "FRONTEND_SENTRY_DSN": "",
        "LABEL_STUDIO_USERNAME": OWNER,
        "LABEL_STUDIO_PASSWORD": PASSWORD,
        "LABEL_STUDIO_BASE_DATA_DIR": str(folder),
    }
    options = ["start", "--no-browser", "--internal-host", "127.0.0.1", "--port", str(port)]
    url = f"http://127.0.0.1:{port}"
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [program, *options], env=environment, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        _wait(url, process, folder)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(url: str, process: subprocess.Popen[bytes], folder: Path) -> None:
    end = time.monotonic() + _START_S
    while time.monotonic() < end and process.poll() is None:
        try:
            if httpx.get(f"{url}/health", timeout=20).status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.5)
    log = (folder / "server.log").read_text(encoding="utf-8", errors="replace")
    raise RuntimeError(f"Label Studio did not start:\n{log[-2000:]}")
