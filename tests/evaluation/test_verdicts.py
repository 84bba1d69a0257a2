from __future__ import annotations

import json

import numpy as np
from tests import commands

from condsim.evaluation.verdicts import verdict_figures, verdicts_by_score


def test_verdict_figures_hand_worked_values():
    right = [
        "duplicate",
        "duplicate",
        "update",
        "contradiction",
        "related",
        "new",
        "new",
        "related",
    ]
    found = ["duplicate", "related", "update", "update", "related", "new", "cannot tell", "related"]
    got = verdict_figures(right, found, list("abcdefgh"))
    # duplicate: 1 hit, 1 + 2 rows; update: 1 hit, 2 + 1; related: 2 hits, 3 + 2; new: 1 hit, 1 + 2.
    shares = {"duplicate": 2 / 3, "update": 2 / 3, "contradiction": 0, "related": 0.8, "new": 2 / 3}
    assert got.f1 == {name: round(100 * value, 1) for name, value in shares.items()}
    assert got.macro_f1 == round(100 * sum(shares.values()) / 5, 1)
    assert got.low <= got.macro_f1 <= got.high
    # The contradiction is merged; one duplicate is not.
    assert (got.wrongly_merged, got.wrongly_kept, got.right) == (12.5, 12.5, 62.5)


def test_verdict_figures_all_right_have_no_width():
    right = ["duplicate", "update", "contradiction", "related", "new"] * 3
    got = verdict_figures(right, right, [str(place // 5) for place in range(15)])
    assert (got.macro_f1, got.low, got.high) == (100, 100, 100)


def test_verdicts_by_score_takes_the_most_frequent_at_a_score_of_other_texts():
    right = ["duplicate", "new"] * 100
    scores = [float(name == "duplicate") for name in right]
    first = [str(place // 2) for place in range(200)]
    assert verdicts_by_score(scores, right, first) == right
    # All pairs have one first text, so that there is nothing else to learn from.
    assert verdicts_by_score(scores, right, ["a"] * 200) == right
    noise = np.random.default_rng(0).random(200)
    found = verdicts_by_score(noise, right, first)
    assert 0.3 < np.mean([one == other for one, other in zip(found, right, strict=True)]) < 0.7


def test_verdicts_by_score_equal_scores_have_the_most_frequent_verdict():
    right = ["related"] * 6 + ["new"] * 4
    assert set(verdicts_by_score(np.zeros(10), right, list("abcdefghij"))) == {"related"}


def test_evaluate_suite_verdicts_shows_the_judge_beside_scores(tmp_path):
    lines = [
        ("Tests run on Jenkins.", "Jenkins runs the tests.", "the tool", "duplicate"),
        ("Anna likes tea.", "The coffee machine is broken.", "the tool", "new"),
    ]
    file, report = tmp_path / "v.jsonl", tmp_path / "r.json"
    names = ("sentence1", "sentence2", "condition", "verdict")

    for columns in (names, (*names[:2], "verdict")):
        rows = [dict(zip(names, line, strict=True)) for line in lines]
        rows = [{name: row[name] for name in columns} for row in rows]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        result = commands.succeed("evaluate", file, "--suite", "verdicts", "--json", report)
        assert "macro F1" in result.stdout
        (methods,) = json.loads(report.read_text()).values()
        judges = [name for name in methods if "judge" in name]
        assert len(judges) == 1 + ("condition" in columns)
        rest = ["plain similarity", "word overlap", "most frequent"]
        assert list(methods)[len(judges) :] == rest
        assert methods[judges[0]]["pairs"] == 2
    file.write_text(file.read_text().replace('"new"', '"old"'))
    assert "must be one of" in commands.fault("evaluate", file, "--suite", "verdicts")
    file.write_text('{"sentence1": "a", "sentence2": "b"}\n')
    assert "verdict" in commands.fault("evaluate", file, "--suite", "verdicts")
