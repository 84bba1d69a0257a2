"""A command declares its files; nothing else knows it by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer import Argument, Option
from typer.testing import CliRunner

from condsim.cli.command import guard
from condsim.cli.files import FOLDER, Output
from condsim.cli.process import print_note
from condsim.errors import InputError


def _copy(
    texts: Annotated[list[Path], Argument()],
    made: Annotated[Path | None, Option(), Output(".txt")] = None,
    told: Annotated[Path | None, Option(metavar="[FILE]"), Output(".json", alone=True)] = None,
    place: Annotated[Path | None, Option(), FOLDER] = None,
    word: Annotated[str | None, Option()] = None,
) -> None:
    content = texts[0].read_text("utf-8")
    if "nothing" in content:
        raise InputError(f"{texts[0]}: has nothing.")
    for path in filter(None, (made, told)):
        path.write_text(f"{content}, {path.suffix}", "utf-8")
    typer.echo("Copied.")
    print_note(f"from {texts[0]} to {made or told}, {place}, {word}")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("A text", "utf-8")
    Path("b.txt").write_text("Old", "utf-8")
    app = typer.Typer()
    app.command()(_copy)
    guard(app)

    def invoke(*words, stdin=None):
        return CliRunner().invoke(app, words, input=stdin)

    return invoke


@pytest.fixture
def refused(run):
    def message(*words, stdin=None):
        error = run(*words, stdin=stdin).exception
        assert isinstance(error, InputError), error
        return str(error)

    return message


def test_command_input_and_output_may_be_standard_streams(run):
    result = run("-", "--made", "-", stdin="A line")
    assert result.stdout == "A line, .txt"
    assert result.stderr == "Copied.\nfrom standard input to standard output, None, None\n"


@pytest.mark.parametrize("option", ["--file", "--data"])
def test_command_takes_its_file_by_an_option(run, option):
    assert run(option, "a.txt").stdout == "Copied.\n"
    assert run(f"{option}=a.txt").exit_code == 0


def test_command_bare_option_prints_its_file_alone(run):
    assert run("a.txt", "--told").stdout == "A text, .json"
    assert run("a.txt", "--told", "b.json").stdout == "Copied.\n"
    assert Path("b.json").read_text("utf-8") == "A text, .json"


def test_command_output_that_exists_is_replaced(run):
    assert run("a.txt", "--made", "b.txt").exit_code == 0
    assert Path("b.txt").read_text("utf-8") == "A text, .txt"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("a.txt --made a.txt", "a.txt is the input itself. Give another --made."),
        ("a.txt --made b --told b", "b is written as --told too. Give another --made."),
        ("a.txt --made no/b", "--made: the folder no does not exist; make it first."),
        ("a.txt --made .", "--made: . is a folder; give the name of a file to write."),
        ("a.txt --place b.txt", "--place: b.txt is a file; give a folder."),
        ("a.txt --place -", "--place: a folder cannot go to standard output; give its name."),
        ("a.txt --word b --word c", "--word: give one here; got 2."),
        ("a.txt --word=", "--word is empty; give it a value, or leave it out."),
        ("a.txt --made=", "--made is empty; give it a value, or leave it out."),
    ],
)
def test_command_bad_files_and_values_are_refused(refused, words, expected):
    assert refused(*words.split()) == expected


def test_command_empty_argument_is_refused(refused):
    assert refused("") == "The name of a file is empty."


def test_command_error_names_the_stream(refused):
    assert refused("-", stdin="nothing") == "standard input: has nothing."


def test_command_whose_reader_ends_has_the_status_of_a_pipe():
    script = (
        "import typer\nfrom condsim.cli.command import guard\n"
        "from condsim.cli.process import run_app\napp = typer.Typer()\n"
        "@app.command()\ndef count() -> None:\n    for n in range(100_000):\n        print(n)\n"
        "guard(app)\nrun_app(app, [])\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait() == 141
        assert process.stderr is not None
        assert process.stderr.read() == b""
