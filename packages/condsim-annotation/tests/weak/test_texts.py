"""Functions on texts of any kind: numbers, times, dates, opinions and opposites."""

from __future__ import annotations

import tracemalloc

import pytest

pytest.importorskip("text_to_num", exc_type=ImportError)
pytest.importorskip("vaderSentiment")

from condsim_annotation.answers import answers
from condsim_annotation.weak.language import Sentence
from condsim_annotation.weak.quantities import quantities
from condsim_annotation.weak.registry import REGISTRY
from condsim_annotation.weak.texts import words_of_aspect


@pytest.mark.parametrize(
    ("condition", "text", "answer"),
    [
        ("the opinion about the food", "The staff was rude but the food is delicious.", "good"),
        ("the opinion about the staff", "The staff was rude but the food is delicious.", "bad"),
        ("opinion of the service", "The service was not good at all.", "bad"),
        ("what the writer thinks of the room", "No complaints, and a lovely room.", "good"),
        ("overall opinion", "I would never call this a good phone.", "bad"),
        ("the opinion about the price", "It was not overpriced.", "good"),
        ("overall opinion", "It was not great, nor good.", "bad"),
        ("the opinion about the room", "Nothing was broken, great room.", "good"),
        ("the opinion about the food", "The food is not only delicious but cheap.", "good"),
        ("direction of the change", "No, sales increased.", "increase"),
        ("price", "Breakfast is €14 a head.", "14"),
        ("how much it costs", "It cost me twelve hundred dollars.", "1200"),
        ("duration", "The refund took two and a half weeks.", "2.5"),
        ("how long it took", "A 12-year-old boy won.", None),
        ("the number of seats", "Book three seats for tonight.", "3"),
        ("number of tickets", "We sold twenty-five cheap tickets.", "25"),
        ("number of guests", "Two rooms with guests.", None),
        ("number of baths", "3 beds and baths", "3"),
        ("how many vouchers they sent", "A dozen cheap vouchers.", "12"),
        ("star rating", "Five out of six stars from me.", "5"),
        ("the time", "Wake me at half past six.", "6:30"),
        ("appointment time", "See you at quarter to nine in the evening", "20:45"),
        ("departure time", "It leaves at 18:30 sharp.", "18:30"),
        ("weekday", "The shop is closed on Mondays.", "monday"),
        ("date", "See you on Friday, May 3rd.", "friday may 3"),
        ("when it happened", "You may go now", "now"),
        ("date", "Order number 120456.", None),
        ("date", "Lead peaked in the 1970s.", "1970"),
        ("month", "Maybe you may like it.", None),
        ("month", "It may rain in May.", "may"),
        ("the release year", "A game from 1998.", "1998"),
        ("direction of the change", "Sales did not increase.", "decrease"),
        ("direction of the change", "Sales didn't increase.", "decrease"),
        ("opinion about the food", "The food isn\u2019t good.", "bad"),
        ("the time", "The train left at 12:30 am.", "0:30"),
        ("the time", "We ate at 12:30 pm.", "12:30"),
        ("the time", "They came at twelve o'clock at night.", "0:00"),
        ("the time", "Meet me at 5 pm tonight.", "17:00"),
        ("the time", "Open from 9 to 5.", "9:00"),
        ("the time", "Open 9:15 to 10.", "9:15"),
        ("the time", "See you at ten to five.", "4:50"),
        ("the time", "It was eight minutes to six.", "5:52"),
        ("the time", "On a scale of 1 to 5.", None),
        ("the time", "It costs $12.50.", None),
        ("the time", "It weighs 123.45 kg.", None),
        ("the time", "A table for 4.", None),
        ("the time", "It starts at 18.30.", "18:30"),
        ("the time", "It starts 4.50 pm.", "16:50"),
        ("the time", "The 14.32 to Leeds is late.", "14:32"),
        ("the time", "It rang at fourteen o'clock.", "14:00"),
        ("date", "It opens on May 03.", "may 3"),
        ("the decision", "The appeal was dismissed.", "rejected"),
    ],
)
def test_answers_text_reads_the_value(condition: str, text: str, answer: str | None) -> None:
    assert answers(condition, text) == answer


@pytest.mark.parametrize(
    ("condition", "one", "two", "label"),
    [
        ("time", "Come at 18:30.", "Come at half past six.", 5),
        ("time", "Come at 6 am.", "Come at 6 pm.", 1),
        ("time", "Come at 6:00.", "Come at 6:20.", 4),
        ("time", "It rang at night.", "It rang at midnight.", 3.5),
        ("time", "The coffee costs $4.50.", "It starts at 4:50.", None),
        ("time", "Open from 9 to 5.", "Open from 9 to 6.", 5),
        ("price", "It was fifty euros.", "It was 50 euros.", 5),
        ("price", "It was at least 50 euros.", "It was 50 euros.", 4),
        ("price", "It was at least 50 euros.", "It was at most 50 euros.", 3),
        ("price", "It was 50 euros.", "It was 25 euros.", 2),
        ("price", "It was 2 grand.", "It was 2 dollars.", 1),
        ("number", "It took two hours.", "It cost 7200 dollars.", None),
        ("number", "It cost 20 dollars.", "It cost 20.", 5),
        ("number", "It is -5 degrees.", "It is minus five degrees.", 5),
        ("number", "It is \u22125 degrees.", "It is -4 degrees.", 3),
        ("number", "It takes 3-5 days.", "It takes 3 days.", 5),
        ("rating", "3 out of 5", "6 out of 10", 5),
        ("rating", "4/5", "eighty out of a hundred", 5),
        ("rating", "4 out of 5", "4 out of 6", 5),
        ("duration", "It took two weeks.", "It took 14 days.", 5),
        ("duration", "It took two weeks.", "It was quick.", None),
        ("date", "on May 3rd", "on 3 May", 5),
        ("date", "on Friday, May 3rd", "on May 3rd", 4),
        ("date", "on Friday", "tomorrow", 2),
        ("year", "in 1990", "in 1994", 3),
        ("opinion about the food", "Great food.", "The food was awful.", 1),
        ("direction of the change", "Prices went up.", "Costs have risen.", 5),
    ],
)
def test_score_two_texts_worked_by_hand(
    condition: str, one: str, two: str, label: float | None
) -> None:
    function = REGISTRY.find(condition)
    assert function is not None
    assert function.score(Sentence(one), Sentence(two)) == label


def test_find_condition_on_captions_keeps_its_function() -> None:
    found = REGISTRY.find("the number of dogs")
    assert found is not None
    assert found.family == "number of animal"
    assert REGISTRY.find("What a day it was") is None


@pytest.mark.slow
def test_answers_long_texts_are_not_all_held() -> None:
    answers("the opinion about the food", "The food is good.")
    tracemalloc.start()
    for number in range(40):
        answers("the opinion about the food", f"{number} food. " + "good room " * 1900)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 20e6  # bytes; 34e6 with what is known of each word
    for cached in (words_of_aspect, quantities):
        assert (cached.cache_parameters()["maxsize"] or 1e9) <= 256
