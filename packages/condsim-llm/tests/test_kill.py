"""A run that is killed: every answer that came is kept, and none is paid for twice."""

from __future__ import annotations

import csv
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("openai")

ROWS, CONCURRENCY = 240, 8


def write_rows(path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["sentence1", "sentence2", "condition", "label"])
        for row in range(ROWS):
            words = [f"Lamp {row // 2} is on.", f"Lamp {row // 2} is off.", f"part {row % 2}"]
            writer.writerow([*words, 1 + row % 5])


def command(url: str, folder: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "condsim", "prompt", "--model", "tiny-chat", "--base-url", url),
        *("--data", str(folder / "dev.csv"), "--answers", str(folder / "answers.sqlite")),
        *("--concurrency", str(CONCURRENCY), "--resamples", "5", "--json", str(folder / "r.json")),
    ]


def stored(path: Path) -> set[str]:
    connection = sqlite3.connect(path)
    try:
        return {prompt for (prompt,) in connection.execute("select prompt from answers")}
    finally:
        connection.close()


@pytest.mark.slow
def test_prompt_killed_half_way_resumes_and_asks_no_stored_prompt_again(loopback, tmp_path):
    write_rows(tmp_path / "dev.csv")
    environment = {name: text for name, text in os.environ.items() if "OPENAI" not in name}
    with loopback.running("--delay", "0.02") as server:
        run = subprocess.Popen(command(server.url, tmp_path), env=environment)
        deadline = time.monotonic() + 60
        while server.seen()["count"] < ROWS // 3 and time.monotonic() < deadline:
            time.sleep(0.02)
        run.send_signal(signal.SIGKILL)
        run.wait()
        kept = stored(tmp_path / "answers.sqlite")
        sent = {request["prompt"] for request in server.seen()["seen"] if request["prompt"]}
        assert 0 < len(kept) < ROWS
        assert len(sent - kept) <= CONCURRENCY  # under way, or arrived and not yet written
        server.reset()
        subprocess.run(
            command(server.url, tmp_path), env=environment, check=True, capture_output=True
        )
        again = Counter(request["prompt"] for request in server.seen()["seen"] if request["prompt"])
    assert not kept & set(again)
    assert set(again.values()) == {1}
    assert len(stored(tmp_path / "answers.sqlite")) == len(kept) + len(again) == ROWS
    assert (tmp_path / "r.json").exists()
