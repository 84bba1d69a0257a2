"""Recipes with sources: mixed batches of whole groups, one encoding, one loss."""

from __future__ import annotations

import json
from itertools import combinations, islice

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import condsim
from condsim.data.load import load_task
from condsim.errors import InputError
from condsim.training.mixture import SourceBatchSampler, SourceCollator, read_mixture
from condsim.training.objective_loss import MixedLoss
from condsim.training.recipe import Recipe
from condsim.training.run import fit
from condsim.training.trainer import batches_per_epoch, build_model

pytestmark = pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning")

THINGS = ("ball", "bike", "table", "street", "park", "water")


def write_groups(path, *, groups=12):
    """Groups of four texts and two criteria: six pairs each, alike or different."""
    lines = ["sentence1,sentence2,condition,label,criterion,group,set"]
    for group in range(groups):
        texts = [
            f"A {THINGS[(group + k) % 6]} is {('red', 'blue')[k % 2]} {group}." for k in range(4)
        ]
        for one, two in combinations(range(4), 2):
            for criterion, alike in (("color", (one - two) % 2 == 0), ("thing", one == two)):
                label = 5 if alike else 1
                condition = f"the {criterion}" if group % 2 else criterion
                row = (texts[one], texts[two], condition, label, criterion, f"g{group}", "made")
                lines.append(",".join(map(str, row)))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def recipe(tmp_path, tiny_recipe) -> Recipe:
    write_groups(tmp_path / "groups.csv")
    plain = [f"A dog runs {n}.,A cat sleeps {n}.,{n % 2}" for n in range(30)]
    (tmp_path / "plain.csv").write_text("\n".join(["sentence1,sentence2,score", *plain]) + "\n")
    inputs = [f"the animal,A dog runs {n}." for n in range(20)]
    (tmp_path / "inputs.csv").write_text("\n".join(["condition,sentence", *inputs]) + "\n")
    vectors = np.random.default_rng(0).normal(size=(20, 48)).astype(np.float16)
    np.save(tmp_path / "vectors.npy", vectors)
    return tiny_recipe.replaced(
        objective={"mse": 1.0, "correlation": 0.5, "ranking": 1.0},
        batch_size=24,
        sources={
            "groups": {"file": str(tmp_path / "groups.csv"), "share": 2.0},
            "plain": {"file": str(tmp_path / "plain.csv"), "share": 0.5},
            "teacher": {
                "file": str(tmp_path / "inputs.csv"),
                "vectors": str(tmp_path / "vectors.npy"),
                "share": 0.5,
            },
        },
    )


def mixture_of(recipe):
    return read_mixture(
        load_task(recipe.train),
        recipe.mixed_sources,
        order=recipe.order,
        batch_size=recipe.batch_size,
        dimension=32,
    )


@pytest.fixture
def mixture(recipe):
    return mixture_of(recipe)


def draw(mixture, *, batches=200, epoch=0, seed=0, batch_size=24):
    sampler = SourceBatchSampler(mixture, batch_size=batch_size, batches=batches, seed=seed)
    sampler.set_epoch(epoch)
    return list(sampler)


def inputs_in(mixture, items):
    columns = mixture.columns
    return {int(columns[side][item]) for item in items for side in ("first", "second")}


def test_read_mixture_parts_are_the_recipes_objective_and_those_of_their_own(mixture):
    assert dict(mixture.parts) == {
        "train": {"mse": 1.0, "correlation": 0.5, "ranking": 1.0},
        "plain": {"mse": 1.0, "correlation": 0.5},
        "teacher": {"relations": 1.0},  # 48 dimensions against 32
    }
    assert [len(one.items) for one in mixture.units.values()] == [40, 12, 30, 20]
    assert mixture.facts["groups"]["rows"] == 12 * 12
    # Four texts under two conditions
    assert mixture.units["groups"].costs.tolist() == [8] * 12


