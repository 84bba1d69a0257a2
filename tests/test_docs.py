"""Runs every code block of the README and the docs.

The python, bash and console blocks of a page run in order, in one folder that has `examples/`,
`recipes/`, `train.csv`, `dev.csv` and a trained model `runs/bi`. A block below a line
`<!-- no-run -->` needs data, hours or the Hub: its commands are parsed and its recipes read.

`CONDSIM_DOCS=record pytest tests/test_docs.py` writes what the commands print into the pages.
"""

from __future__ import annotations

import csv
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
import typer
import yaml
from tests.serving.conftest import running
from tests.test_docs_tables import table

from condsim.cli.main import app
from condsim.training.recipe import Recipe, load_recipe
from condsim.training.run import fit

pytestmark = pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning")

PROJECT = Path(__file__).resolve().parents[1]
PAGES = [
    *(PROJECT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted(PROJECT.glob("docs/*.md")),
    *sorted(PROJECT.glob("papers/docs/*.md")),
]
# Over ten seconds each.
LONG = {f"docs/{name}.md" for name in ("collections", "contexts", "tour", "tutorial")}
NAMES = [str(page.relative_to(PROJECT)) for page in PAGES]

SHELLS = ("bash", "console")
NO_RUN = "<!-- no-run -->"
LANGUAGES = ("python", *SHELLS, "javascript", "yaml", "text", "csv", "json")
ADDRESS = "http://127.0.0.1:8000"  # of the server, in docs/serving.md


class Block(NamedTuple):
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    runs: bool
    text: str


def blocks_of(page: Path) -> Iterator[Block]:
    fence, start, runs, previous = "", 0, True, ""
    lines: list[str] = []
    for number, line in enumerate(page.read_text("utf-8").splitlines(), start=1):
        if not fence and line.startswith("```"):
            fence, start, lines = line.removeprefix("```").strip() or "none", number, []
            runs = previous != NO_RUN
        elif fence and line == "```":
            yield Block(page, start, fence, runs, "\n".join(lines) + "\n")
            fence = ""
        elif fence:
            lines.append(line)
        previous = line
    assert not fence, f"{page.name}:{start}: the block is not closed"


BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def commands_of(block: Block) -> list[str]:
    """The command lines of a shell block, continued lines joined, here-documents left out."""
    text = block.text.replace("\\\n", " ")
    if block.language == "console":
        return [line[2:] for line in text.splitlines() if line.startswith("$ ")]
    text = re.sub(r"<<'END'\n.*?\nEND\n", "\n", text, flags=re.DOTALL)
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def simple_commands(line: str) -> Iterator[list[str]]:
    """The words of each command of a line, without pipes and redirections."""
    words: list[str] = []
    for word in [*shlex.split(line, comments=True), "&&"]:
        if word in ("|", "&&", ">"):
            if words:
                yield words
            words = []
        else:
            words.append(word)


def write_rows(path: Path, *, first: int, pairs: int) -> None:
    """Writes sentence pairs of our own, each under two conditions, and a row without a label."""
    people, acts = ("man", "woman", "girl", "boy"), ("throws a ball", "plays", "runs")
    with path.open("w", newline="", encoding="utf-8") as stream:
        rows = csv.writer(stream, lineterminator="\n")
        rows.writerow(["sentence1", "sentence2", "condition", "label"])
        for number in range(first, first + pairs):
            one, two = f"A {people[number % 4]}", f"A {people[number // 2 % 4]}"
            pair = [f"{one} {acts[number % 3]} {number}.", f"{two} {acts[number // 3 % 3]}."]
            rows.writerow([*pair, "the person", 5 if one == two else 2])
            rows.writerow([*pair, "the sport", 4 if number % 3 == number // 3 % 3 else 1])
        rows.writerow(["A cat sleeps.", "A dog sleeps.", "the sport", -1])


@pytest.fixture(scope="module")
def workspace(tmp_path_factory, tiny_backbone):
    folder = tmp_path_factory.mktemp("docs")
    for name in ("examples", "recipes"):
        shutil.copytree(PROJECT / name, folder / name)
    write_rows(folder / "train.csv", first=0, pairs=12)
    write_rows(folder / "dev.csv", first=50, pairs=8)
    recipe = Recipe(
        name="bi",
        train=str(folder / "train.csv"),
        dev=str(folder / "dev.csv"),
        backbone=str(tiny_backbone),
        max_seq_length=48,
        epochs=1,
        precision="float32",
    )
    fit(recipe, folder / "runs" / "bi")
    return folder


def run_shell(block: Block) -> None:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(PROJECT), os.environ.get("PYTHONPATH", "")]),
        "COLUMNS": "80",
        "PYTHONIOENCODING": "utf-8",
        "HF_HUB_OFFLINE": "1",
    }
    script = ["sh", "-e", "-c"]
    if block.language == "bash":
        done = subprocess.run(
            [*script, block.text],
            capture_output=True,
            encoding="utf-8",
            env=environment,
            timeout=300,
        )
        assert done.returncode == 0, f"{block.page.name}:{block.line}: {done.stderr}"
        return
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        done = subprocess.run(
            [*script, command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            env=environment,
            timeout=300,
        )
        shown = [line.rstrip() for line in done.stdout.splitlines()]
        if os.environ.get("CONDSIM_DOCS") == "record":
            record_output(block.page, command, expected, "".join(f"{line}\n" for line in shown))
            continue
        where = f"{block.page.name}:{block.line}: {command}"
        assert shown == expected.splitlines(), where
        assert (done.returncode == 0) is not expected.startswith("error:"), where


def record_output(page: Path, command: str, expected: str, shown: str) -> None:
    text = page.read_text("utf-8")
    page.write_text(text.replace(f"$ {command}\n{expected}", f"$ {command}\n{shown}", 1), "utf-8")


def run_javascript(block: Block) -> None:
    if (node := shutil.which("node")) is not None:
        module = [node, "--input-type=module", "--eval", block.text]
        done = subprocess.run(module, capture_output=True, encoding="utf-8", timeout=300)
        assert done.returncode == 0, f"{block.page.name}:{block.line}: {done.stderr}"


def run_python(block: Block, names: dict[str, object]) -> None:
    padded = "\n" * block.line + block.text  # so that a traceback names the line of the page
    exec(compile(padded, str(block.page), "exec"), names)  # the blocks are our own


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in NAMES],
)
def test_page_blocks_run(name, workspace, monkeypatch):
    monkeypatch.chdir(workspace)
    names: dict[str, object] = {"__name__": "__main__"}
    blocks = [block for block in BLOCKS if block.page == PROJECT / name and block.runs]
    with ExitStack() as stack:
        if any(ADDRESS in block.text for block in blocks):
            server = stack.enter_context(running(workspace))
            blocks = [
                block._replace(text=block.text.replace(ADDRESS, server.url)) for block in blocks
            ]
        for block in blocks:
            if block.language in SHELLS:
                run_shell(block)
            elif block.language == "javascript":
                run_javascript(block)
            elif block.language == "python":
                run_python(block, names)


