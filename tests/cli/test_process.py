from __future__ import annotations

import re
import subprocess
import sys

import pytest

from condsim.cli.main import run


@pytest.fixture
def line(monkeypatch, capsys):
    """What a command line writes on stderr; its status must be 2."""

    def written(*arguments):
        monkeypatch.setattr(sys, "argv", ["condsim", *arguments])
        with pytest.raises(SystemExit) as ended:
            run()
        assert ended.value.code == 2
        return capsys.readouterr().err

    return written


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("score --modle x", "No such option: --modle (Possible options: --file, --model). See"),
        ("encode", "Missing argument 'file'. See '"),
        ("nope", "No such command 'nope'. See '"),
        ("scroe", "No such command 'scroe'. Did you mean 'score'? See '"),
        ("score a b c --scale percent", "Invalid value for '--scale': 'percent' is not one of"),
    ],
)
def test_run_wrong_use_is_one_line(line, arguments, expected):
    message = line(*arguments.split())
    assert re.fullmatch(rf"error: {re.escape(expected)}.* --help'\.\n", message)


def test_run_two_conditions_where_one_is_taken_is_refused(line):
    message = line("encode", "a.csv", "--condition", "a", "--condition=b", "--output", "e.npy")
    assert message == "error: --condition: give one here; got 2.\n"


@pytest.mark.parametrize("text", ["-5 degrees", "- an item"])
def test_run_text_with_a_dash_needs_two_before_it(line, text):
    message = line("score", text, "b", "c")
    assert message.endswith(f". Put -- before texts that begin with a dash: -- {text!r} …\n")


def test_run_empty_name_of_a_file_refused(line):
    assert line("score", "--file", "").startswith("error: --file is empty")
    message = line("cluster", "", "--condition", "a", "--output", "o.csv")
    assert message.startswith("error: The name of a file is empty")


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_run_help_and_version_are_no_error(monkeypatch, capsys, argument):
    with pytest.raises(SystemExit) as ended:
        run([argument])
    assert ended.value.code == 0
    assert capsys.readouterr().out


def test_run_texts_that_the_model_cannot_read_are_counted_in_one_line(tmp_path):
    file = tmp_path / "pairs.tsv"
    file.write_text("sentence1\tsentence2\tcondition\n你好\t再见\tthe topic\na\tb\tc\n")
    words = ["score", "--file", str(file), "--output", str(tmp_path / "scores.tsv")]
    done = subprocess.run(
        [sys.executable, "-m", "condsim", *words], check=True, capture_output=True, encoding="utf-8"
    )
    lines = [line for line in done.stderr.splitlines() if "cannot read" in line]
    assert len(lines) == 1
    assert lines[0].startswith("The model cannot read 2 texts, such as '你好': ")
    assert "ScoredWarning" not in done.stderr


@pytest.mark.parametrize(("sent", "status"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_run_app_signal_that_a_library_turned_into_an_error_ends_quietly(sent, status):
    script = f"""
import os, signal, time, typer
from condsim.cli.process import run_app
# A shell that starts the tests in the background ignores it.
signal.signal(signal.SIGINT, signal.default_int_handler)
app = typer.Typer()
@app.command()
def load():
    try:
        os.kill(os.getpid(), signal.{sent})
        time.sleep(5)
    except (SystemExit, KeyboardInterrupt):
        raise ImportError("initialization failed")
run_app(app, [])
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ended.returncode == status
    assert ended.stderr == ""
