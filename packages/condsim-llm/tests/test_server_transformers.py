"""The HTTP back end against a server that others wrote: ``transformers serve``."""

import os
import socket
import subprocess
import sys
import time
from http.client import HTTPConnection

import pytest

pytest.importorskip("openai")
pytest.importorskip("transformers")
pytest.importorskip("fastapi", reason="transformers serve needs fastapi")
pytest.importorskip("uvicorn", reason="transformers serve needs uvicorn")

from condsim_llm.backend import PromptSettings
from condsim_llm.errors import BackendError
from condsim_llm.local import LocalBackend
from condsim_llm.server import ServerBackend

pytestmark = pytest.mark.slow

START = "from transformers.cli.transformers import main; main()"
PATIENCE_S = 120


def is_up(port):
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


@pytest.fixture(scope="module")
def url(tiny_chat_gpt2, tmp_path_factory):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["serve", str(tiny_chat_gpt2), "--host", "127.0.0.1", "--port", str(port)]
    log = tmp_path_factory.mktemp("serve") / "log.txt"
    quiet = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [sys.executable, "-c", START, *words, "--device", "cpu"],
            stdout=output,
            stderr=output,
            env={**os.environ, **quiet},
        ) as process,
    ):
        try:
            end = time.monotonic() + PATIENCE_S
            while not is_up(port):
                if process.poll() is not None or time.monotonic() > end:
                    pytest.skip(f"transformers serve does not start: {log.read_text()[-300:]}")
                time.sleep(0.3)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            process.wait(10)


@pytest.fixture(autouse=True)
def _no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def test_answers_transformers_serve_says_what_the_local_model_says(url, tiny_chat_gpt2):
    model = str(tiny_chat_gpt2)
    settings = PromptSettings(model=model, max_new_tokens=12)
    server = ServerBackend(settings.replaced(backend="server", base_url=url, concurrency=4))
    server.check()
    prompts = [f"Sentence 1: {number} dogs run. Output:" for number in range(8)]
    answers = dict(server.answers(prompts, probabilities=True))
    local = dict(LocalBackend(settings).answers(prompts))
    assert {place: answer.text for place, answer in answers.items()} == {
        place: answer.text for place, answer in local.items()
    }
    assert {place: answer.prompt_tokens for place, answer in answers.items()} == {
        place: answer.prompt_tokens for place, answer in local.items()
    }
    assert all(answer.probabilities == {} for answer in answers.values())  # it gives none
    assert all(0 < answer.new_tokens <= 12 for answer in answers.values())


def test_answers_transformers_serve_other_model_is_one_line(url):
    settings = PromptSettings(model="no-such-model", backend="server", base_url=url, retries=0)
    server = ServerBackend(settings)
    with pytest.raises(BackendError, match=r"^no-such-model at http://127.*: HTTP 4") as caught:
        list(server.answers(["x"]))
    assert "\n" not in str(caught.value)