def test_read_mixture_balance_weighs_alike_and_different_rows(recipe, tmp_path):
    rows = {}
    for balance in (0.0, 0.5, 1.0):
        source = {"file": str(tmp_path / "groups.csv"), "balance": balance, "weight": 3.0}
        changed = recipe.replaced(sources={"groups": source})
        mixture = mixture_of(changed)
        items = mixture.units["groups"].items[0]
        rows[balance] = mixture.columns["weights"][items].tolist()
        assert set(mixture.columns["weights"][mixture.units["train"].items[0]]) == {1.0}
    # color: 2 pairs alike, 4 different; thing: 6 different
    assert set(rows[0.0]) == {3.0}
    assert sorted(set(rows[0.5])) == pytest.approx([3 / n**0.5 for n in (6, 4, 2)])
    assert sum(rows[1.0]) == pytest.approx(3 * 3, rel=1e-3)


def test_read_mixture_same_criterion_in_other_words_is_one_list(mixture):
    items = mixture.units["groups"].items[1]
    assert len(set(mixture.columns["list_ids"][items])) == 2
    assert set(mixture.columns["list_ids"][mixture.units["train"].items[0]]) == {-1}


def test_read_mixture_source_of_no_whole_unit_raises(recipe):
    groups = recipe.sources["groups"].replaced(rows=5)  # each group has 12
    recipe = recipe.replaced(sources={"groups": groups})
    with pytest.raises(InputError, match=r"'groups' has nothing to train on.*'rows'"):
        mixture_of(recipe)


def test_sampler_batches_have_the_shares_and_whole_units(mixture):
    batches = draw(mixture)
    sizes = [len(inputs_in(mixture, batch)) for batch in batches]
    assert np.mean(sizes) == pytest.approx(24, rel=0.03)
    owner = {item: name for name, one in mixture.units.items() for u in one.items for item in u}
    counts = dict.fromkeys(mixture.units, 0)
    unit_of = {
        item: (name, number)
        for name, one in mixture.units.items()
        for number, unit in enumerate(one.items)
        for item in unit.tolist()
    }
    for batch in batches:
        for name in counts:
            counts[name] += len(inputs_in(mixture, [i for i in batch if owner[i] == name]))
        for name, number in {unit_of[item] for item in batch}:
            assert set(mixture.units[name].items[number].tolist()) <= set(batch)
    total = sum(counts.values())
    shares = {name: count / total for name, count in counts.items()}
    assert shares == pytest.approx(
        {"train": 0.25, "groups": 0.5, "plain": 0.125, "teacher": 0.125}, abs=0.02
    )
    assert {owner[item] for item in batches[5]} == set(mixture.units)


def test_sampler_each_pass_draws_every_unit_once(mixture):
    items = [item for batch in draw(mixture) for item in batch]
    of_train = set(np.concatenate(mixture.units["train"].items).tolist())
    drawn = [item for item in items if item in of_train]
    assert set(drawn[: len(of_train)]) == of_train
    assert drawn[: len(of_train)] != drawn[len(of_train) : 2 * len(of_train)]


def test_sampler_epochs_go_on_where_the_one_before_stopped(mixture):
    whole = draw(mixture, batches=30)
    assert [draw(mixture, batches=10, epoch=epoch) for epoch in range(3)] == [
        list(islice(whole, start, start + 10)) for start in (0, 10, 20)
    ]
    assert draw(mixture, batches=30, seed=1) != whole


def test_sampler_unit_above_the_batch_is_cut(recipe):
    mixture = mixture_of(recipe.replaced(batch_size=6))
    assert mixture.units["groups"].costs.max() <= 6
    assert sum(map(len, mixture.units["groups"].items)) == 12 * 12


def features_of(batch):
    """Sub-batches and labels, as the trainer of sentence-transformers takes a batch apart."""
    labels = batch.pop("label")
    parts: dict[str, dict[str, object]] = {}
    for key, value in batch.items():
        name, _, rest = key.partition("_")
        parts.setdefault(name, {})[rest] = value
    return list(parts.values()), labels


def one_by_one(features):
    """The same inputs in batches of one, without padding."""
    for one in features:
        for row, mask in enumerate(one["attention_mask"].bool()):
            yield {
                key: value[row : row + 1, mask] if isinstance(value, torch.Tensor) else value
                for key, value in one.items()
            }


