"""Every command treats a file that exists in one way: it is replaced, once the new one is whole."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.commands import invoke

from condsim.cli.files import Output
from condsim.cli.main import app

TEXTS = "text,topic\n" + "".join(
    f"A {animal} {verb} {n}.,{animal}\n"
    for animal in ("dog", "cat")
    for verb in ("runs", "sleeps")
    for n in range(4)
)
PAIRS = "sentence1,sentence2,condition,label\n" + "".join(
    f"A dog runs {n}.,A cat {verb} {n}.,{condition},{label}\n"
    for n, verb in enumerate(("runs", "sleeps", "sits"))
    for condition, label in (("the animal", 1), ("the action", 5 - n))
)
COMMANDS = {
    "score --file pairs.csv --output out.tsv": "out.tsv",
    "predict pairs.csv --output out.json": "out.json",
    "encode pairs.csv --column sentence1 --output out.npy": "out.npy",
    "explain --file pairs.csv --samples 4 --output out.jsonl": "out.jsonl",
    "evaluate pairs.csv --resamples 2 --json out.json": "out.json",
    "data check pairs.csv --json out.json": "out.json",
    "build criteria texts.csv --rows 20 --output out.csv": "out.csv",
    "cluster texts.csv --condition animal --k 2 --output out.csv": "out.csv",
    "cluster texts.csv --condition animal --k 2 --output a.csv --save out.json": "out.json",
    "dedupe texts.csv --condition animal --at-least 0.9 --output out.csv": "out.csv",
    "dedupe texts.csv --condition animal --at-least 0.9 --output a.csv --groups out.csv": "out.csv",
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("pairs.csv").write_text(PAIRS)
    Path("texts.csv").write_text(TEXTS)


@pytest.mark.parametrize("line", COMMANDS)
def test_output_that_exists_is_replaced_and_kept_after_an_error(line):
    if line.startswith(("cluster", "dedupe")):
        pytest.importorskip("faiss")
        pytest.importorskip("sklearn")
    output = Path(COMMANDS[line])
    output.write_text("old")
    bad = line.replace("pairs.csv", "none.csv").replace("texts.csv", "none.csv")
    assert invoke(*bad.split()).exit_code
    assert output.read_text() == "old"
    result = invoke(*line.split())
    assert result.exit_code == 0, result.exception
    assert output.read_bytes() != b"old"


def _options(command: Any, name: str = "") -> dict[str, tuple[Any, Any]]:
    """Find the options of all commands that say that they write, and the marks of each command."""
    options = {}
    for part, member in getattr(command, "commands", {}).items():
        options |= _options(member, f"{name} {part}".strip())
    for parameter in [] if hasattr(command, "commands") else command.params:
        text = getattr(parameter, "help", None) or ""
        if re.search("(?i)(file|folder) to write", text) or parameter.opts[0] in (
            "--output",
            "--json",
        ):
            options[f"{name} {parameter.opts[0]}"] = parameter.name, command.callback.files
    return options


def test_every_option_that_names_an_output_is_marked():
    # An index may be at an address, and its folder is not a path.
    options = _options(typer.main.get_command(app))
    options.pop("index build --output")
    assert len(options) > 30
    unmarked = {key for key, (name, marks) in options.items() if not _is_output(marks.get(name))}
    assert not unmarked


def _is_output(mark: object) -> bool:
    return isinstance(mark, Output)
