from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from condsim.data.csts import load_applicability
from condsim.errors import InputError
from condsim.model.onnx import OnnxScorer
from condsim.training.applicability import (
    fit_head,
    fit_head_weights,
    load_extra,
    measure_applicability,
)
from condsim.types import Task

HEAD = "sentence1,sentence2,condition,label\n"


@pytest.fixture(scope="module")
def model(tiny_backbone, tmp_path_factory):
    """A random encoder: words leave traces in its embeddings."""
    from condsim.model.builders import build_bi_encoder
    from condsim.training.export import export_onnx

    folder = tmp_path_factory.mktemp("random")
    build_bi_encoder(str(tiny_backbone), max_seq_length=32).save_pretrained(str(folder / "a"))
    export_onnx(folder / "a", folder / "b", quantize=None)
    return OnnxScorer(folder / "b", threads=1)


def rows_of(number, *, name="rows", seed=0):
    """Rows about dogs and people, asked for the animal: it applies where both have a dog."""
    random = np.random.default_rng(seed)
    words, places = np.array(["dog", "man"]), np.array(["street", "table", "park", "water", "bike"])
    kinds = random.integers(2, size=(number, 2))
    texts = [
        [
            f"the {words[kind]} sits on the {random.choice(places)} {name} {row} {side}"
            for row, kind in enumerate(kinds[:, side])
        ]
        for side in range(2)
    ]
    return Task(
        name=name,
        revision="0" * 12,
        sentences1=tuple(texts[0]),
        sentences2=tuple(texts[1]),
        conditions=("animal",) * number,
        labels=(kinds.sum(axis=1) == 0).astype(np.float32),
        label_range=(0.0, 1.0),
    )


def test_measure_finds_what_the_condition_does_not_tell(model):
    report = measure_applicability(model, rows_of(160), strength=1, resamples=100)
    assert report.head.value > 0.8
    assert report.head.low > 0.6
    assert report.condition_only.value == pytest.approx(0.5, abs=0.2)  # one condition for all
    assert report.brier < report.brier_constant
    assert report.does_not_apply + int(rows_of(160).labels.sum()) == 160


def in_both_orders(rows):
    """The rows, and each again with its sentences swapped."""
    return replace(
        rows,
        sentences1=rows.sentences1 + rows.sentences2,
        sentences2=rows.sentences2 + rows.sentences1,
        conditions=rows.conditions * 2,
        labels=np.tile(rows.labels, 2),
    )


def test_measure_swapped_pair_is_no_row_to_learn_from(model):
    rows = rows_of(100)
    chance = np.random.default_rng(5).integers(2, size=100).astype(np.float32)
    rows = replace(rows, labels=chance)
    alone = measure_applicability(model, rows, strength=1, resamples=200)
    both = measure_applicability(model, in_both_orders(rows), strength=1e3, resamples=200)
    assert both.head.value == pytest.approx(0.5, abs=0.15)
    assert both.cosine.value == pytest.approx(alone.cosine.value, abs=1e-3)
    assert both.cosine.low == pytest.approx(alone.cosine.low, abs=1e-3)  # as many pairs to draw


def test_measure_few_pairs_in_both_orders_are_as_many_as_in_one(model):
    with pytest.raises(InputError, match="10 folds need as many sentence pairs"):
        measure_applicability(model, in_both_orders(rows_of(9)))


def test_measure_extra_rows_are_no_part_of_what_is_measured(model):
    report = measure_applicability(
        model, rows_of(60), extra=rows_of(200, name="more", seed=1), resamples=50
    )
    assert report.rows == 60
    assert report.both.value > report.head.value - 0.05


def test_fit_head_tells_rows_it_has_not_seen(model):
    head = fit_head(model, rows_of(160), extra=rows_of(100, name="more", seed=1), strength=1)
    assert head.facts["applies"] == int(rows_of(160).labels.sum())
    assert head.facts["extra_rows"] == "more 000000000000"
    other = rows_of(100, name="other", seed=2)
    model.head = head
    chances = model.applicability(other.sentences1, other.sentences2, other.conditions)
    applies = other.labels > 0
    assert chances[applies].mean() > chances[~applies].mean() + 0.2


def test_fit_weights_of_one_pair_by_hand():
    # One pair that applies with weight 2, and a constant feature: p q = 1 is the maximum, and the
    # penalty does not hold the constant.
    ones = np.ones((1, 1))
    weights, bias = fit_head_weights(ones, ones, np.array([True]), np.full(1, 2.0), strength=1.0)
    assert weights[0] == pytest.approx(0)
    assert bias > 5


def test_fit_head_bad_strength_refused(model):
    with pytest.raises(InputError, match=r"'strength' must be a number above 0"):
        fit_head(model, rows_of(20), strength=0)


def test_load_extra_as_many_of_each_kind_under_each_condition(tmp_path):
    applied, absent = tmp_path / "weak.csv", tmp_path / "absent.csv"
    applied.write_text(
        HEAD + "".join(f"x{n},y{n},sport,3\n" for n in range(9)) + "p,q,food,2\n", encoding="utf-8"
    )
    absent.write_text(
        HEAD + "".join(f"v{n},w{n},Sport,-1\n" for n in range(4)) + "r,s,color,-1\n",
        encoding="utf-8",
    )
    rows = load_extra([applied, absent])
    assert rows.name == "weak + absent"
    assert {text.casefold() for text in rows.conditions} == {"sport"}
    assert rows.labels.tolist() == [1] * 4 + [0] * 4
    assert len(load_extra([applied, absent], sample=4)) == 4


def test_load_extra_leaves_out_sentences_measured_on(tmp_path):
    path = tmp_path / "weak.csv"
    path.write_text(HEAD + "a,b,c,-1\nd,e,c,-1\nf,g,c,5\nh,a,c,5\n", encoding="utf-8")
    kept_apart = load_applicability(path).take(np.array([0]))
    rows = load_extra([path], exclude=kept_apart)
    assert sorted(rows.sentences1) == ["d", "f"]


def test_load_extra_no_condition_of_both_kinds_refused(tmp_path):
    path = tmp_path / "weak.csv"
    path.write_text(HEAD + "a,b,c,-1\nd,e,f,5\n", encoding="utf-8")
    with pytest.raises(InputError, match="Give both files of 'condsim build weak --absent'"):
        load_extra([path])
