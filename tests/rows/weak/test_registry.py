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
    ("condition", "is_same"),
    [
        ("The number of persons.", True),
        ("How many people there are", True),
        ("People count.", True),
        ("number of dogs", False),
    ],
)
def test_condition_key_wordings_one_key(condition: str, is_same: bool) -> None:
    assert (condition_key(condition) == condition_key("number of people")) == is_same


@pytest.fixture
def registry() -> Registry:
    return Registry()


def test_labelling_function_own_is_found_and_answers(registry: Registry) -> None:
    compare = graded("mild", "severe")

    @labelling_function("severity of the incident", compare=compare, registry=registry)
    def severity(sentence: Sentence) -> str | None:
        return "severe" if "broke" in sentence.words else None

    assert answers("The incident's severity", "He broke a leg.", registry=registry) == "severe"
    assert answers("severity of the incident", "He fell.", registry=registry) is None
    with pytest.raises(InputError, match="called 'severity of the incident' already"):
        labelling_function("severity of the incident", registry=registry)(severity)


@pytest.mark.parametrize(("name", "weight"), [("", 1.0), ("of the", 1.0), ("mood", -1.0)])
def test_labelling_function_bad_option_raises(registry, name: str, weight: float) -> None:
    with pytest.raises(InputError, match="must be"):
        labelling_function(name, weight=weight, registry=registry)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda sentence: sentence.words[7], r"'mood' raised IndexError: .* for 'He fell.'"),
        (lambda sentence: "good", r"'mood' must give a label from 1 to 5, .* got 6\.0 for 'good'"),
    ],
)
def test_labelling_function_that_fails_is_named(registry: Registry, read, message: str) -> None:
    labelling_function("mood", compare=lambda *values: 6.0, registry=registry)(read)
    function = registry.find("mood")
    assert function is not None
    with pytest.raises(InputError, match=message):
        function.score(Sentence("He fell."), Sentence("He ran."))


def test_graded_values_equal_steps() -> None:
    compare = graded("none", "mild", "severe")
    assert [compare("none", value) for value in ("none", "mild", "severe")] == [5, 3, 1]
    with pytest.raises(InputError, match="each once"):
        graded("mild", "mild")


def test_taxonomy_longest_phrase_wins_and_void_phrases_hide() -> None:
    tree = Taxonomy("(food)\n  dog dish, hot dog\n  bun\n! bun fight\n")
    mentions = tree.find(("a", "hot", "dog", "after", "a", "bun", "fight"))
    assert [mention.node.name for mention in mentions] == ["dog dish"]


def test_taxonomy_hint_counts_only_without_a_name() -> None:
    tree = Taxonomy("(room)\n  bathroom | sink\n  kitchen | stove\n")
    assert {hit.node.name for hit in tree.find(("stove", "sink"))} == {"kitchen", "bathroom"}
    assert {hit.node.name for hit in tree.find(("kitchen", "sink"))} == {"kitchen"}


def test_taxonomy_unknown_name_lists_near_ones() -> None:
    with pytest.raises(InputError, match="animals"):
        taxonomy("animal")


def test_forms_of_words_regular_and_irregular() -> None:
    assert [*map(plural, ("knife", "box", "fireman"))] == ["knives", "boxes", "firemen"]
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
