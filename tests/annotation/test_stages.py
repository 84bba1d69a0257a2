"""Guidelines, pages, forms, hints and items of the stages."""

from __future__ import annotations

import gzip
import re
from xml.etree import ElementTree

import pytest

from condsim.annotation.label_studio import answer_of, result_of
from condsim.annotation.mturk import mturk_form
from condsim.annotation.stages import (
    FIELDS,
    HINT_RULES,
    STAGES,
    VERDICTS,
    TaskAnswer,
    guidelines,
    hints_of,
    items_to_annotate,
    labelling_config,
    rating_of,
)
from condsim.errors import InputError

SHOWN = {
    "qualification": set(
        "sentence1 sentence2 test_sentence1 test_sentence2 test_condition".split()
    ),
    "conditions": {"sentence1", "sentence2", "hints"},
    "verification": {"sentence1", "sentence2", "condition"},
}


@pytest.mark.parametrize("stage", STAGES)
def test_pages_stage_show_its_variables_and_ask_its_fields(stage):
    page = ElementTree.fromstring(labelling_config(stage))
    fields = {tag.get("name") for kind in ("TextArea", "Choices") for tag in page.iter(kind)}
    assert fields == set(FIELDS[stage])
    texts = {tag.get("name"): tag.get("value") for tag in page.iter("Text")}
    assert texts == {name: f"${name}" for name in SHOWN[stage]}
    assert {tag.get("toName") for tag in page.iter() if tag.get("toName")} <= set(texts)
    form = mturk_form(stage)
    assert set(re.findall(r"\$\{(\w+)\}", form)) == SHOWN[stage] - {"hints"}
    assert set(re.findall(r'<input [^>]*name="(\w+)"', form)) == set(FIELDS[stage])
    assert ("const RULES" in form) == (stage != "verification")


def test_labelling_config_rating_offers_each_verdict_with_its_own_key():
    choices = list(ElementTree.fromstring(labelling_config("verification")).iter("Choice"))
    assert [choice.get("alias") for choice in choices] == ["1", "2", "3", "4", "5", "-1"]
    assert len({choice.get("hotkey") for choice in choices}) == len(VERDICTS)


@pytest.mark.parametrize("stage", STAGES)
def test_guidelines_stage_are_well_formed_html_without_scripts(stage):
    text = guidelines(stage)
    ElementTree.fromstring(f"<div>{text.replace('<br>', '<br/>').replace('<hr>', '<hr/>')}</div>")
    assert "<script" not in text
    if stage == "conditions":
        assert re.findall(r"<b>(\d)\. ", text) == list("123456")


@pytest.mark.parametrize("stage", STAGES)
def test_result_of_answer_reads_back(stage):
    answer = TaskAnswer("The sport", "The place", 4)
    of_stage = {name: getattr(answer, name) for name in FIELDS[stage]}
    assert answer_of(result_of(stage, answer)) == TaskAnswer(**of_stage)


def test_answer_of_nothing_usable_is_empty():
    regions = [
        {"from_name": "rating", "value": {"choices": []}},
        {"from_name": "high", "value": {"text": ["  "]}},
        {"from_name": "other", "value": {"text": ["x"]}},
        {"from_name": "low"},
    ]
    assert answer_of(regions) == TaskAnswer()


@pytest.mark.parametrize(
    ("value", "rating"), [("4", 4), (5.0, 5), ("-1", -1), ("6", None), ("x", None), ("nan", None)]
)
def test_rating_of_value_is_on_the_scale_or_none(value, rating):
    assert rating_of(value) == rating


@pytest.mark.parametrize(
    ("condition", "broken"),
    [
        ("The purpose of the action", []),
        ("the the sport", [1]),
        ("??", [1]),
        ("The color of the", [1, 6]),
        ("The age of the dog", [2]),
        ("The color of the car", [6]),
        ("The color is red", [3, 6]),
        ("two dogs", [3]),
        ("What the man is", []),
        ("The sport in the sentence", [4]),
        ("Topic of both captions.", [4]),
        ("The activity.", [5]),
        ("setting", [5]),
        ("The kind of activity", []),
        ("How many people there are", [6]),
    ],
)
def test_hints_of_condition_names_the_rules(condition, broken):
    sentences = "A man in a red coat skis.", "A dog barks at a blue car."
    assert [hint.rule for hint in hints_of(condition, *sentences)] == broken


def test_hint_rules_patterns_have_no_syntax_that_only_python_has():
    for rule in HINT_RULES:
        for pattern in (rule.pattern, rule.needed or ""):
            assert not re.search(r"\(\?(?![:!=])|\\[AZ]|<\w+>", pattern), pattern


def test_condition_items_without_pair_ids_names_pairs_by_their_texts(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("sentence1,sentence2\nA fox.,A hen.\nA cow.,A pig.\n", encoding="utf-8")
    first, second = items_to_annotate("conditions", path)
    assert first.item_id != second.item_id
    packed = tmp_path / "pairs.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert first == next(items_to_annotate("conditions", packed))


def test_qualification_items_known_answers_stay_hidden(tmp_path):
    path = tmp_path / "known.csv"
    path.write_text(
        "sentence1,sentence2,condition,label\nA fox.,A hen.,The animal,2.0\na,b,c,-1\n",
        encoding="utf-8",
    )
    items = list(items_to_annotate("qualification", path))
    assert [item.facts for item in items] == [{"label": 2}, {"label": -1}]
    assert "label" not in items[0].shown


def test_qualification_items_label_out_of_range_names_the_row(tmp_path):
    path = tmp_path / "known.csv"
    path.write_text("sentence1,sentence2,condition,label\na,b,c,0\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"known\.csv, row 1 .*the known answer"):
        list(items_to_annotate("qualification", path))
