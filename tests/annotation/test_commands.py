"""The commands that need no server; those that do are in `tests/services`."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from condsim.annotation.label_studio import TOKEN
from condsim.cli.build import app


@pytest.fixture
def build(tmp_path, monkeypatch):
    """Runs a command in a folder of its own and gives its output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(TOKEN, raising=False)

    def run(*words: str) -> str:
        result = CliRunner().invoke(app, list(words))
        if result.exception is not None:
            raise result.exception
        return result.output

    return run


def test_build_mturk_form_and_results_make_a_file_of_ratings(build, tmp_path):
    (tmp_path / "conditions.csv").write_text(
        "pair_id,sentence1,sentence2,condition,intended,annotator\n"
        "p,A fox.,A hen.,The use,high,w1\np,A fox.,A hen.,The size,low,w1\n",
        encoding="utf-8",
    )
    assert "w2: accepted" in build("qualify", "--accept", "W2")
    words = ("mturk", "form", "verification", "--data", "conditions.csv", "--output", ".")
    assert "2 items in mturk-verification.csv" in build(*words)
    item = (tmp_path / "mturk-verification.csv").read_text().splitlines()[1].split('"')[1]
    (tmp_path / "batch.csv").write_text(
        f"AssignmentId,WorkerId,Input.condsim_item,Answer.rating\nA1,W2,{item},4\nA2,W1,{item},4\n",
        encoding="utf-8",
    )
    words = ("mturk", "results", "verification", "batch.csv", "--output", "ratings.csv")
    shown = build(*words)
    assert "2 annotations, 2 new" in shown
    assert "1 rows in ratings.csv" in shown
    assert "1 do not count: the annotator is not in the pool" in shown
    assert "0 new, 0 edited" in build(*words)
    assert "verification: 2 items, 0 done of 3 answers each" in build("status", "--offline")
