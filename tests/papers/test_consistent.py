from __future__ import annotations

import csv
import json

import numpy as np
import pytest

pytest.importorskip("sentence_transformers")

from papers.consistent import WORDINGS, read_wordings, shared_vectors, write_consistent

from condsim.data.held_out import held_out_texts, text_digest
from condsim.data.rewordings import load_rewordings
from condsim.model.builders import build_bi_encoder
from condsim.model.torch import EncoderScorer

PAIRS = """\
hotels ||| The room was loud. ||| A quiet night. ||| the noise = 1 ; the room = 3
hotels ||| We paid 90 euros. ||| It cost ninety. ||| price = 5 ; the mood = 1
trains ||| The train was late. ||| It left on time. ||| the delay = 1 ; the place = 4
"""


@pytest.fixture
def inputs(tmp_path):
    """Inputs of three written pairs, of which one text is held out."""
    written, held_out = (tmp_path / name for name in ("w.txt", "h.sha256"))
    written.write_text(PAIRS, encoding="utf-8")
    held_out.write_text(text_digest("It left on time.").hex() + "\n", encoding="utf-8")
    wordings = {"price": ["How much was it?", "cost"], "the delay": ["lateness"], "unused": ["x"]}
    output = tmp_path / "inputs.csv"
    excluded = held_out_texts([held_out])
    write_consistent([written], output, wordings=wordings, exclude=excluded)
    return output


def rows_of(path):
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def test_write_consistent_groups_hold_one_text_under_all_wordings(inputs):
    groups = {}
    for row in rows_of(inputs):
        groups.setdefault(row["group"], []).append(row)
    assert all(len({row["sentence"] for row in rows}) == 1 for rows in groups.values())
    under = {(rows[0]["sentence"], rows[0]["condition"]): rows for rows in groups.values()}
    texts = {text for text, condition in under if condition == "price"}
    assert texts == {"We paid 90 euros.", "It cost ninety.", "The room was loud.", "A quiet night."}
    wordings = [row["condition"] for row in under["It cost ninety.", "price"]]
    assert wordings[:3] == ["price", "How much was it?", "cost"]
    assert len(wordings) == 4
    assert "price" in wordings[3].lower()


def test_write_consistent_leaves_out_what_is_held_out_and_conditions_without_texts(inputs):
    rows = rows_of(inputs)
    assert not any(row["sentence"] == "It left on time." for row in rows)
    assert not any(row["condition"] in ("unused", "x", "the mood") for row in rows)


def test_shared_vectors_are_the_mean_of_their_group(inputs, tiny_backbone):
    encoder = build_bi_encoder(str(tiny_backbone), max_seq_length=48)
    scorer = EncoderScorer(encoder, name="tiny")
    vectors = shared_vectors(inputs, scorer)
    rows = rows_of(inputs)
    first = [number for number, row in enumerate(rows) if row["group"] == rows[0]["group"]]
    own = scorer.encode([rows[n]["sentence"] for n in first], [rows[n]["condition"] for n in first])
    mean = own.mean(axis=0)
    expected = mean / np.linalg.norm(mean)
    np.testing.assert_allclose(vectors[first], np.tile(expected, (len(first), 1)), atol=1e-5)


def test_read_wordings_has_none_that_robustness_measures():
    measured = {text_digest(wording) for wording in load_rewordings().conditions}
    found = read_wordings()
    assert len(found) > 4000
    assert all(condition not in others for condition, others in found.items())
    assert not measured & {text_digest(w) for others in found.values() for w in others}


def test_wordings_of_training_are_not_those_of_dev():
    lines = map(json.loads, WORDINGS.read_text(encoding="utf-8").splitlines())
    trained = {one["condition"].lower() for one in lines}
    dev = load_rewordings(WORDINGS.with_name("dev.csv"))
    assert not trained & {condition.lower() for condition in dev.condition_groups}
