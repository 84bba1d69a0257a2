"""The command as it runs: its signals, and what it refuses to start with."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException

import numpy as np
import pytest

from condsim.cli.main import run

pytest.importorskip("fastapi")

TEXTS = ["A man throws a ball.", "Two dogs run."]


def post(url, path, body, *, timeout=60):
    request = urllib.request.Request(
        url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        return json.loads(answer.read())


def test_sigterm_answers_what_was_accepted(start):
    with start("--batch-rows", "2") as server, ThreadPoolExecutor(12) as pool:
        body = {"pairs": [[f"Text {n}.", f"Other text {n}."] for n in range(20)]}
        answers = [pool.submit(post, server.url, "/v1/score", body) for _ in range(12)]
        until = time.monotonic() + 30
        while time.monotonic() < until:
            with urllib.request.urlopen(f"{server.url}/metrics", timeout=30) as metrics:
                lines = metrics.read().decode().splitlines()
            waiting = next(line for line in lines if line.startswith("condsim_queue_rows "))
            if float(waiting.split()[1]) > 180:  # all are in, most wait
                break
        server.process.send_signal(signal.SIGTERM)
        assert all(len(answer.result()["scores"]) == 20 for answer in answers)
        assert server.process.wait(30) in (0, 128 + signal.SIGTERM)
        with pytest.raises(urllib.error.URLError):
            post(server.url, "/v1/score", body)
        assert "Traceback" not in server.log.read_text()


@pytest.mark.slow
def test_kill_under_load_and_restart_loses_nothing_for_callers_that_retry(start, model):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    body = {"pairs": [TEXTS], "conditions": ["the sport"]}

    def ask(number):
        until = time.monotonic() + 120
        while time.monotonic() < until:
            try:
                return post(f"http://127.0.0.1:{port}", "/v1/score", body, timeout=10)["scores"]
            except (OSError, HTTPException):
                time.sleep(0.1)
        raise AssertionError(f"caller {number} got no answer")

    with ThreadPoolExecutor(8) as pool:
        with start("--port", port) as server:
            answers = [pool.submit(ask, number) for number in range(300)]
            while sum(answer.done() for answer in answers) < 20:
                time.sleep(0.01)
            server.process.kill()
            server.process.wait()
        assert not all(answer.done() for answer in answers)
        with start("--port", port):
            found = np.array([answer.result() for answer in answers])
    assert found.ravel() == pytest.approx(model.score(*TEXTS, "the sport"), abs=1e-4)


def test_ctrl_c_ends_without_a_traceback(start):
    with start() as server:
        server.process.send_signal(signal.SIGINT)
        # 0 where the tests run in the background of a script, in which SIGINT is ignored.
        assert server.process.wait(30) in (0, 130)
        assert server.log.read_text().count("\n") == 1


def refused(capsys, *words):
    with pytest.raises(SystemExit) as caught:
        run(["serve", *words])
    assert caught.value.code == 2
    return capsys.readouterr().err


def test_public_address_without_key_is_refused(capsys):
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        error = refused(capsys, "--host", host)
        assert f"{host!r}, so callers must need a key: give --api-key-file" in error


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (None, "cannot be read"),
        ("\n \n", "contains no key"),
        ("a b\n", ":1: a key"),
        ("ok\né\n", ":2: a"),
    ],
)
def test_key_file_without_a_good_key_is_refused_and_not_shown(capsys, tmp_path, content, fault):
    path = tmp_path / "keys"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    error = refused(capsys, "--api-key-file", str(path))
    assert fault in error
    assert "é" not in error


def test_port_in_use_and_wrong_limits_are_one_line(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        error = refused(capsys, "--port", str(taken.getsockname()[1]))
    assert "Give another --host or --port." in error
    assert "'max_rows' must be at least 1" in refused(capsys, "--max-rows", "0")


def test_missing_extra_is_one_line():
    code = (
        "import sys; sys.modules['fastapi'] = None\n"
        "from condsim.cli.main import run\nrun(['serve', '--port', '0'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.endswith("pip install 'condsim[serve]'\n")
    assert done.stderr.count("\n") == 1
