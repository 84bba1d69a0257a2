"""Commands run in the process, and the rows of the files that they write."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from condsim.cli.main import app


@pytest.fixture
def build() -> Callable[..., str]:
    """Runs `condsim build`; returns what it prints, and raises the error that ends it."""

    def run(*arguments: object) -> str:
        result = CliRunner().invoke(app, ["build", *map(str, arguments)])
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == 0, result.output
        return " ".join(result.output.split())

    return run


@pytest.fixture
def rows_of() -> Callable[[Path], list[dict[str, str]]]:
    """Reads a CSV file."""

    def read(path: Path) -> list[dict[str, str]]:
        with path.open(encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))

    return read
