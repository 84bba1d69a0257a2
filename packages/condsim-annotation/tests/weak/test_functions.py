"""Labeling functions: what they read and compare, registering them, finding them by conditions."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

from condsim.data.csts import iter_csts
from condsim.errors import InputError
from condsim_annotation.answers import answers
from condsim_annotation.weak.functions import ABSENT, graded
from condsim_annotation.weak.language import Sentence
from condsim_annotation.weak.registry import REGISTRY, Registry, labeling_function

PROJECT = Path(__file__).resolve().parents[4]
TRAIN = PROJECT.parent / "shared" / "data" / "csts-reannotated" / "train.csv"


@pytest.fixture
def registry() -> Registry:
    return Registry()


def test_labeling_function_own_is_found_and_answers(registry: Registry) -> None:
    compare = graded("mild", "severe")

    @labeling_function("severity of the incident", compare=compare, registry=registry)
    def severity(sentence: Sentence) -> str | None:
        return "severe" if "broke" in sentence.words else None

    assert answers("The incident's severity", "He broke a leg.", registry=registry) == "severe"
    assert answers("severity of the incident", "He fell.", registry=registry) is None
    with pytest.raises(InputError, match="called 'severity of the incident' already"):
        labeling_function("severity of the incident", registry=registry)(severity)


@pytest.mark.parametrize(("name", "weight"), [("", 1.0), ("of the", 1.0), ("mood", -1.0)])
def test_labeling_function_bad_option_raises(registry, name: str, weight: float) -> None:
    with pytest.raises(InputError, match="must be"):
        labeling_function(name, weight=weight, registry=registry)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda sentence: sentence.words[7], r"'mood' raised IndexError: .* for 'He fell.'"),
        (lambda sentence: "good", r"'mood' must give a label from 1 to 5, .* got 6\.0 for 'good'"),
    ],
)
def test_labeling_function_that_fails_is_named(registry: Registry, read, message: str) -> None:
    labeling_function("mood", compare=lambda *values: 6.0, registry=registry)(read)
    function = registry.find("mood")
    assert function is not None
    with pytest.raises(InputError, match=message):
        function.score(Sentence("He fell."), Sentence("He ran."))


def test_graded_values_equal_steps() -> None:
    compare = graded("none", "mild", "severe")
    assert [compare("none", value) for value in ("none", "mild", "severe")] == [5, 3, 1]
    with pytest.raises(InputError, match="each once"):
        graded("mild", "mild")


@pytest.mark.skipif(not TRAIN.is_file(), reason="the C-STS training file is not there")
def test_wordings_that_are_conditions_of_csts_are_as_many_as_the_docs_say() -> None:
    text = (
        PROJECT / "packages/condsim-annotation/src/condsim_annotation/weak/lists/functions.txt"
    ).read_text("utf-8")
    lines = text.partition("\nconditions\n")[2].splitlines()
    phrases = {phrase.strip() for line in lines for phrase in re.split(r"[,|]", line)}
    phrases = {phrase for phrase in phrases if " " in phrase and "{" not in phrase}
    conditions = {row.condition.lower().strip(" .") for row in iter_csts(TRAIN, labels=False)}
    page = " ".join((PROJECT / "papers/docs/weak-labels.md").read_text("utf-8").split())
    said = re.search(r"of the (\d+) phrases of two or more words .*?, (\d+) are conditions", page)
    assert said is not None
    assert [*map(int, said.groups())] == [len(phrases), len(phrases & conditions)]


@pytest.mark.parametrize(
    ("condition", "sentence", "expected"),
    [
        ("number of people", "Two men talk to a girl.", "three"),
        ("number of people", "A group of four women dance.", "four"),
        ("number of people", "A crowd of people watch.", "many"),
        ("number of people", "Two boys play, one of the boys laughs.", "two"),
        ("number of people", "A red bus waits.", "none"),
        ("number of people", "1,000 people dance.", "1000"),
        ("number of people", "Two thousand people dance.", "2000"),
        ("How many people there are", "Two firemen and a boy sit.", "three"),
        ("number of dogs", "Two men without dogs sit.", "none"),
        ("number of dogs", "A dog and another dog play.", "two"),
        ("number of dogs", "A man eats a hot dog.", "none"),
        ("number of children", "A boy and two girls sit.", "three"),
        ("gender of person", "A boy helps his father.", "male"),
        ("gender", "A man and a woman kiss.", "both"),
        ("age of person", "An elderly woman reads.", "elderly person"),
        ("color of dog", "A black and white dog runs.", "black and white"),
        ("color of the dog", "The dog is brown.", "brown"),
        ("color of dog", "A dog chases a red ball.", None),
        ("color of clothing", "A man in red waits.", "red"),
        ("type of animal", "A puppy sleeps beside a cat.", "dog and cat"),
        ("type of sport", "A surfer falls.", "surfing"),
        ("type of sport", "A boy sleeps.", None),
        ("type of room", "A toilet beside a sink.", "bathroom"),
        ("type of room", "A kitchen with a sofa.", "kitchen"),
        ("what the person is doing", "A man rode a horse.", "ride"),
        ("location", "A child digs on the beach.", "beach"),
        ("speed of dog", "A dog is running.", "fast"),
        ("type of instrument", "A man plays the violin.", "violin"),
        ("what the person is doing", "A woman is sitting on a bench.", "sit"),
        ("the temper of the beast", "A dog barks.", None),
    ],
)
def test_answers_sentence_expected_words(
    condition: str, sentence: str, expected: str | None
) -> None:
    assert answers(condition, sentence) == expected


@pytest.mark.parametrize(
    ("condition", "one", "two", "expected"),
    [
        ("number of people", "Two men sit.", "A man and a woman sit.", 5),
        ("number of people", "Two men sit.", "Three men sit.", 3),
        ("number of people", "A man sits.", "A crowd of people sit.", 1),
        ("number of dogs", "No dogs bark.", "A dog barks.", 1),
        ("number of dogs", "A dog barks.", "Two dogs bark.", 2),
        ("number of people", "150 people dance.", "People dance.", 2),
        ("number of people", "150 people dance.", "148 people dance.", 4),
        ("presence of dog", "There is no dog here.", "There is a dog here.", 1),
        ("presence of dog", "A man without any other dog.", "There is a dog here.", 1),
        ("presence of dog", "There is no dog here.", "There is a cat here.", None),
        ("presence of dog", "No cat, but a dog.", "There is a dog here.", 5),
        ("type of animal", "A dog barks.", "A puppy barks.", 5),
        ("type of animal", "A dog barks.", "A poodle barks.", 4),
        ("type of animal", "A dog barks.", "A cat meows.", 3),
        ("type of animal", "A dog barks.", "A horse neighs.", 2),
        ("type of animal", "A dog barks.", "A seagull cries.", 1),
        ("color of dog", "A black dog.", "A black and white dog.", 4),
        ("gender", "A man.", "A woman.", 1),
        ("gender", "A man.", "A man and a woman.", 3),
        ("age", "A baby.", "An elderly man.", 1),
    ],
)
def test_score_pair_expected_label(
    condition: str, one: str, two: str, expected: float | None
) -> None:
    function = REGISTRY.find(condition)
    assert function is not None
    assert function.score(Sentence(one), Sentence(two)) == expected
    assert function.score(Sentence(two), Sentence(one)) == expected


def test_read_attribute_absent_is_inapplicable_and_a_count_of_none_needs_both() -> None:
    color, count = REGISTRY.find("color of dog"), REGISTRY.find("number of people")
    assert color is not None
    assert count is not None
    assert color.read(Sentence("A man reads.")) is ABSENT
    assert color.read(Sentence("A dog runs.")) is None
    assert color.is_inapplicable(ABSENT, frozenset({"red"}))
    assert not color.is_inapplicable(ABSENT, None)
    assert not count.is_inapplicable(ABSENT, count.read(Sentence("A man reads.")))
    assert count.is_inapplicable(ABSENT, ABSENT)


def test_functions_are_found_by_their_wordings() -> None:
    assert len(REGISTRY) > 900
    dogs = REGISTRY.find("number of dogs")
    assert dogs is not None
    assert dogs.wordings[:3] == ("number of dogs", "The number of dogs.", "the number of dogs")
    for function in REGISTRY:
        assert function.wordings[0] == function.name
        assert REGISTRY.find(f"The {function.name}.") is REGISTRY.find(function.name)
        assert len(set(function.wordings)) == len(function.wordings)


def test_sentence_words_are_cut_at_hyphens_and_marks_are_kept() -> None:
    assert Sentence("A T-shirt, red.").words == ("a", "t", "shirt", ",", "red", ".")


def test_functions_any_sentence_scores_are_labels() -> None:
    texts = (
        "Two men in red shirts ride a brown horse on a beach.",
        "A girl eats an apple at a wooden table in a small kitchen.",
        "",
    )
    sentences = [*map(Sentence, texts)]
    for function, sentence1, sentence2 in product(REGISTRY, sentences, sentences):
        score = function.score(sentence1, sentence2)
        assert score is None or 1 <= score <= 5
        assert isinstance(function.say(function.read(sentence1)), str)
