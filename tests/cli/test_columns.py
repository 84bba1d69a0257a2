"""Every command on pairs takes their columns and form by options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.commands import fault, succeed

PAIRS = "links;rechts;worin;wert\nEin roter Käfer.;Ein roter Bus.;die Farbe;5\n"
PAIRS += "Ein Hund.;Eine Kuh.;die Farbe;2\nEin Hund.;Ein Köter.;das Tier;4\n"
COLUMNS = "--text1 links --text2 rechts --condition-column worin --separator ; --encoding mac_roman"


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.csv").write_text(PAIRS, "mac_roman")
    return "pairs.csv"


def test_predict_takes_columns_and_form(file):
    result = succeed("predict", file, *COLUMNS.split(), "--output", "-")
    assert list(json.loads(result.stdout)) == ["0", "1", "2"]
    words = ("--text1", "links", "--text2", "rechts", "--condition", "die Farbe", "--output", "-")
    assert len(json.loads(succeed("predict", file, *words).stdout)) == 3


def test_predict_without_conditions_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("sentence1,sentence2\na,b\n")
    assert "'condition'" in fault("predict", tmp_path / "a.csv", "--output", tmp_path / "o.json")


def test_prompt_takes_columns_and_form_for_rows_and_examples(file):
    pytest.importorskip("openai")
    rows = "".join(
        f"Ein Köter {n}.;Ein Hund {n}.;das Tier;4\nEin Köter {n}.;Ein Hund {n}.;was;2\n"
        for n in range(3)
    )
    Path("examples.csv").write_text(f"links;rechts;worin;wert\n{rows}", "mac_roman")
    server = "--model m --base-url http://localhost:1/v1 --dry-run --shots 2 --train examples.csv"
    words = (*COLUMNS.split(), "--label", "wert", *server.split())
    output = succeed("prompt", file, *words).stdout
    assert "Ein roter Käfer." in output
    assert "Ein Köter 1." in output


@pytest.mark.parametrize("label", [(), ("--label", "wert")])
def test_data_check_takes_columns_and_form(file, label):
    result = succeed("data", "check", file, *COLUMNS.split(), *label, "--json")
    statistics = json.loads(result.stdout)
    assert statistics["rows"] == 3
    assert statistics["labeled_rows"] == (3 if label else 0)


def test_data_check_takes_a_condition_for_all_rows(file):
    words = ("--text1", "links", "--text2", "rechts", "--condition", "die Farbe", "--json")
    assert json.loads(succeed("data", "check", file, *words).stdout)["distinct_conditions"] == 1


def test_robustness_takes_columns_and_form(tmp_path):
    file = tmp_path / "wordings.csv"
    file.write_text(
        "a|b|kind|words\nA dog.|A cat.|animal|the animal\nA dog.|A cat.|animal|which animal\n"
        "A bus.|A car.|color|the color\nA bus.|A car.|color|what color\n"
    )
    columns = "--text1 a --text2 b --condition-column words --group-column kind --separator |"
    result = succeed("robustness", file, *columns.split(), "--resamples", 10, "--json")
    assert json.loads(result.stdout)["rows"] == 4


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        ("threshold FILE", "--label"),
        ("evaluate FILE", "--text1, --text2, --condition-column"),
        ("robustness FILE --text1 links --text2 rechts", "--condition-column, --group-column"),
        ("adapt FILE --output model", "--text1, --text2"),
        ("index build FILE --output i", "--column"),
        ("learn FILE --column links --value was --condition x --output i.criterion", "--value"),
        ("build criteria FILE --output rows.csv", "--column"),
    ],
)
def test_missing_column_names_the_options_of_the_command(file, words, flags):
    if words.startswith("index"):
        pytest.importorskip("lancedb")
    message = fault(*words.replace("FILE", file).split())
    assert message.endswith(f"Name yours with {flags}.")


@pytest.mark.parametrize("condition", ["", " ", "\t"])
def test_blank_condition_is_named_by_its_option(file, condition):
    for command in ("score", "threshold", "encode"):
        assert "--condition is empty" in fault(command, file, "--condition", condition)
