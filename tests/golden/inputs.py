"""Small input files of the cases; the same on each run."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import product

_WHO = ("Two men", "A woman", "Three children", "An old man", "A girl", "Five dogs")
_ACTS = ("ride brown horses", "walk a black dog", "play soccer", "eat a red apple", "row a boat")
_PLACES = ("on a beach", "in a park", "near a lake", "in a street")
_CONDITIONS = ("number of people", "the activity", "the place", "the color")


def table(rows: Iterable[Mapping[str, object]], separator: str = ",") -> str:
    """CSV or TSV text of rows that all have the columns of the first."""
    rows = list(rows)
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), delimiter=separator, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def lines(rows: Iterable[Mapping[str, object]]) -> str:
    """JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)


SENTENCES = [f"{who} {act} {place}." for who in _WHO for act in _ACTS for place in _PLACES]


def labeled_rows(pairs: int, *, absent: int = 0) -> list[dict[str, object]]:
    """C-STS rows, two conditions a pair; each `absent`-th row has the label -1."""
    rows: list[dict[str, object]] = []
    for number in range(pairs):
        first = SENTENCES[(7 * number) % len(SENTENCES)]
        second = SENTENCES[(31 * number + 11) % len(SENTENCES)]
        for side in range(2):
            label: float = 1 + (number * (side + 2) + 3 * side) % 5
            if absent and (2 * number + side) % absent == absent - 1:
                label = -1
            rows.append(
                {
                    "sentence1": first,
                    "sentence2": second,
                    "condition": _CONDITIONS[(number + side) % len(_CONDITIONS)],
                    "label": label,
                }
            )
    return rows


def graded_rows(pairs: int) -> list[dict[str, object]]:
    """C-STS rows whose labels a good model agrees with: same or different number of people."""
    rows: list[dict[str, object]] = []
    for number in range(pairs):
        is_same = number % 2
        who = _WHO[number % len(_WHO)]
        second = who if is_same else _WHO[(number + 1) % len(_WHO)]
        act, act2 = _ACTS[number % len(_ACTS)], _ACTS[(number // 5) % len(_ACTS)]
        place = _PLACES[number % len(_PLACES)]
        texts = {"sentence1": f"{who} {act} {place}.", "sentence2": f"{second} {act2} here."}
        rows.append({**texts, "condition": "number of people", "label": 5 if is_same else 1})
        rows.append({**texts, "condition": "the activity", "label": 5 if act == act2 else 1})
    return rows


NOTED = [
    {"sentence1": first, "sentence2": second, "condition": condition, "label": label, "note": note}
    for first, second, condition, label, note in (
        ("A man throws a ball", "A girl kicks a ball", "the sport", 4, "n1"),
        ("A man throws a ball", "A dog runs", "the animal", 2, "n2"),
        ("A boy eats", "Two women eat", "the number of people", 1, "n3"),
        ("A boy eats", "Two women eat", "the activity", 5, "n4"),
    )
]
PAIRS = table(NOTED)
PAIRS_TSV = table(NOTED, "\t")
PAIRS_JSONL = lines(NOTED)
DEV = table(labeled_rows(20))
DEV_ABSENT = table(labeled_rows(40, absent=5))
EXTRA = table(
    {**row, "sentence1": f"Now {row['sentence1']}", "sentence2": f"Now {row['sentence2']}"}
    for row in labeled_rows(60, absent=3)
)
TRAIN = table(labeled_rows(60)[40:])
GRADED_MANY = table(graded_rows(240))
SETS = table({"set": f"set{n // 20}", **row} for n, row in enumerate(graded_rows(30)))
TEXTS = table(
    {"id": number, "text": text, "year": 2010 + number % 12}
    for number, text in enumerate(SENTENCES[::3])
)
NEWS = table(
    {"id": number, "text": text, "year": 2030}
    for number, text in enumerate(("Four men ride camels.", "A woman reads a book."), start=39)
)
SENTENCE_FILE = table(
    {"sentence": text, "condition": _CONDITIONS[number % 4]}
    for number, text in enumerate(SENTENCES[:9])
)
CAPTIONS = table(
    {"image_id": number // 2, "caption": text.rstrip(".")} for number, text in enumerate(SENTENCES)
)
TICKETS = table(
    {
        "text": f"{mood} news about the {topic} number {number}",
        "topic": topic,
        "mood": mood,
        "stars": number % 5,
    }
    for topic in ("billing", "app", "parcel")
    for mood in ("Good", "Bad")
    for number in range(6)
)
REVIEWS = table(
    {"text": text}
    for text in (
        "The room was warm and the staff were friendly.",
        "We waited 20 minutes for two coffees.",
        "The lift did not work on the first day.",
        "They never answered our three letters.",
        "It was cheap, but the bed was too soft.",
        "The train left at 10 and arrived at 12.",
    )
)
REWORDINGS = table(
    {"sentence1": SENTENCES[number], "sentence2": SENTENCES[number + 30]}
    | {"condition_group": "number", "condition": wording}
    for number in range(5)
    for wording in ("number of people", "How many people?", "how many there are")
)
CONDITION_ROWS = table(
    {
        "pair_id": f"p{number}",
        "sentence1": f"A fox runs {number}.",
        "sentence2": f"A hen sits {number}.",
        "condition": condition,
        "intended": intended,
        "annotator": "w1",
    }
    for number in range(2)
    for condition, intended in (("The use", "high"), ("The size", "low"))
)
PLAIN_PAIRS = table(
    {"pair_id": f"p{n}", "sentence1": f"A fox {n}.", "sentence2": f"A hen {n}."} for n in range(3)
)


def _ratings(pairs: int) -> Iterator[dict[str, object]]:
    """Rate pairs as three people and a model who mostly agree."""
    for number, (intended, condition), (rater, annotator) in product(
        range(pairs),
        (("high", "The place"), ("low", "The animal")),
        enumerate(("ann", "bob", "cleo", "model-a")),
    ):
        truth = (4 if intended == "high" else 2) + number % 2
        error = ((3 * number + 5 * rater + len(intended)) % 4 == 0) * (-1) ** number
        yield {
            "row_id": f"r{number}-{intended}",
            "pair_id": f"p{number}",
            "sentence1": f"A dog number {number} runs in the park.",
            "sentence2": f"A cat number {number} sits in the park.",
            "condition": condition,
            "intended": intended,
            "annotator": annotator,
            "label": -1 if (number + rater) % 23 == 22 else truth + error,
            "seconds": 5 + (number * 7 + rater) % 11,
            "origin": "model-a" if annotator == "model-a" else "human",
        }


RATINGS = table(_ratings(30))
