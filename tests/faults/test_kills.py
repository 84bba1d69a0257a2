"""A command that is ended at some moment leaves nothing, and ends the same when run again."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.faults.harness import Case, Zygote, faults_of, run_case, snapshot
from tests.faults.reading import HEAD

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.slow

ROWS = HEAD + "".join(f"A man {n} runs,A dog eats {n},sport,3,n{n}\n" for n in range(600))
COMMANDS = {
    "score": "condsim score --file p.csv --output o.csv",
    "predict": "condsim predict --data p.csv --output o.csv",
    "encode": "condsim encode --file p.csv --column sentence1 --output o.npy",
}
STATUS = {"INT": 130, "TERM": 143, "HUP": 129, "KILL": -9}
# Seconds after the file beside the output is there; None: while the command starts.
MOMENTS = (None, 0.0, 0.3)


@pytest.fixture(scope="module")
def whole(
    tmp_path_factory: pytest.TempPathFactory, base: Path, zygote: Zygote
) -> dict[str, dict[str, str]]:
    """The files after each command that nobody ended."""
    found = {}
    for name, command in COMMANDS.items():
        folder = tmp_path_factory.mktemp("whole") / "case"
        folder.mkdir()
        (folder / "p.csv").write_text(ROWS)
        outcome = run_case(Case(name, command), folder, base, zygote, Path())
        assert outcome.status == 0, outcome.err
        found[name] = snapshot(folder)
    return found


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("sent", STATUS)
@pytest.mark.parametrize("name", COMMANDS)
def test_ended_command_leaves_nothing_and_ends_the_same_when_run_again(
    name: str,
    sent: str,
    moment: float | None,
    tmp_path: Path,
    base: Path,
    zygote: Zygote,
    whole: dict[str, dict[str, str]],
) -> None:
    folder = tmp_path / "case"
    folder.mkdir()
    (folder / "p.csv").write_text(ROWS)
    before = snapshot(folder)
    script = f"from condsim.cli.main import run; run({COMMANDS[name].split()[1:]})"
    with (tmp_path / "said").open("w") as said:
        process = subprocess.Popen(
            [sys.executable, "-c", script], cwd=folder, stdout=said, stderr=said
        )
        try:
            if moment is None:
                time.sleep(0.5)
            else:
                while not list(folder.glob("*.partial")) and process.poll() is None:
                    time.sleep(0.01)
                time.sleep(moment)
            process.send_signal(signal.Signals[f"SIG{sent}"])
            status = process.wait(10)
        finally:
            process.kill()
    if moment is not None:  # else Python itself may have been starting
        ends = {STATUS[sent], 0}
        if snapshot(folder) == whole[name]:  # all is done; Python itself may have been ending
            ends.add(-signal.Signals[f"SIG{sent}"])
        assert status in ends, (tmp_path / "said").read_text()
        if sent != "KILL":
            assert not list(folder.glob("*.partial"))
            assert "Traceback" not in (tmp_path / "said").read_text()
    again = Case(name, COMMANDS[name], status=(0,), writes=("o.csv", "o.npy"))
    outcome = run_case(again, folder, base, zygote, Path())
    assert not faults_of(again, outcome, before, folder), outcome.err
    assert snapshot(folder) == whole[name]
