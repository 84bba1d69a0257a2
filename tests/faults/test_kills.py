"""A command that is ended at some moment leaves nothing, and ends the same when run again."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from itertools import product

import pytest
from tests.faults.harness import Case, faults_of, paired, run_case, snapshot
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
# Seconds after the partial file appears; None: while the command starts.
MOMENTS = (None, 0.0, 0.3)
ENDS = list(product(STATUS, MOMENTS))
# Four commands in turn against three moments: no command meets one moment alone.
_TURNS = ("score", "encode", "predict", "score")


@pytest.fixture(scope="module")
def complete(tmp_path_factory, zygote):
    """The files after each command that nobody ended."""
    files = {}
    for name, command in COMMANDS.items():
        folder = tmp_path_factory.mktemp("complete") / "case"
        folder.mkdir()
        (folder / "p.csv").write_text(ROWS)
        outcome = run_case(Case(name, command), folder, zygote)
        assert outcome.status == 0, outcome.err
        files[name] = snapshot(folder)
    return files


@pytest.mark.parametrize(
    ("sent", "moment", "name"),
    [(*end, name) for end, name in paired(ENDS, _TURNS, commands_per_fault=1)],
)
def test_ended_command_leaves_nothing_and_ends_the_same_when_run_again(
    sent,
    moment,
    name,
    tmp_path,
    zygote,
    complete,
):
    folder = tmp_path / "case"
    folder.mkdir()
    (folder / "p.csv").write_text(ROWS)
    before = snapshot(folder)
    script = f"from condsim.cli.main import run; run({COMMANDS[name].split()[1:]})"
    with (tmp_path / "output").open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", script], cwd=folder, stdout=output, stderr=output
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
    # At the first moment, Python itself may be starting.
    if moment is not None:
        ends = {STATUS[sent], 0}
        # All is done; Python itself may be ending.
        if snapshot(folder) == complete[name]:
            ends.add(-signal.Signals[f"SIG{sent}"])
        text = (tmp_path / "output").read_text()
        assert status in ends, text
        if sent != "KILL":
            assert not list(folder.glob("*.partial"))
            assert "Traceback" not in text
    again = Case(name, COMMANDS[name], status=(0,), writes=("o.csv", "o.npy"))
    outcome = run_case(again, folder, zygote)
    assert not faults_of(again, outcome, before, folder), outcome.err
    assert snapshot(folder) == complete[name]
