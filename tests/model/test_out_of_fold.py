from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from condsim.errors import InputError
from condsim.evaluation.correlation import spearman
from condsim.model import baselines as module
from condsim.model.baselines import out_of_fold
from condsim.types import Task


def make_task(labels, conditions):
    n = len(labels)
    return Task(
        name="tiny",
        revision="0123456789ab",
        sentences1=tuple(f"Lamp {row // 2} is on." for row in range(n)),
        sentences2=tuple(f"Lamp {row // 2} is off." for row in range(n)),
        conditions=tuple(conditions),
        labels=np.asarray(labels, dtype=np.float32),
    )


def random_task(*, rows=60, seed=0):
    generator = np.random.default_rng(seed)
    conditions = generator.choice(["colour", "number", "purpose", "size"], size=rows)
    return make_task(generator.integers(1, 6, size=rows), conditions)


def test_out_of_fold_rows_are_predicted_by_fits_without_their_pair(monkeypatch):
    task, learnt = random_task(rows=20), []
    make = module.baseline

    def spy(name, *, train):
        learnt.append(np.flatnonzero(train.valid))
        return make(name, train=train)

    monkeypatch.setattr(module, "baseline", spy)
    out_of_fold(task, folds=5)
    assert len(learnt) == 5
    left_out = [np.setdiff1d(np.arange(20), rows) for rows in learnt]
    # every row is left out once, always together with the other row of its pair
    assert sorted(np.concatenate(left_out).tolist()) == list(range(20))
    for rows in left_out:
        assert rows.size == 4
        assert (rows[::2] + 1 == rows[1::2]).all()


def test_out_of_fold_swapped_pair_is_left_out_with_it():
    task = random_task(rows=100)
    both = replace(
        task,
        sentences1=task.sentences1 + task.sentences2,
        sentences2=task.sentences2 + task.sentences1,
        conditions=task.conditions * 2,
        labels=np.tile(task.labels, 2),
    )
    labels = both.labels.copy()
    labels[:2] = 6 - labels[:2]  # rows of one pair; those of the swapped one may not learn of it
    for name in ("condition-only", "sentences-only"):
        before = out_of_fold(both, name=name)
        after = out_of_fold(replace(both, labels=labels), name=name)
        assert (before[[0, 1, 100, 101]] == after[[0, 1, 100, 101]]).all()
        assert (before != after).any()
    assert abs(spearman(out_of_fold(both, name="sentences-only"), both.labels)) < 0.3  # chance


def test_out_of_fold_own_label_changes_nothing():
    task = random_task()
    labels = task.labels.copy()
    labels[[4, 5]] = 6 - labels[[4, 5]]
    before, after = out_of_fold(task), out_of_fold(replace(task, labels=labels))
    assert (before[[4, 5]] == after[[4, 5]]).all()
    assert (before != after).any()


def test_out_of_fold_finds_what_conditions_tell():
    conditions = ["colour", "number"] * 30
    predictions = out_of_fold(make_task([5, 1] * 30, conditions))
    assert predictions.dtype == np.float32
    assert predictions[::2].min() > 0.6 > 0.4 > predictions[1::2].max()


def test_out_of_fold_row_order_changes_nothing():
    task = random_task()
    order = np.random.default_rng(1).permutation(60)
    shuffled = replace(
        task,
        sentences1=tuple(task.sentences1[row] for row in order),
        sentences2=tuple(task.sentences2[row] for row in order),
        conditions=tuple(task.conditions[row] for row in order),
        labels=task.labels[order],
    )
    np.testing.assert_allclose(out_of_fold(shuffled), out_of_fold(task)[order], atol=1e-6)


def test_out_of_fold_unlabelled_rows_are_predicted_and_not_learnt_from():
    task = random_task()
    labels = task.labels.copy()
    labels[:10] = np.nan
    assert np.isfinite(out_of_fold(replace(task, labels=labels))).all()
    assert out_of_fold(replace(task, labels=np.full(60, np.nan, np.float32))).tolist() == [0.5] * 60


def test_out_of_fold_one_pair_is_the_middle_of_the_scale():
    assert out_of_fold(make_task([5, 1], ["colour", "size"])).tolist() == [0.5, 0.5]


def test_out_of_fold_one_fold_is_an_error():
    with pytest.raises(InputError, match=r"folds must be at least 2\. Got 1"):
        out_of_fold(random_task(), folds=1)


def test_out_of_fold_unknown_name_is_an_error():
    with pytest.raises(InputError, match="Unknown baseline"):
        out_of_fold(random_task(), name="sentence-only")
