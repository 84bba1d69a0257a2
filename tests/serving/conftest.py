"""A server in a process of its own, and one inside the test process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import condsim


@dataclass(frozen=True)
class Process:
    """A running ``condsim serve``; its log is in a file."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path


@contextmanager
def running(folder: Path, *words: str) -> Iterator[Process]:
    """Starts ``condsim serve`` at a free port and kills it at the end."""
    log = folder / "serve.log"
    port = [] if "--port" in words else ["--port", "0"]
    command = [sys.executable, "-m", "condsim", "serve", *port, *words]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    with (
        log.open("w") as stream,
        subprocess.Popen(command, stderr=stream, stdout=stream, env=environment) as process,
    ):
        try:
            until = time.monotonic() + 60
            while " at http://" not in (said := log.read_text()):
                assert process.poll() is None, said
                assert time.monotonic() < until, said
                time.sleep(0.02)
            yield Process(said.split(" at ")[1].split()[0], process, log)
        finally:
            process.kill()


@pytest.fixture
def start(tmp_path):
    """Starts servers."""
    return lambda *words: running(tmp_path, *words)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One server of the default model, for a whole module."""
    with running(tmp_path_factory.mktemp("server")) as process:
        yield process


@pytest.fixture(scope="session")
def model():
    return condsim.load()


@pytest.fixture
def client(model):
    """Asks an app in this process, as `ask(app)` makes it."""
    testclient = pytest.importorskip("starlette.testclient")
    from condsim.serving.app import create_app
    from condsim.serving.middleware import ServingSettings

    opened = []

    def ask(
        scorer: Any = None,
        *,
        keys: Any = (),
        index: Any = None,
        origins: Any = (),
        criteria: Any = None,
        **limits: Any,
    ) -> Any:
        settings = ServingSettings(**limits)
        app = create_app(
            scorer or model,
            settings=settings,
            keys=keys,
            index=index,
            origins=origins,
            criteria=criteria,
        )
        opened.append(testclient.TestClient(app, raise_server_exceptions=False).__enter__())
        return opened[-1]

    yield ask
    for one in opened:
        one.__exit__(None, None, None)
