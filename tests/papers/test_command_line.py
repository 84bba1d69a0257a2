from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from papers.__main__ import app
from typer.testing import CliRunner

from condsim.errors import InputError
from condsim_llm import scorer as open_prompt
from condsim_llm.backend import Answer
from condsim_llm.errors import BudgetError

PROJECT = Path(__file__).resolve().parents[2]


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def data(options):
    return options.data


def test_reproduce_list_prints_every_name():
    lines = invoke("--list").stdout.splitlines()
    assert len(lines) == 31
    assert lines[0].split()[0] == "csts-table2"


def run_without(*modules, arguments):
    """Run the command in a process where some libraries are not installed."""
    blocked = "".join(f"sys.modules[{name!r}] = None\n" for name in modules)
    code = f"import runpy, sys\n{blocked}runpy.run_module('papers', run_name='__main__')"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=PROJECT)


def test_reproduce_list_needs_no_extra():
    done = run_without("safetensors", "torch", "matplotlib", "sklearn", arguments=["--list"])
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 31


@pytest.mark.parametrize(
    ("name", "extra"),
    [("ccl-table4", "train"), ("ssbc-table2", "contexts"), ("default-model", "train")],
)
def test_reproduce_missing_extra_is_one_line(name, extra, data):
    done = run_without("safetensors", "torch", arguments=[name, "--data", data])
    assert done.returncode == 2
    assert f"pip install 'condsim[{extra}]'" in done.stderr
    assert done.stderr.count("\n") == 1


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


@pytest.fixture
def backend(fake_backend, monkeypatch):
    made = fake_backend(lambda prompt: Answer(str(1 + len(prompt) % 5)))
    monkeypatch.setattr(open_prompt, "open_backend", lambda settings: made)
    return made


def prompting(folder, *arguments):
    return invoke(
        "csts-table11", "--data", folder / "data", "--runs", folder / "runs",
        "--output", folder / "results", *arguments,
    )  # fmt: skip


def test_reproduce_prompting_budget_is_one_line_and_goes_on(tmp_path, data, backend):
    done = prompting(tmp_path, "--model", "m", "--max-requests", "50")
    assert isinstance(done.exception, BudgetError)
    assert "\n" not in str(done.exception)
    assert (tmp_path / "results" / "csts-table11.md").is_file()
    left = prompting(tmp_path, "--model", "m", "--dry-run")
    assert "2 of 9 runs finished" in left.stderr
    assert [line.split()[0] for line in left.stdout.splitlines()][:2] == ["finished"] * 2
    done = prompting(tmp_path, "--model", "m")
    assert "9 of 9 runs finished" in done.stdout
    assert len(backend.asked) == 180


def test_reproduce_prompting_without_a_model_shows_the_paper(tmp_path, backend):
    done = prompting(tmp_path)
    assert "0 of 0 runs finished" in done.stdout
    page = (tmp_path / "results" / "csts-table11.md").read_text()
    assert "No language model was asked: name one with `--model`." in page
    assert "42.05" in page
    assert "ours" not in page.split("**The paper says")[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Give the name of a table or figure"),
        (("csts-tabel3",), "Did you mean 'csts-table3'"),
        (
            ("csts-table3", "--data", "nowhere"),
            r"--data must name a folder that holds csts-reannotated/train\.csv",
        ),
        (("csts-table3", "--set", "seed=1"), "'seed' is decided by --seeds"),
        (("csts-table4", "--backbone", "minilm"), r"--backbone does not apply to csts-table4"),
        (("csts-table3", "--model", "m"), r"--model does not apply to csts-table3.* --backbone"),
        (("ccl-table4", "--max-tokens", "0"), r"--max-tokens does not apply to ccl-table4"),
        (("ssbc-table6", "--backbone", "minilm"), r"--backbone does not apply to .* --recipe"),
        (
            ("ssbc-table6", "--set", "seed=1", "--recipe", "a.yaml"),
            r"Name the folder of the data sets with --data; it must hold sts-b/sts-test\.csv",
        ),
        (("csts-table4", "--scoring", "expected"), r"--scoring is of no use without a language"),
        (("csts-table4", "--model", "m"), r"Name the folder of the data sets with --data; it must"),
        (
            ("csts-table4", "--model", "/a/m", "--model", "/b/m"),
            r"--model: '/a/m' and '/b/m' would have one name",
        ),
    ],
)
def test_reproduce_bad_input_is_one_line(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where there are neither data nor runs
    error = invoke(*arguments).exception
    assert isinstance(error, InputError)
    with pytest.raises(InputError, match=message):
        raise error
    assert "\n" not in str(error)
