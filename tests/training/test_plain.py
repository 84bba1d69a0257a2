import numpy as np
import pytest

import condsim
from condsim.errors import InputError
from condsim.tasks import load_csts, load_scored_pairs
from condsim.training import (
    MixedBatchSampler,
    Recipe,
    batch_sampler,
    fit,
    load_plain,
    plain_objective,
    plain_set,
    training_set,
    used_rows,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning")

PAIRS = [(f"A dog runs {number}.", f"A cat sleeps {number}.", number % 2) for number in range(30)]


@pytest.fixture
def recipe(tmp_path, tiny_recipe):
    rows = [f"{one},{two},{score}" for one, two, score in PAIRS]
    (tmp_path / "plain.csv").write_text("\n".join(["sentence1,sentence2,score", *rows]) + "\n")
    return tiny_recipe.replaced(plain=str(tmp_path / "plain.csv"))


def test_plain_objective_keeps_what_needs_no_pairs(recipe):
    assert plain_objective(recipe) == {"mse": 1.0, "correlation": 0.5}
    only_quad = recipe.replaced(objective={"quad": 1.0})
    assert plain_objective(only_quad) == {"mse": 1.0}


def test_mixed_batches_hold_every_row_once_and_never_both_kinds(recipe):
    from torch import Generator
    from torch.utils.data import ConcatDataset

    dev = load_csts(recipe.dev)
    rows = training_set(used_rows(load_csts(recipe.train), recipe), recipe, dev=dev, separator="")
    plain = plain_set(load_plain(recipe), recipe, beside=load_csts(recipe.train), dev=dev)
    samplers = [
        batch_sampler(
            [rows, plain],
            one.dataset,
            batch_size=8,
            drop_last=False,
            seed=0,
            length_grouped=True,
        )
        for one in (rows, plain)
    ]
    joined = ConcatDataset([rows.dataset, plain.dataset])
    mixed = MixedBatchSampler(joined, samplers, Generator(), 0)
    epochs = []
    for epoch in (0, 1, 0):
        mixed.set_epoch(epoch)
        epochs.append([list(batch) for batch in mixed])
    assert epochs[0] == epochs[2] != epochs[1]
    first = len(rows.dataset)
    for batches in epochs:
        assert len(batches) == len(mixed)
        assert sorted(row for batch in batches for row in batch) == list(range(len(joined)))
        assert all(len({row < first for row in batch}) == 1 for batch in batches)


def test_fit_plain_pairs_teach_similarity_without_condition(tmp_path, recipe):
    scores = {}
    pairs = load_scored_pairs(recipe.plain)
    for name, plain in (("with", recipe.plain), ("without", None)):
        fit(recipe.replaced(plain=plain, epochs=6), tmp_path / name)
        scorer = condsim.load(str(tmp_path / name))
        found = scorer.score(pairs.sentences1, pairs.sentences2, scale="raw")
        scores[name] = float(np.mean((found - pairs.gold) ** 2))
    assert scores["with"] < scores["without"]


def test_fit_plain_interrupted_and_resumed_ends_bit_equal(
    tmp_path, recipe, weights_of, fit_interrupted
):
    recipe = recipe.replaced(epochs=3, dropout=0.1)
    fit(recipe, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        fit_interrupted(recipe, tmp_path / "stopped", step=17)
    assert fit(recipe, tmp_path / "stopped", resume=True) is not None
    assert weights_of(tmp_path / "stopped") == weights_of(tmp_path / "whole")


def test_load_plain_conditions_raises(recipe):
    assert load_plain(recipe.replaced(plain=None)) is None
    with pytest.raises(InputError, match="has conditions, and the recipe key 'plain' names pairs"):
        load_plain(recipe.replaced(plain=recipe.train))


def test_recipe_plain_other_encoder_raises():
    with pytest.raises(InputError, match="'plain' is for a bi-encoder"):
        Recipe(name="m", train="a.csv", dev="b.csv", plain="p.csv", encoder="cross-encoder")


def test_fit_plain_beside_rows_without_conditions_raises(tmp_path, recipe):
    with pytest.raises(InputError, match="and plain has none"):
        fit(
            recipe.replaced(train=recipe.plain, objective={"mse": 1.0}),
            tmp_path / "run",
        )


def test_fit_plain_with_siblings_trains_on_both(tmp_path, recipe):
    sentence = load_csts(recipe.train).sentences1[0]
    (tmp_path / "siblings.csv").write_text(f"group,text\n1,{sentence}\n1,A man plays.\n")
    siblings = {"siblings": str(tmp_path / "siblings.csv"), "sibling_rate": 1.0}
    result = fit(recipe.replaced(**siblings), tmp_path / "run")
    assert result is not None
    assert len(result.dev_spearman) == recipe.epochs
