from __future__ import annotations

import pytest
from tests.commands import NumberScorer


@pytest.fixture
def numbers(monkeypatch):
    """The model of all commands: the number at the end of the condition."""
    scorer = NumberScorer()
    for command in ("score", "predict", "threshold"):
        monkeypatch.setattr(f"condsim.cli.{command}.load_scorer", lambda *_, **__: scorer)
    return scorer


@pytest.fixture
def write_lamps(tmp_path):
    """Writes pairs of rows: label 5 under the long condition, 1 under the short one, and a last
    row without a label.
    """

    def write(name, *, rows=24, subject="Lamp"):
        path = tmp_path / name
        lines = ["sentence1,sentence2,condition,label"]
        for row in range(rows):
            condition, label = ("the color of the lamp", 5) if row % 2 else ("the size", 1)
            label = -1 if row == rows - 1 else label
            texts = f"{subject} {row // 2} is on.,{subject} {row // 2} is off."
            lines.append(f"{texts},{condition},{label}")
        path.write_text("\n".join(lines) + "\n")
        return path

    return write
