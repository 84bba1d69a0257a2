import numpy as np
import pytest
from datasets import Dataset

from condsim.data.load import load_task
from condsim.model.builders import load_backbone
from condsim.training.data import PairBatchSampler, TrainingSet, group_rows, warn_of_cuts
from condsim.training.trainer import build_run


def sampler(pair_ids, *, batch_size=6, lengths=None, seed=0):
    ids = np.asarray(pair_ids, dtype=np.int64)
    sizes = np.ones(len(ids), dtype=np.int64) if lengths is None else np.asarray(lengths)
    rows = TrainingSet(Dataset.from_dict({}), ids, sizes)
    return PairBatchSampler(rows, batch_size=batch_size, seed=seed)


def test_group_rows_group_above_batch_size_is_split():
    assert [len(g) for g in group_rows(np.zeros(5, dtype=np.int64), batch_size=2)] == [2, 2, 1]


def test_sampler_epoch_draws_every_row_once_and_keeps_pairs_together():
    ids = np.repeat(np.arange(50), 2).tolist() + list(range(50, 57))
    batches = list(sampler(ids))
    assert sorted(row for batch in batches for row in batch) == list(range(len(ids)))
    assert max(map(len, batches)) <= 6
    for batch in batches:
        held = {ids[row] for row in batch}
        assert len(batch) == sum(ids.count(pair) for pair in held)


def test_sampler_epochs_differ_have_as_many_batches_and_follow_the_seed():
    ids = np.repeat(np.arange(40), 2).tolist() + list(range(40, 45))
    drawn, same_seed, other_seed = samplers = sampler(ids), sampler(ids), sampler(ids, seed=1)
    epochs = []
    for epoch in range(3):
        for pair_sampler in samplers:
            pair_sampler.set_epoch(epoch)
        epochs.append(list(drawn))
        assert len(epochs[-1]) == len(drawn)
        assert epochs[-1] == list(same_seed) != list(other_seed)
    assert epochs[0] != epochs[1] != epochs[2]


def test_sampler_length_grouped_pads_less():
    lengths = np.repeat(np.random.default_rng(0).integers(1, 100, size=200), 2)
    batches = list(sampler(np.repeat(np.arange(200), 2), lengths=lengths))
    padded = sum(len(batch) * lengths[batch].max() for batch in batches)
    assert padded < 0.75 * len(batches) * 6 * 90


LONG = "The man throws a red ball and runs in the street. " * 8


@pytest.mark.parametrize("encoder", ["bi-encoder", "tri-encoder", "cross-encoder"])
def test_inputs_over_the_limit_are_counted(tmp_path, tiny_recipe, caplog, encoder):
    rows = ["sentence1,sentence2,condition,label"]
    rows += [f"{LONG},A dog {number}.,the sport,{1 + number % 5}" for number in range(6)]
    (tmp_path / "long.csv").write_text("\n".join(rows) + "\n")
    recipe = tiny_recipe.replaced(
        train=str(tmp_path / "long.csv"), encoder=encoder, objective={"mse": 1.0}
    )
    train, dev = load_task(recipe.train), load_task(recipe.dev)
    build_run(recipe, train, dev, tmp_path / "run")
    # Each row is one input of a cross-encoder; the other encoders read the long text once.
    cut = {"cross-encoder": "6 of 6", "bi-encoder": "1 of 7", "tri-encoder": "1 of 8"}[encoder]
    expected = f"{cut} different inputs to train on have more than 48 tokens"
    assert expected in caplog.text


def test_inputs_of_few_characters_and_many_tokens_are_counted(tiny_roberta_backbone, caplog):
    tokenizer = load_backbone(str(tiny_roberta_backbone)).tokenizer
    warn_of_cuts(["\u72d7" * 20, "a dog"], tokenizer, 48)  # three tokens a character
    assert "1 of 2 different inputs to train on have more than 48 tokens" in caplog.text