def gradients_of(model, terms):
    model.zero_grad()
    sum(terms.values()).backward()
    return {name: weight.grad for name, weight in model.named_parameters() if weight.requires_grad}


def test_collator_one_encoding_gives_the_loss_and_gradients_of_the_plain_way(recipe):
    recipe = recipe.replaced(batch_size=120)
    model = build_model(recipe.replaced(dropout=0.0))
    mixture = mixture_of(recipe)
    loss = MixedLoss(model, mixture.parts)
    items = draw(mixture, batches=1, batch_size=120)[0]
    batch = SourceCollator(mixture, model.preprocess)([{"item": item} for item in items])
    features, labels = features_of(batch)
    assert len(features) > 2
    assert sum(len(one["input_ids"]) for one in features) == len(inputs_in(mixture, items))
    terms = loss(features, labels)
    assert set(terms) == {
        *("mse", "correlation", "ranking"),
        *("plain-mse", "plain-correlation", "teacher-relations"),
    }
    gradients = gradients_of(model, terms)
    plain = loss(list(one_by_one(features)), labels)
    for name, value in terms.items():
        assert value.item() == pytest.approx(plain[name].item(), rel=1e-4, abs=1e-6)
    for name, gradient in gradients_of(model, plain).items():
        torch.testing.assert_close(gradient, gradients[name], rtol=1e-3, atol=1e-5)

    # Both sides of every row by themselves, without any table
    rows = [item for item in items if mixture.columns["parts"][item] == 0]
    first, second = (
        torch.cat(
            [
                model(model.preprocess([mixture.inputs[number]]))["sentence_embedding"]
                for number in mixture.columns[side][rows]
            ]
        )
        for side in ("first", "second")
    )
    errors = F.cosine_similarity(first, second) - torch.from_numpy(mixture.columns["gold"][rows])
    weights = torch.from_numpy(mixture.columns["weights"][rows])
    mse = (weights * errors**2).sum() / weights.sum()
    assert terms["mse"].item() == pytest.approx(mse.item(), rel=1e-4)


@pytest.mark.slow
def test_fit_three_sources_killed_and_resumed_ends_bit_equal(recipe, check_killed_and_resumed):
    recipe = recipe.replaced(
        steps=24, epochs=3, checkpoint_steps=3, dropout=0.1, gradient_accumulation=2
    )
    # An epoch has 8 steps: killed in the middle of the second
    run = check_killed_and_resumed(recipe, "checkpoint-1[25]")
    history = json.loads((run / "training.json").read_text())
    assert list(history["sources"]) == ["train", "groups", "plain", "teacher"]
    assert history["sources"]["teacher"]["rows"] == 20
    assert "mixed with: groups, plain, teacher)" in (run / "README.md").read_text()


def test_fit_vectors_that_changed_are_not_resumed(tmp_path, recipe, fit_interrupted):
    recipe = recipe.replaced(steps=6, epochs=2, checkpoint_steps=2)
    with pytest.raises(KeyboardInterrupt):
        fit_interrupted(recipe, tmp_path / "run", step=3)
    vectors = tmp_path / "vectors.npy"
    np.save(vectors, np.load(vectors)[::-1])
    with pytest.raises(InputError, match=r"vectors\.npy changed"):
        fit(recipe, tmp_path / "run", resume=True)


def test_fit_epoch_without_steps_draws_train_once(mixture, recipe):
    inputs = mixture.units["train"].costs.sum()
    # A quarter of the 24 inputs of a batch are of `train`
    assert batches_per_epoch(recipe, inputs=inputs) == round(inputs / 6)
    assert batches_per_epoch(recipe.replaced(steps=7, epochs=2), inputs=inputs) == 4


def test_fit_ranking_learns_the_order_within_groups(tmp_path, recipe):
    groups = recipe.sources["groups"].replaced(objective={"ranking": 1.0})
    changed = recipe.replaced(sources={"groups": groups}, objective={"mse": 1.0})
    fit(changed.replaced(steps=60, epochs=1), tmp_path / "run")
    task = load_task(groups.files[0])
    scores = condsim.load(str(tmp_path / "run")).score(
        task.sentences1, task.sentences2, task.conditions, scale="raw"
    )
    assert np.corrcoef(scores, task.gold)[0, 1] > 0.5


