"""Each case is a command, what it must say, and what must stay.

Faults and commands are paired, each fault with a few commands, in place of the whole product.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.faults import models, outputs, reading, recipes
from tests.faults.harness import Case, Zygote, faults_of, run_case, snapshot

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.slow

CASES = [*reading.CASES, *outputs.CASES, *models.CASES, *recipes.CASES]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case_ends_as_promised(case, tmp_path, zygote):
    _check(case, tmp_path, zygote)


@pytest.mark.parametrize("case", models.TRAINED, ids=lambda case: case.name)
def test_case_with_torch_ends_as_promised(case, tmp_path, trained_base, torch_zygote):
    (tmp_path / "base").symlink_to(trained_base)
    _check(case, tmp_path, torch_zygote)


def _check(case: Case, tmp_path: Path, zygote: Zygote) -> None:
    folder = tmp_path / "case"
    folder.mkdir()
    for name, content in case.files.items():
        if callable(content):
            content(folder / name)
        else:
            data = content.encode() if isinstance(content, str) else content
            (folder / name).write_bytes(data)
    before = snapshot(folder)
    outcome = run_case(case, folder, zygote)
    faults = faults_of(case, outcome, before, folder)
    assert not faults, f"{case.run}\n{faults}\n{outcome.err[-1500:]}"
