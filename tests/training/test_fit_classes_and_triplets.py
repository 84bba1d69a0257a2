"""Training on classes of NLI and on triplets, alone and one after the other."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

import condsim
from condsim.data.nli_triplets import load_triplets
from condsim.errors import InputError
from condsim.evaluation.metrics import triplet_wins
from condsim.training.data import load_train, sample_rows
from condsim.training.recipe import Recipe, save_recipe
from condsim.training.run import fit

pytestmark = pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning")

SUBJECTS = ("man", "woman", "girl", "boy", "dog", "cat", "bird")
ACTIONS = ("runs in the park", "sits on a table", "eats a red ball")
CLASSES = ("entailment", "neutral", "contradiction")


def nli_rows(count: int) -> list[str]:
    rows = []
    for number in range(count):
        subject, action = SUBJECTS[number % 7], ACTIONS[number // 7 % 3]
        other = (f"A {subject} {action}", f"A child {action}", f"A {subject} plays")[number % 3]
        rows.append(f"The {subject} {action} {number}.\t{other} {number}.\t{CLASSES[number % 3]}")
    return rows


def triplet_rows(count: int) -> list[str]:
    rows = []
    for number in range(count):
        subject, other = SUBJECTS[number % 7], SUBJECTS[(number + 1 + number // 7 % 6) % 7]
        texts = (f"The {subject} {number} runs.", f"A {subject} sits.", f"A {other} runs {number}.")
        rows.append("\t".join(texts))
    return rows


@pytest.fixture(scope="session")
def recipes(tmp_path_factory, tiny_backbone) -> dict[str, Recipe]:
    folder = tmp_path_factory.mktemp("classes-and-triplets")
    scored = [
        f"A {first} runs {number}.\tThe {second} sits.\t{float(first == second)}"
        for number, (first, second) in enumerate(product(SUBJECTS, SUBJECTS))
    ]
    files = {
        "nli": ("premise\thypothesis\tlabel", [*nli_rows(63), "A\tB\t-"]),
        "scored": ("sentence1\tsentence2\tscore", scored),
        "triplets": ("anchor\tpositive\tnegative", triplet_rows(60)),
        "triplets-dev": ("anchor\tpositive\tnegative", triplet_rows(90)[60:]),
    }
    for name, (header, rows) in files.items():
        (folder / f"{name}.tsv").write_text("\n".join([header, *rows]) + "\n")
    common = Recipe(
        name="tiny",
        train=str(folder / "nli.tsv"),
        dev=str(folder / "scored.tsv"),
        backbone=str(tiny_backbone),
        objective={"softmax": 1.0},
        max_seq_length=32,
        epochs=2,
        batch_size=8,
        learning_rate=1e-3,
        precision="float32",
    )
    return {
        "softmax": common,
        "triplet": common.replaced(
            train=str(folder / "triplets.tsv"),
            dev=str(folder / "triplets-dev.tsv"),
            objective={"triplet": 1.0},
        ),
        "mse": common.replaced(train=str(folder / "scored.tsv"), objective={"mse": 1.0}),
    }


def history(folder: Path) -> dict[str, object]:
    return json.loads((folder / "training.json").read_text())


def test_fit_softmax_is_measured_on_similarities_and_saves_no_classifier(
    tmp_path, recipes, weights_of
):
    result = fit(recipes["softmax"], tmp_path / "nli")
    fit(recipes["mse"].replaced(epochs=1), tmp_path / "plain")
    assert len(result.dev_spearman) == 2
    assert result.report.task == "scored"
    assert weights_of(tmp_path / "nli").keys() == weights_of(tmp_path / "plain").keys()
    assert history(tmp_path / "nli")["train"]["rows"] == 63
    assert "63 labeled rows" in (tmp_path / "nli" / "README.md").read_text()


def test_fit_triplet_chooses_the_epoch_by_accuracy(tmp_path, recipes):
    result = fit(recipes["triplet"].replaced(epochs=3), tmp_path / "run")
    assert len(result.dev_accuracy) == len(result.dev_spearman) == 3
    assert history(tmp_path / "run")["dev_accuracy_by_epoch"] == list(result.dev_accuracy)
    assert f"dev accuracy {max(result.dev_accuracy):.1f}" in result.summary()
    facts = json.loads((tmp_path / "run" / "condsim.json").read_text())["facts"]
    assert facts["dev_accuracy"] == pytest.approx(max(result.dev_accuracy), abs=0.05)
    # what was saved has that accuracy
    dev = load_triplets(recipes["triplet"].dev)
    model = condsim.load(str(tmp_path / "run"))
    pairs = dev.pairs()
    scores = model.score(list(pairs.sentences1), list(pairs.sentences2), scale="raw")
    assert 100 * triplet_wins(scores).mean() == pytest.approx(max(result.dev_accuracy), abs=1e-3)


def test_fit_triplet_learns(tmp_path, recipes):
    recipe = recipes["triplet"].replaced(epochs=8, learning_rate=3e-3, dropout=0.0)
    result = fit(recipe, tmp_path / "run")
    assert max(result.dev_accuracy) > 90


@pytest.mark.slow
def test_fit_one_recipe_after_the_other(tmp_path, recipes):
    backbone = recipes["softmax"].backbone
    for name in ("mse", "softmax", "mse", "triplet"):
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}-{name}"
        assert fit(recipes[name].replaced(backbone=backbone, epochs=1), folder)
        backbone = str(folder)
    assert 0 <= condsim.load(backbone).score("A dog runs.", "A cat runs.") <= 1


def test_fit_softmax_on_triplets_dev_is_measured_by_accuracy(tmp_path, recipes):
    recipe = recipes["softmax"].replaced(dev=recipes["triplet"].dev, epochs=1)
    result = fit(recipe, tmp_path / "run")
    assert len(result.dev_accuracy) == 1


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["softmax", "triplet"])
def test_fit_interrupted_and_resumed_ends_bit_equal(
    tmp_path, recipes, objective, fit_interrupted, weights_of
):
    recipe = recipes[objective].replaced(epochs=3, dropout=0.1)
    fit(recipe, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        fit_interrupted(recipe, tmp_path / "stopped", step=11)
    kept = list((tmp_path / "stopped").rglob("loss.safetensors"))
    assert bool(kept) == (objective == "softmax")
    assert fit(recipe, tmp_path / "stopped", resume=True) is not None
    assert weights_of(tmp_path / "stopped") == weights_of(tmp_path / "whole")


@pytest.mark.slow
def test_fit_softmax_two_processes_keep_one_classifier(tmp_path, recipes, two_processes):
    recipe = recipes["softmax"].replaced(epochs=1)
    save_recipe(recipe, tmp_path / "recipe.yaml")
    code = (
        "import sys, torch\n"
        "from pathlib import Path\n"
        "from condsim.training.trainer import SoftmaxLoss\n"
        "from condsim.training.run import close_process_group\n"
        "from condsim.training import fit, load_recipe\n"
        "made, init = [], SoftmaxLoss.__init__\n"
        "def remember(self, *a, **k):\n    init(self, *a, **k)\n    made.append(self)\n"
        "SoftmaxLoss.__init__ = remember\n"
        "folder = Path(sys.argv[1])\n"
        "fit(load_recipe(folder / 'recipe.yaml'), folder / 'run')\n"
        "weight = made[0].classifier.weight.detach()\n"
        "both = [torch.empty_like(weight) for _ in range(2)]\n"
        "torch.distributed.all_gather(both, weight)\n"
        "assert torch.equal(*both), 'the classifiers drifted apart'\n"
        "close_process_group()\n"
    )
    (tmp_path / "train.py").write_text(code)
    two_processes(tmp_path / "train.py", tmp_path)
    assert (tmp_path / "run" / "report.json").is_file()


@pytest.mark.parametrize("objective", ["softmax", "triplet"])
def test_sample_rows_smaller_draw_is_a_part_of_a_larger_draw(recipes, objective):
    recipe = recipes[objective]
    train = load_train(recipe)
    drawn = [sample_rows(train, rows) for rows in (10, 20, 1000)]
    assert [len(rows) for rows in drawn] == [10, 20, len(train)]
    first = [rows.premises if objective == "softmax" else rows.anchors for rows in drawn]
    assert set(first[0]) < set(first[1]) < set(first[2])


@pytest.mark.parametrize(
    ("objective", "changes", "message"),
    [
        ("softmax", {"train": "triplet"}, "columns 'premise', 'hypothesis', 'label' are missing"),
        ("triplet", {"train": "softmax"}, "columns 'anchor', 'positive', 'negative' are missing"),
        ("mse", {"train": "softmax"}, "contains classes of NLI.*objective 'softmax'"),
        ("mse", {"train": "triplet"}, "contains triplets.*objective 'triplet'"),
        ("softmax", {"dev": "softmax"}, "contains classes of NLI"),
    ],
)
def test_fit_file_of_another_kind_is_one_line(tmp_path, recipes, objective, changes, message):
    (key, other), *_ = changes.items()
    recipe = recipes[objective].replaced(**{key: recipes[other].train})
    with pytest.raises(InputError, match=message):
        fit(recipe, tmp_path / "run")
    assert not (tmp_path / "run").exists()
