"""Rules of the prose linter, each with texts that break it and texts that follow it."""

from __future__ import annotations

import pytest
from tools import prose


def rules_broken(tmp_path, text, name="module.py"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return [line.split(": ")[1] for line in prose.findings(path)]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('"""What a run computes in."""', "opening"),
        ('def f():\n    """Whether it runs."""', "opening"),
        ('class A:\n    """Reads rows."""', "opening"),
        ("x = 1  # of each row", "trailing"),
        ('raise ValueError(f"must be 1. Got {x}.")', "got"),
        ('raise ValueError("a long text that is no " "number")', "word"),
        ('option(help="Read the file anew.")', "word"),
        ("# Likewise here.", "word"),
        ("# The weights of the model that\n# ships are int8.", "word"),
        ('"""Model in a folder of its own."""', "word"),
        ("# The labelled rows.", "spelling"),
        ("few_colours = 1", "spelling"),
        ("def normalise():\n    pass", "spelling"),
        ('"""Lengths of the texts and those of the conditions."""', "word"),
        ("# The scale is that\n# of the labels.", "word"),
        ('raise ValueError("the name must not be that of another row")', "word"),
    ],
)
def test_findings_broken_rule_is_named(tmp_path, text, rule):
    assert rules_broken(tmp_path, text) == [rule]


@pytest.mark.parametrize(
    "text",
    [
        '"""Scores of a run, and what they mean."""',
        '"""Read rows; ``anew`` is a name."""',
        "x = rows()  # (rows, width) float32",
        "import a  # noqa: F401",
        "import a  # type: ignore[import]",
        'raise ValueError(f"expected 1, got {x}")',
        'x = "What is written to a file may say anew."',
        "# The scale of the labels; scores that often differ, and those offered before.",
        "# There is no row, and a larger batch is no faster.",
        "# The analyses of labeled centers.",
        "task.was_cancelled = 'a colour'",
    ],
)
def test_findings_clean_text_none(tmp_path, text):
    assert rules_broken(tmp_path, text) == []


def test_findings_page_lines_outside_code_only(tmp_path):
    page = "# Head\n\n```bash\nanew\n```\n\nRead `anew` [here](anew.md).\nIt goes\non anew.\n"
    path = tmp_path / "page.md"
    path.write_text(page, encoding="utf-8")
    places = sorted(line.removeprefix(str(path)).split(" (")[0] for line in prose.findings(path))
    assert places == [":8: word: goes on", ":9: word: anew"]


def test_main_findings_exit_status_1(tmp_path, monkeypatch, capsys):
    path = tmp_path / "page.md"
    path.write_text("Read it anew.", encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["prose", str(path)])
    assert prose.main() == 1
    assert ':1: word: anew (write "again")' in capsys.readouterr().out
    path.write_text("Read it again.", encoding="utf-8")
    assert prose.main() == 0