def test_pages_have_known_languages():
    for block in BLOCKS:
        assert block.language in LANGUAGES, f"{block.page.name}:{block.line}"


def check_condsim(words: list[str], where: str) -> None:
    """Parses a command as the command line would; reads its recipe and overrides."""
    command, path = typer.main.get_command(app), words
    while hasattr(command, "commands"):
        assert path, f"{where}: a subcommand is missing"
        assert path[0] in command.commands, f"{where}: no command {path[0]!r}"
        command, path = command.commands[path[0]], path[1:]
    context = command.make_context(words[0], list(path))
    if words[0] == "train":
        recipe = PROJECT / str(context.params["recipe"])
        assert recipe.is_file(), f"{where}: there is no {recipe}"
        load_recipe(recipe, overrides=context.params["set_"] or ())


def check_words(words: list[str], where: str) -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]
    if words[0] == "make":
        makefile = (PROJECT / "Makefile").read_text("utf-8")
        for target in words[1:]:
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{where}: {target}"
    elif "pip" in words:
        for extras in re.findall(r"(?:condsim|\.)\[([\w,]+)\]", " ".join(words)):
            assert set(extras.split(",")) <= set(project["optional-dependencies"]), where
    elif "condsim" in words:
        check_condsim(words[words.index("condsim") + 1 :], where)


def test_commands_have_real_options_and_recipes():
    checked = 0
    for block in BLOCKS:
        for line in commands_of(block) if block.language in SHELLS else ():
            if not block.runs:
                for words in simple_commands(line):
                    check_words(words, f"{block.page.name}:{block.line}: {line}")
                    checked += 1
    assert checked > 10


def test_readme_table_has_complete_commands():
    lines = [cells[1] for cells in table("README.md", "task")]
    commands = [code for line in lines for code in re.findall(r"condsim [^`]+", line)]
    assert len(commands) > 20
    for command in commands:
        check_condsim(shlex.split(command)[1:], f"README.md: {command}")


def test_no_run_python_compiles():
    for block in BLOCKS:
        if block.language == "python" and not block.runs:
            compile(block.text, f"{block.page}:{block.line}", "exec")


def test_yaml_blocks_are_recipes(tmp_path):
    for number, block in enumerate(block for block in BLOCKS if block.language == "yaml"):
        values = yaml.safe_load(block.text)
        path = tmp_path / f"{number}.yaml"
        path.write_text(yaml.safe_dump({"name": "n", "train": "t", "dev": "d", **values}))
        load_recipe(path)


def test_readme_python_prints_what_it_says(capsys):
    block = next(b for b in BLOCKS if b.page.name == "README.md" and b.language == "python")
    run_python(block, {"__name__": "__main__"})
    shown = [float(line) for line in capsys.readouterr().out.split()]
    wanted = [float(number) for number in re.findall(r"# (\d\.\d\d)$", block.text, re.MULTILINE)]
    assert shown == pytest.approx(wanted, abs=0.05)  # processors round int8 differently
