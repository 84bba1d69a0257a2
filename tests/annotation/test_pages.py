"""What annotators see: guidelines, labelling pages, forms."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from condsim.annotation.label_studio import answer_of, result_of
from condsim.annotation.mturk import mturk_form
from condsim.annotation.stages import (
    FIELDS,
    STAGES,
    VERDICTS,
    Answer,
    guidelines,
    labelling_config,
    rating_of,
)

SHOWN = {
    "qualification": {
        *("sentence1", "sentence2", "test_sentence1", "test_sentence2", "test_condition")
    },
    "conditions": {"sentence1", "sentence2", "hints"},
    "verification": {"sentence1", "sentence2", "condition"},
}


@pytest.mark.parametrize("stage", STAGES)
def test_labelling_config_stage_asks_its_fields_of_its_variables(stage):
    page = ElementTree.fromstring(labelling_config(stage))
    asked = {tag.get("name") for kind in ("TextArea", "Choices") for tag in page.iter(kind)}
    assert asked == set(FIELDS[stage])
    texts = {tag.get("name"): tag.get("value") for tag in page.iter("Text")}
    assert texts == {name: f"${name}" for name in SHOWN[stage]}
    assert {tag.get("toName") for tag in page.iter() if tag.get("toName")} <= set(texts)


def test_labelling_config_rating_offers_each_verdict_with_its_own_key():
    choices = list(ElementTree.fromstring(labelling_config("verification")).iter("Choice"))
    assert [choice.get("alias") for choice in choices] == ["1", "2", "3", "4", "5", "-1"]
    assert len({choice.get("hotkey") for choice in choices}) == len(VERDICTS)


@pytest.mark.parametrize("stage", STAGES)
def test_result_of_answer_reads_back(stage):
    answer = Answer("The sport", "The place", 4)
    asked = {name: getattr(answer, name) for name in FIELDS[stage]}
    assert answer_of(result_of(stage, answer)) == Answer(**asked)


def test_answer_of_nothing_usable_is_empty():
    regions = [
        {"from_name": "rating", "value": {"choices": []}},
        {"from_name": "high", "value": {"text": ["  "]}},
        {"from_name": "other", "value": {"text": ["x"]}},
        {"from_name": "low"},
    ]
    assert answer_of(regions) == Answer()


@pytest.mark.parametrize(
    ("value", "rating"), [("4", 4), (5.0, 5), ("-1", -1), ("6", None), ("x", None), ("nan", None)]
)
def test_rating_of_value_is_on_the_scale_or_none(value, rating):
    assert rating_of(value) == rating


@pytest.mark.parametrize("stage", STAGES)
def test_guidelines_stage_is_well_formed_html_without_scripts(stage):
    text = guidelines(stage)
    ElementTree.fromstring(f"<div>{text.replace('<br>', '<br/>').replace('<hr>', '<hr/>')}</div>")
    assert "<script" not in text


def test_guidelines_conditions_number_the_six_rules():
    assert re.findall(r"<b>(\d)\. ", guidelines("conditions")) == list("123456")


@pytest.mark.parametrize("stage", STAGES)
def test_mturk_form_stage_has_a_place_for_each_column_and_field(stage):
    form = mturk_form(stage)
    assert set(re.findall(r"\$\{(\w+)\}", form)) == SHOWN[stage] - {"hints"}
    assert set(re.findall(r'<input [^>]*name="(\w+)"', form)) == set(FIELDS[stage])
    assert ("const RULES" in form) == (stage != "verification")
