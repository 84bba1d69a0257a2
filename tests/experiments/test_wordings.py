from __future__ import annotations

import csv
import random
from collections import defaultdict

import pytest
from experiments.wordings import reworded, write_wordings

from condsim.tasks import held_out_texts, load_rewordings, text_digest


def drawn(condition: str) -> set[str]:
    draw = random.Random(0)
    return {reworded(condition, draw) for _ in range(300)}


@pytest.mark.parametrize(
    ("condition", "some"),
    [
        ("number of dogs", {"How many dogs are there?", "dogs count", "the number of dogs"}),
        ("The gender of the player.", {"Is the player a man or a woman?", "sex of the player"}),
        ("color of boats", {"What color are the boats?", "which color the boats have"}),
        (
            "attitude to strangers",
            {"What is the attitude to strangers?", "the attitude to strangers"},
        ),
        ("weather", {"How is the weather?", "the weather?"}),
        ("whether it works", {"whether it works?", "Whether it works."}),
    ],
)
def test_reworded_conditions_gives_their_forms(condition, some):
    assert some <= drawn(condition)


def test_write_wordings_keeps_labels_and_leaves_out_what_is_measured(tmp_path):
    rows, held_out = tmp_path / "rows.csv", tmp_path / "held-out.sha256"
    lines = [
        f"A dog {row} runs,A cat {row} sleeps,number of people,{1 + row % 5}" for row in range(60)
    ]
    rows.write_text("\n".join(["sentence1,sentence2,condition,label", *lines]) + "\n", "utf-8")
    held_out.write_text(text_digest("A dog 7 runs").hex() + "\n", "utf-8")
    output = tmp_path / "wordings.csv"
    write_wordings([rows], output, rows=1000, exclude=held_out_texts([held_out]))
    groups = defaultdict(list)
    for row in csv.DictReader(output.read_text(encoding="utf-8").splitlines()):
        groups[row["sentence1"], float(row["label"])].append(row["condition"])
    assert len(groups) == 59
    assert not any(sentence == "A dog 7 runs" for sentence, _ in groups)
    assert all(label == 1 + int(sentence.split()[2]) % 5 for sentence, label in groups)
    assert all(len(set(wordings)) == len(wordings) in (2, 3) for wordings in groups.values())
    measured = set(load_rewordings().conditions)
    made = {wording for wordings in groups.values() for wording in wordings} - {"number of people"}
    assert len(made) > 5
    assert not made & measured
