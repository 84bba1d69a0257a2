from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from condsim.cli.reproduce import reproduce
from condsim.errors import InputError

APP = typer.Typer(rich_markup_mode="markdown")
APP.command()(reproduce)
ROWS = "sentence1,sentence2,condition,label\na b,c d,e,1\na b,c d,f,5\ng h,i j,e,2\ng h,i j,k,4\n"


def invoke(*arguments):
    return CliRunner().invoke(APP, [str(argument) for argument in arguments])


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "csts"
    folder.mkdir()
    for name in ("train.csv", "dev.csv"):
        (folder / name).write_text(ROWS)
    return folder


def test_reproduce_list_prints_every_name():
    lines = invoke("--list").stdout.splitlines()
    assert len(lines) == 16
    assert lines[0].split()[0] == "csts-table2"


def test_reproduce_dry_run_prints_folders_and_writes_nothing(tmp_path, data):
    runs = tmp_path / "runs"
    done = invoke("ccl-table4", "--data", data, "--runs", runs, "--dry-run", "--set", "epochs=2")
    lines = done.stdout.splitlines()
    assert done.exit_code == 0
    assert len(lines) == 5
    assert all(line.startswith(f"to do     {runs}/all-minilm-l6-v2-bi-") for line in lines)
    assert not runs.exists()


def test_reproduce_report_only_writes_three_files(tmp_path, data):
    output = tmp_path / "results"
    done = invoke(
        "ccl-table5", "--data", data, "--runs", tmp_path / "runs", "--output", output,
        "--report-only",
    )  # fmt: skip
    assert done.exit_code == 0
    assert "0 of 5 runs finished" in done.stdout
    assert sorted(path.name for path in output.iterdir()) == [
        "ccl-table5.csv",
        "ccl-table5.md",
        "ccl-table5.png",
    ]
    page = (output / "ccl-table5.md").read_text()
    assert "not run" in page
    assert str(tmp_path) not in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Give the name of a table or figure"),
        (("csts-tabel3",), "Did you mean 'csts-table3'"),
        (("csts-table3", "--data", "nowhere"), r"--data must name a folder that holds train\.csv"),
        (("csts-table3", "--set", "seed=1"), "'seed' is decided by --seeds"),
    ],
)
def test_reproduce_bad_input_is_one_line(arguments, message):
    error = invoke(*arguments).exception
    assert isinstance(error, InputError)
    with pytest.raises(InputError, match=message):
        raise error
    assert "\n" not in str(error)
