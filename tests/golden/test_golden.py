"""Every command does what it did when ``expected.json`` was recorded.

Record it again after a change that is meant to show: ``CONDSIM_GOLDEN=record pytest tests/golden``.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.faults.harness import Zygote
from tests.golden.cases import CASES, EXAMPLES, Case
from tests.golden.compare import SCORE_TOLERANCE, differences
from tests.golden.contents import describe, stable_text

import condsim
from condsim.cli.main import app

EXPECTED = Path(__file__).with_name("expected.json")
LIBRARIES = "lancedb faiss sklearn pyarrow matplotlib optuna".split()
# They start no threads when they are imported, so that the process can be forked.
IMPORTED = (
    "pyarrow.parquet",
    "scipy.stats",
    "sklearn.linear_model",
    "sklearn.cluster",
    "sklearn.feature_extraction.text",
    "matplotlib.font_manager",
    "lance_namespace",
)
NAMES = {case.name for case in CASES} | {"options", "scores of messages"}
ENVIRONMENT = {
    "COLUMNS": "120",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "TZ": "UTC",
    "LC_ALL": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "PYTHONWARNINGS": "ignore",
}
pytestmark = [
    pytest.mark.skipif(find_spec(name) is None, reason=f"{name} is not installed")
    for name in LIBRARIES
]


@pytest.fixture(scope="module")
def record() -> Iterator[dict[str, Any]]:
    """What is expected, by the names of the cases; written when it is recorded again."""
    expected = json.loads(EXPECTED.read_text(encoding="utf-8"))
    if os.environ.get("CONDSIM_GOLDEN") == "record":
        expected = {name: result for name, result in expected.items() if name in NAMES}
    yield expected
    if os.environ.get("CONDSIM_GOLDEN") == "record":
        text = json.dumps(expected, indent=1, ensure_ascii=False, sort_keys=True)
        # Short lists and objects of plain values take one line each.
        text = re.sub(r"[\[{]\n\s*([^\[\]{}]*?)\n\s*[\]}]", _on_one_line, text)
        EXPECTED.write_text(text + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """One process with the imports done."""
    home = str(tmp_path_factory.mktemp("home"))
    environment = {**os.environ, **ENVIRONMENT, "HOME": home, "XDG_CACHE_HOME": home}
    environment.pop("LABEL_STUDIO_API_KEY", None)
    process = Zygote(environment, *(name for name in IMPORTED if find_spec(name.split(".")[0])))
    yield process
    process.close()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_command_writes_what_it_wrote(
    case: Case, tmp_path: Path, zygote: Zygote, record: dict[str, Any]
) -> None:
    folder = tmp_path / "case"
    for name, content in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if callable(content):
            content(path)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
    folder.mkdir(exist_ok=True)
    steps = []
    for line in case.lines:
        out, err = tmp_path / "out", tmp_path / "err"
        streams = {"CASE_OUT": str(out), "CASE_ERR": str(err)}
        status, _ = zygote.run(["condsim", *shlex.split(line)], folder, streams)
        assert status == 0, f"{line}\n{err.read_text(encoding='utf-8')[-1500:]}"
        stdout = stable_text(out.read_text(encoding="utf-8"), folder)
        steps.append({"line": line, "stdout": stdout})
    written = [
        (path.relative_to(folder).as_posix(), path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".lock"
    ]
    unread = {
        pattern: [name for name, _ in written if re.search(pattern, name)]
        for pattern in case.unread
    }
    assert all(unread.values()), f"a pattern fits no file: {unread}"
    files = {
        name: describe(path, folder)
        for name, path in written
        if name not in case.files and not any(name in names for names in unread.values())
    }
    _check(case.name, {"steps": steps, "files": files}, record)


def test_commands_have_the_options_they_had(record: dict[str, Any]) -> None:
    _check("options", dict(_options(typer.main.get_command(app), "")), record, tolerance=0)


def test_default_model_scores_as_it_did(record: dict[str, Any]) -> None:
    with (EXAMPLES / "messages.csv").open(newline="", encoding="utf-8") as stream:
        texts = [row["text"] for row in csv.DictReader(stream)]
    rows = [
        (text, second, condition)
        for number, text in enumerate(texts)
        for second in texts[number + 1 : number + 5]
        for condition in ("the product", "the problem")
    ]
    scores = condsim.load().score(*map(list, zip(*rows, strict=True)))
    assert str(scores.dtype) == "float32"
    _check("scores of messages", [round(float(score), 8) for score in scores], record)


def test_record_has_the_cases_and_no_more(record: dict[str, Any]) -> None:
    assert set(record) == NAMES


def _options(command: Any, name: str) -> Iterator[tuple[str, list[str]]]:
    """List the options of each command with their types and defaults."""
    for part, member in getattr(command, "commands", {}).items():
        yield from _options(member, f"{name} {part}".strip())
    if not hasattr(command, "commands"):
        context = command.make_context(name, [], resilient_parsing=True)
        yield name, [_option(parameter, context) for parameter in command.params]


def _option(parameter: Any, context: Any) -> str:
    names = " ".join((*parameter.opts, *parameter.secondary_opts))
    default = parameter.default
    # A default with a path in it differs from machine to machine.
    is_shown = isinstance(default, str | int | float) and "/" not in str(default)
    return " ".join(
        (
            names + "*" * parameter.required,
            parameter.display_type(context),
            *(f"min {limit}" for limit in [parameter.min] if limit is not None),
            *(f"max {limit}" for limit in [parameter.max] if limit is not None),
            *([f"= {default}"] if is_shown else []),
        )
    )


def _check(
    name: str, result: Any, record: dict[str, Any], tolerance: float = SCORE_TOLERANCE
) -> None:
    """Compare a result with the recorded one, or record it."""
    result = json.loads(json.dumps(result))
    if os.environ.get("CONDSIM_GOLDEN") == "record":
        record[name] = result
        return
    changes = list(differences(record[name], result, name, tolerance))
    assert not changes, "\n".join(changes)


def _on_one_line(value: re.Match[str]) -> str:
    content = re.sub(r"\n\s*", " ", value[1])
    line = f"{value[0][0]}{content}{value[0][-1]}"
    return line if len(line) < 100 else value[0]
