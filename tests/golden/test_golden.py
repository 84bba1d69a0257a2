"""Every command does what it did when ``expected.json`` was recorded.

Record it again after a change that is meant to show: ``CONDSIM_GOLDEN=record pytest tests/golden``.
"""

from __future__ import annotations

import csv
import json
import math
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
from tests.golden.contents import describe, stable_text

import condsim
from condsim.cli.main import app

EXPECTED = Path(__file__).with_name("expected.json")
TOLERANCE = 1e-6
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
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?!\w)")
pytestmark = [
    pytest.mark.skipif(find_spec(name) is None, reason=f"{name} is not installed")
    for name in LIBRARIES
]


@pytest.fixture(scope="module")
def record() -> Iterator[dict[str, Any]]:
    """What is expected, by the names of the cases; written when it is recorded again."""
    expected = json.loads(EXPECTED.read_text(encoding="utf-8"))
    yield expected
    if os.environ.get("CONDSIM_GOLDEN") == "record":
        expected["processor"] = _processor()
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
    files = {
        name: describe(path, folder)
        for path in sorted(folder.rglob("*"))
        if (name := path.relative_to(folder).as_posix()) not in case.files
        and path.is_file()
        and not re.search(case.skip, name)
    }
    _check(case.name, {"steps": steps, "files": files}, record)


def test_commands_have_the_options_they_had(record: dict[str, Any]) -> None:
    _check("options", dict(_options(typer.main.get_command(app), "")), record)


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


def _check(name: str, result: Any, record: dict[str, Any]) -> None:
    """Compare a result with the recorded one, or record it."""
    result = json.loads(json.dumps(result))
    if os.environ.get("CONDSIM_GOLDEN") == "record":
        record[name] = result
        return
    # Another processor may round the scores of the default model differently.
    tolerance = TOLERANCE if record["processor"] == _processor() else math.inf
    changes = list(_differences(record[name], result, tolerance, name))
    assert not changes, "\n".join(changes)


def _differences(old: Any, new: Any, tolerance: float, place: str) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        if old.keys() != new.keys():
            yield f"{place}: {sorted(old.keys() ^ new.keys())} are in one only"
        for key in old.keys() & new.keys():
            yield from _differences(old[key], new[key], tolerance, f"{place}/{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _differences(before, after, tolerance, f"{place}/{number}")
    elif not _is_same(old, new, tolerance):
        yield f"{place}: {old!r} -> {new!r}"


def _is_same(old: Any, new: Any, tolerance: float) -> bool:
    """Compare two values; the words of a text may change when a command prints it."""
    if tolerance == math.inf:
        return type(old) is type(new)
    if isinstance(old, str) and isinstance(new, str):
        words = [_NUMBER.sub("#", text).split() for text in (old, new)]
        numbers = [[float(number) for number in _NUMBER.findall(text)] for text in (old, new)]
        return words[0] == words[1] and numbers[0] == pytest.approx(
            numbers[1], rel=tolerance, abs=tolerance
        )
    if isinstance(old, float) and isinstance(new, float):
        return old == pytest.approx(new, rel=tolerance, abs=tolerance, nan_ok=True)
    return bool(old == new)


def _processor() -> list[str]:
    """Instruction sets on which the rounding of int8 scores depends."""
    path = Path("/proc/cpuinfo")
    words = path.read_text(encoding="utf-8").split() if path.exists() else []
    return sorted({"avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8"} & set(words))


def _on_one_line(value: re.Match[str]) -> str:
    content = re.sub(r"\n\s*", " ", value[1])
    line = f"{value[0][0]}{content}{value[0][-1]}"
    return line if len(line) < 100 else value[0]
