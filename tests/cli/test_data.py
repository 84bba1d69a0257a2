from __future__ import annotations

from functools import partial

import pytest
from tests import commands

check = partial(commands.succeed, "data", "check")
ROWS = (
    "sentence1,sentence2,condition,label\n"
    "A cat sits.,A dog runs.,the animal,2\n"
    "A cat sits.,A dog runs.,[red]the legs,5\n"
    "A cat sits.,A bird flies.,the animal,-1\n"
)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "[red]pairs.csv"
    path.write_text(ROWS, encoding="utf-8")
    return path


def test_check_tables_printed_with_markup_as_it_is(file):
    output = check(file).output
    for text in ("pairs, revision", "unlabeled or invalid", "High minus low", "the animal"):
        assert text in output
    assert "[red]the legs" in output
    assert "[red]pairs" in output


def test_check_file_without_labels_printed_and_bad_one_refused(file):
    file.write_text("sentence1,sentence2,condition\nA,B,C\n", encoding="utf-8")
    assert "High minus low" not in check(file, "--top", 0).output
    file.write_text("sentence1,sentence2\nA,B\n", encoding="utf-8")
    commands.fault("data", "check", file)
