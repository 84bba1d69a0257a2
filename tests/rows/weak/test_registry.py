"""Registering functions, finding them by conditions, and trees of words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from condsim.data.csts import iter_csts
from condsim.errors import InputError
from condsim.rows.teach import answers
from condsim.rows.weak.functions import condition_key, graded
from condsim.rows.weak.language import Sentence, Taxonomy, plural, taxonomy, verb_forms
from condsim.rows.weak.registry import Registry, labelling_function

PROJECT = Path(__file__).resolve().parents[3]
TRAIN = PROJECT.parent / "shared" / "data" / "csts-reannotated" / "train.csv"


@pytest.mark.parametrize(
    "condition",
    ["number of people", "The number of persons.", "How many people there are", "People count."],
)
def test_condition_key_wordings_one_key(condition: str) -> None:
    assert condition_key(condition) == condition_key("number of people")


def test_condition_key_other_attribute_other_key() -> None:
    assert condition_key("color of the dog") != condition_key("number of dogs")


def test_labelling_function_own_is_found_and_answers() -> None:
    mine = Registry()

    @labelling_function("severity of the incident", compare=graded("mild", "severe"), registry=mine)
    def severity(sentence: Sentence) -> str | None:
        return "severe" if "broke" in sentence.words else None

    assert answers("The incident's severity", "He broke a leg.", registry=mine) == "severe"
    assert answers("severity of the incident", "He fell.", registry=mine) is None


def test_add_name_twice_raises() -> None:
    mine = Registry()
    labelling_function("mood", registry=mine)(lambda sentence: None)
    with pytest.raises(InputError, match="called 'mood' already"):
        labelling_function("mood", registry=mine)(lambda sentence: None)


@pytest.mark.parametrize(("name", "weight"), [("", 1.0), ("of the", 1.0), ("mood", -1.0)])
def test_labelling_function_bad_option_raises(name: str, weight: float) -> None:
    with pytest.raises(InputError, match="must be"):
        labelling_function(name, weight=weight, registry=Registry())


def test_labelling_function_that_raises_is_named() -> None:
    mine = Registry()

    @labelling_function("first mood", registry=mine)
    def mood(sentence: Sentence) -> str:
        return sentence.words[7]

    found = mine.find("first mood")
    assert found is not None
    with pytest.raises(InputError, match=r"'first mood' raised IndexError: .* for 'He fell.'"):
        found.read(Sentence("He fell."))


def test_compare_label_out_of_range_raises() -> None:
    mine = Registry()
    labelling_function("mood", compare=lambda one, two: 6.0, registry=mine)(lambda sentence: "good")
    found = mine.find("mood")
    assert found is not None
    with pytest.raises(
        InputError, match=r"'mood' must give a label from 1 to 5, .* got 6\.0 for 'good'"
    ):
        found.score(Sentence("He fell."), Sentence("He ran."))


def test_graded_values_equal_steps() -> None:
    compare = graded("none", "mild", "severe")
    assert [compare("none", other) for other in ("none", "mild", "severe")] == [5, 3, 1]
    with pytest.raises(InputError, match="each once"):
        graded("mild", "mild")


def test_taxonomy_longest_phrase_wins_and_void_phrases_hide() -> None:
    tree = Taxonomy("(food)\n  dog dish, hot dog\n  bun\n! bun fight\n")
    found = tree.find(("a", "hot", "dog", "after", "a", "bun", "fight"))
    assert [hit.node.name for hit in found] == ["dog dish"]


def test_taxonomy_hint_counts_only_without_a_name() -> None:
    tree = Taxonomy("(room)\n  bathroom | sink\n  kitchen | stove\n")
    assert {hit.node.name for hit in tree.find(("stove", "sink"))} == {"kitchen", "bathroom"}
    assert {hit.node.name for hit in tree.find(("kitchen", "sink"))} == {"kitchen"}


def test_mentions_two_trees_of_one_name_are_told_apart() -> None:
    sentence = Sentence("A dog chases a cat.")
    found = [sentence.mentions(Taxonomy(word)) for word in ("dog", "cat")]
    assert [hit.node.name for hits in found for hit in hits] == ["dog", "cat"]


@pytest.mark.parametrize(
    ("text", "message"),
    [("a\n    b\n", "must be indented"), ("a\n  b\n  b\n", "occurs twice")],
)
def test_taxonomy_bad_file_raises(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Taxonomy(text)


def test_taxonomy_unknown_name_lists_near_ones() -> None:
    with pytest.raises(InputError, match="animals"):
        taxonomy("animal")
    with pytest.raises(InputError, match="'dog'"):
        taxonomy("animals")["dogg"]


@pytest.mark.parametrize(
    ("noun", "expected"), [("knife", "knives"), ("box", "boxes"), ("fireman", "firemen")]
)
def test_plural_noun_expected(noun: str, expected: str) -> None:
    assert plural(noun) == expected


def test_verb_forms_doubled_and_irregular() -> None:
    assert {"run", "runs", "running", "ran"} == set(verb_forms("run"))
    assert {"ride", "rides", "riding", "rode", "ridden"} == set(verb_forms("ride"))


@pytest.mark.skipif(not TRAIN.is_file(), reason="the C-STS training file is not there")
def test_wordings_that_are_conditions_of_csts_are_as_many_as_the_docs_say() -> None:
    text = (PROJECT / "src/condsim/rows/weak/lists/functions.txt").read_text("utf-8")
    lines = text.partition("\nconditions\n")[2].splitlines()
    phrases = {phrase.strip() for line in lines for phrase in re.split(r"[,|]", line)}
    phrases = {phrase for phrase in phrases if " " in phrase and "{" not in phrase}
    conditions = {row.condition.lower().strip(" .") for row in iter_csts(TRAIN, labels=False)}
    page = " ".join((PROJECT / "papers/docs/weak-labels.md").read_text("utf-8").split())
    said = re.search(r"of the (\d+) phrases of two or more words .*?, (\d+) also stand", page)
    assert said is not None
    assert [*map(int, said.groups())] == [len(phrases), len(phrases & conditions)]
