"""Commands run in this process, and the rows of the files that they write."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
from typer.testing import CliRunner, Result

from condsim.cli.main import _app_of
from condsim.errors import CondSimError, InputError


class NumberScorer:
    """A model whose score is the number at the end of the condition."""

    name = "number"

    def __init__(self) -> None:
        self.blocks: list[int] = []
        self.scale = ""

    def score(self, sentences1, sentences2, conditions, *, scale="", overall=0.0):
        self.blocks.append(len(conditions))
        self.scale = scale
        return np.asarray([float(text.split()[-1]) for text in conditions], np.float32)


def invoke(*words: object, stdin: str | bytes | None = None) -> Result:
    """Run a command line without ``condsim``."""
    return CliRunner().invoke(_app_of([str(words[0])]), [str(word) for word in words], input=stdin)


def succeed(*words: object, stdin: str | bytes | None = None) -> Result:
    """Run a command line that ends with status 0."""
    result = invoke(*words, stdin=stdin)
    if isinstance(result.exception, Exception):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


def fault(
    *words: object, stdin: str | bytes | None = None, kind: type[CondSimError] = InputError
) -> str:
    """Run a command line that ends with an error of condsim, and return its one line."""
    error = invoke(*words, stdin=stdin).exception
    assert isinstance(error, kind), error
    assert "\n" not in str(error)
    return str(error)


def rows_in(source: Path | str) -> list[dict[str, str]]:
    """The rows of a file by the format of its suffix, or of a text in TSV."""
    suffix = ".tsv" if isinstance(source, str) else source.suffix
    text = source if isinstance(source, str) else source.read_text("utf-8")
    if suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    quoting = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if suffix == ".tsv" else {}
    return list(csv.DictReader(io.StringIO(text), **quoting))
