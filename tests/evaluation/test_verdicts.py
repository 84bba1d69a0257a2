from __future__ import annotations

import json

from tests import commands

from condsim.evaluation.verdicts import verdict_figures


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


def test_evaluate_suite_verdicts_prints_and_writes_figures(tmp_path):
    lines = [
        ("Tests run on Jenkins.", "Jenkins runs the tests.", "duplicate"),
        ("Tests run on Jenkins.", "The coffee machine is broken.", "new"),
    ]
    file, report = tmp_path / "v.jsonl", tmp_path / "r.json"
    names = ("sentence1", "sentence2", "verdict")
    file.write_text("".join(json.dumps(dict(zip(names, one, strict=True))) + "\n" for one in lines))
    result = commands.succeed("evaluate", file, "--suite", "verdicts", "--json", report)
    assert "macro F1" in result.stdout
    (figures,) = json.loads(report.read_text()).values()
    assert figures["pairs"] == 2
    file.write_text(file.read_text().replace('"new"', '"old"'))
    assert "must be one of" in commands.fault("evaluate", file, "--suite", "verdicts")
    file.write_text('{"sentence1": "a", "sentence2": "b"}\n')
    assert "verdict" in commands.fault("evaluate", file, "--suite", "verdicts")
