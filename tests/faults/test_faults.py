"""Faults and hostile input: each case is a command, what it must say, and what must stay."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.faults import models, outputs, reading, recipes, trained
from tests.faults.harness import Case, Zygote, faults_of, run_case, snapshot

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.slow

CASES = [*reading.CASES, *outputs.CASES, *models.CASES, *recipes.CASES]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case_ends_as_promised(case: Case, tmp_path: Path, base: Path, zygote: Zygote) -> None:
    _check(case, tmp_path, base, zygote)


@pytest.mark.parametrize("case", trained.CASES, ids=lambda case: case.name)
def test_case_with_torch_ends_as_promised(
    case: Case, tmp_path: Path, trained_base: Path, torch_zygote: Zygote
) -> None:
    (tmp_path / "base").symlink_to(trained_base)
    _check(case, tmp_path, trained_base, torch_zygote)


def _check(case: Case, tmp_path: Path, base: Path, zygote: Zygote) -> None:
    folder = tmp_path / "case"
    folder.mkdir()
    for name, content in case.files.items():
        path = folder / name
        if callable(content):
            content(path)
        elif isinstance(content, str):
            path.write_bytes(content.encode())
        else:
            path.write_bytes(content)
    before = snapshot(folder)
    outcome = run_case(case, folder, base, zygote, Path(sys.executable).parent)
    found = faults_of(case, outcome, before, folder)
    assert not found, f"{case.run}\n{found}\n{outcome.err[-1500:]}"
