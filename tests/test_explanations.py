from __future__ import annotations

import numpy as np
import pytest
from benchmarks import explanations as module
from typer.testing import CliRunner

TEXT, OTHER = "A man plays tennis.", "A girl swings a racket."


class Terms:
    """Scores the first text by terms of its words: an additive game."""

    name = "terms"
    terms = {"A": 0.0, "man": -0.1, "plays": 0.1, "tennis": 0.5}  # noqa: RUF012

    def score(self, texts, other, condition):
        values = [sum(map(self.terms.get, text.rstrip(".").split())) for text in texts]
        return np.array([0.2 + value for value in values], np.float32)


@pytest.fixture
def side():
    return module.Side(Terms(), TEXT, OTHER, "the sport", 0)


@pytest.mark.parametrize("method", [module.shapley, module.leave_one_out])
def test_methods_of_an_additive_score_give_its_terms(side, method):
    np.testing.assert_allclose(method(side), list(Terms.terms.values()), atol=1e-6)


def test_moved_takes_the_words_that_push_as_the_text_does(side):
    # All words add 0.5. Top: tennis at 10 to 20 %, and plays at 30 and 50 % of 4 words.
    comprehensiveness, sufficiency = module.moved(side, [module.shapley(side)])
    assert comprehensiveness[0] == pytest.approx((2 * 0.5 + 2 * 0.6) / 4, abs=1e-6)
    assert sufficiency[0] == pytest.approx((2 * 0.0 + 2 * -0.1) / 4, abs=1e-6)


def test_command_writes_a_page_of_all_methods(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SAMPLES", 12)
    data, page = tmp_path / "rows.csv", tmp_path / "page.md"
    rows = [f"{TEXT},{OTHER},the sport,4", f"{TEXT},{OTHER},the person,2", f"{OTHER},{TEXT},age,1"]
    data.write_text("sentence1,sentence2,condition,label\n" + "\n".join(rows) + "\n")
    result = CliRunner().invoke(module.app, ["--data", str(data), "--output", str(page)])
    assert result.exit_code == 0, result.exception
    text = page.read_text("utf-8")
    assert "3 rows, 2 pairs" in text
    assert text.count("| Shapley values") == 1
    assert "| random words |" in text
    assert TEXT not in text