def test_fit_freeze_embeddings_keeps_them_and_trains_the_rest(tmp_path, recipe, weights_of):
    before = build_model(recipe)
    words = before[0].auto_model.get_input_embeddings().weight.detach().numpy().tobytes()
    fit(recipe.replaced(freeze=["embeddings"], steps=4, epochs=1), tmp_path / "run")
    after = weights_of(tmp_path / "run")
    frozen = [name for name, value in after.items() if value == words]
    assert len(frozen) == 1
    assert "word_embeddings" in frozen[0]


def test_fit_freeze_layers_trains_the_layers_above_alone(tmp_path, recipe, weights_of):
    network = build_model(recipe)[0].auto_model
    before = {name: value.numpy().tobytes() for name, value in network.state_dict().items()}
    fit(recipe.replaced(freeze_layers=1, steps=4, epochs=1), tmp_path / "run")
    after = {name.partition(":")[2]: value for name, value in weights_of(tmp_path / "run").items()}
    changed = {name for name, value in before.items() if after[name] != value}
    assert changed
    assert all("layer.1." in name for name in changed)


def test_fit_freeze_layers_of_every_layer_raises(tmp_path, recipe):
    with pytest.raises(InputError, match="'freeze_layers' must be below the number of layers"):
        fit(recipe.replaced(freeze_layers=2), tmp_path / "run")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sources": {}, "steps": 5}, "'steps' must be null without 'sources'"),
        ({"steps": 2}, "'steps' must be at least 'epochs', 3"),
        ({"sources": {"train": {"file": "a.csv"}}}, "without the name 'train'"),
        ({"encoder": "cross-encoder", "objective": {"mse": 1.0}}, "empty for a cross-encoder"),
        ({"objective": {"c-mse": 1.0}}, "'c-mse' does not go with 'sources'"),
        ({"objective": {"vectors": 1.0}}, "for a source with a teacher's vectors"),
        ({"sources": {"a": {"file": "a.csv", "shar": 1}}}, "Did you mean 'share'"),
        ({"sources": {"a": {"file": []}}}, "must name a file or more"),
        (
            {"sources": {"a": {"file": "a.csv", "objective": {"relations": 1.0}}}},
            "does not apply to a source without 'vectors'",
        ),
        (
            {"sources": {"a": {"file": ["a.csv", "b.csv"], "vectors": "v.npy"}}},
            "one file with 'vectors'",
        ),
    ],
)
def test_recipe_sources_that_do_not_fit_raise(changes, message):
    base = {"name": "m", "train": "a.csv", "dev": "b.csv", "sources": {"x": {"file": "x.csv"}}}
    with pytest.raises(InputError, match=message):
        Recipe(**{**base, **changes})


def test_read_mixture_files_that_do_not_fit_raise(tmp_path, recipe):
    def read(**source):
        changed = recipe.replaced(sources={"teacher": source})
        return mixture_of(changed)

    inputs, vectors = tmp_path / "inputs.csv", tmp_path / "vectors.npy"
    whole = np.load(vectors)
    with pytest.raises(InputError, match=r"needs vectors of the model's dimension, 32; got 48"):
        read(file=str(inputs), vectors=str(vectors), objective={"vectors": 1.0})
    np.save(vectors, whole[:5])
    with pytest.raises(InputError, match="got 5 vectors and 20 rows"):
        read(file=str(inputs), vectors=str(vectors))
    np.save(vectors, whole[0])
    with pytest.raises(InputError, match=r"array of floats, \(rows, dimension\)"):
        read(file=str(inputs), vectors=str(vectors))
    vectors.write_bytes(b"x")
    with pytest.raises(InputError, match="cannot be read as an array"):
        read(file=str(inputs), vectors=str(vectors))
    sources = {"plain": recipe.sources["plain"]}
    tri = recipe.replaced(encoder="tri-encoder", sources=sources)
    with pytest.raises(InputError, match="needs a condition in every row"):
        fit(tri, tmp_path / "run")
