import json
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer

import condsim
from condsim.cache import sole_process
from condsim.data.csts import load_csts
from condsim.errors import InputError, ModelError
from condsim.evaluation.report import Report
from condsim.training.recipe import save_recipe
from condsim.training.run import close_process_group, fit
from condsim.training.trainer import build_model

pytestmark = pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning")


CCL = {"w-acl": 1.0, "bcl": 1.0, "mse": 1.0, "c-mse": 1.0}


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, "bi-encoder"),
        ({"transform": True, "pooling": "mean_top2"}, "bi-encoder"),
        ({"encoder": "tri-encoder", "fusion": "hadamard"}, "tri-encoder"),
        ({"encoder": "tri-encoder", "fusion": "concat", "pooling": "cls"}, "tri-encoder"),
        ({"encoder": "tri-encoder", "fusion": "low-rank", "rank": 8}, "tri-encoder"),
        ({"objective": CCL, "gradient_accumulation": 2}, "bi-encoder"),
        ({"encoder": "tri-encoder", "fusion": "hadamard", "objective": CCL}, "tri-encoder"),
        ({"encoder": "tri-encoder", "fusion": "concat", "objective": CCL}, "tri-encoder"),
        (
            {"encoder": "cross-encoder", "objective": {"mse": 1.0}, "order": "sentence-first"},
            "cross-encoder",
        ),
    ],
)
def test_fit_every_encoder_writes_a_folder_that_loads(tmp_path, tiny_recipe, changes, kind):
    recipe = tiny_recipe.replaced(**changes)
    result = fit(recipe, tmp_path / "run")
    assert len(result.dev_spearman) == recipe.epochs
    assert json.loads((tmp_path / "run" / "condsim.json").read_text())["kind"] == kind
    assert Report.from_json(tmp_path / "run" / "report.json").model == result.report.model
    assert result.report.baselines[0].name == "condition-only"
    score = condsim.load(str(tmp_path / "run")).score("A dog runs.", "A cat runs.", "the animal")
    assert 0 <= score <= 1
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_fit_card_names_data_recipe_scores_and_quotes_no_row(tmp_path, tiny_recipe):
    fit(tiny_recipe, tmp_path / "run")
    card = (tmp_path / "run" / "README.md").read_text()
    for part in ("condition-only", "learning_rate: 0.001", "revision", "(condition; sentence)"):
        assert part in card
    sentence = Path(tiny_recipe.train).read_text().splitlines()[1].split(",")[0]
    for path in (tmp_path / "run").rglob("*"):
        if path.suffix in (".md", ".json", ".yaml"):
            assert sentence not in path.read_text()


@pytest.mark.slow
def test_fit_killed_and_resumed_ends_bit_equal(tiny_recipe, check_killed_and_resumed):
    recipe = tiny_recipe.replaced(epochs=10, checkpoint_steps=5, dropout=0.1)
    # 9 batches an epoch: checkpoints 5, 9, 10, 15 ...; kill in the middle of the second epoch
    check_killed_and_resumed(recipe, "checkpoint-1[05]")


@pytest.mark.parametrize("objective", [{"mse": 1.0, "quad": 0.5}, CCL])
def test_fit_interrupted_and_resumed_ends_bit_equal(
    tmp_path, tiny_recipe, objective, weights_of, fit_interrupted
):
    recipe = tiny_recipe.replaced(epochs=3, objective=objective, dropout=0.1)
    fit(recipe, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        fit_interrupted(recipe, tmp_path / "stopped", step=13)
    assert fit(recipe, tmp_path / "stopped", resume=True) is not None
    assert weights_of(tmp_path / "stopped") == weights_of(tmp_path / "whole")


def test_fit_patience_counts_on_when_resumed(tmp_path, tiny_recipe, fit_interrupted):
    # Nothing moves, so the first epoch is the best and the three after it are no better.
    recipe = tiny_recipe.replaced(patience=3, epochs=8, learning_rate=1e-12)
    with pytest.raises(KeyboardInterrupt):
        fit_interrupted(recipe, tmp_path / "run", step=20)  # in the third epoch of 9 steps
    result = fit(recipe, tmp_path / "run", resume=True)
    assert len(result.dev_spearman) == 4


def test_fit_that_fails_gives_ctrl_c_back(tmp_path, tiny_recipe, monkeypatch):
    def diverged(*_, **__):
        raise ModelError("every score must be a finite number")

    monkeypatch.setattr("condsim.training.callbacks.DevEvaluator.__call__", diverged)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ModelError):
        fit(tiny_recipe, tmp_path / "run")
    assert signal.getsignal(signal.SIGINT) is before


def test_fit_in_a_thread_trains(tmp_path, tiny_recipe):
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(fit, tiny_recipe.replaced(epochs=1), tmp_path / "run").result()
    assert result is not None


def test_fit_ccl_saves_no_projection_head(tmp_path, tiny_recipe, weights_of):
    fit(tiny_recipe.replaced(epochs=1, objective=CCL), tmp_path / "ccl")
    fit(tiny_recipe.replaced(epochs=1), tmp_path / "plain")
    assert weights_of(tmp_path / "ccl").keys() == weights_of(tmp_path / "plain").keys()


def test_fit_pairwise_objective_without_pairs_raises(tmp_path, tiny_recipe):
    rows = Path(tiny_recipe.train).read_text().splitlines()
    lone = [rows[0], *(row for row in rows[1:] if "the animal" in row)]
    (tmp_path / "lone.csv").write_text("\n".join(lone) + "\n")
    recipe = tiny_recipe.replaced(train=str(tmp_path / "lone.csv"), objective=CCL)
    with pytest.raises(InputError, match=r"lone has no sentence pair.*'w-acl'"):
        fit(recipe, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_fit_train_rows_takes_whole_pairs(tmp_path, tiny_recipe):
    fit(tiny_recipe.replaced(epochs=1, train_rows=21), tmp_path / "run")
    assert json.loads((tmp_path / "run" / "training.json").read_text())["train"]["rows"] in (20, 21)


def test_fit_train_rows_below_every_pair_says_so(tmp_path, tiny_recipe):
    rows = [f"The man runs.,A dog sits.,the color {number},{1 + number % 5}" for number in range(6)]
    (tmp_path / "train.csv").write_text("sentence1,sentence2,condition,label\n" + "\n".join(rows))
    recipe = tiny_recipe.replaced(train=str(tmp_path / "train.csv"), train_rows=4)
    with pytest.raises(InputError, match=r"'train_rows' is 4.* has more rows"):
        fit(recipe, tmp_path / "run")


@pytest.mark.parametrize("inputs", ["condition", "sentences"])
def test_fit_cross_encoder_reads_a_part_of_the_row_alone(tmp_path, tiny_recipe, inputs):
    recipe = tiny_recipe.replaced(encoder="cross-encoder", objective={"mse": 1.0}, inputs=inputs)
    assert fit(recipe, tmp_path / "run") is not None
    model = condsim.load(str(tmp_path / "run"))
    rows = (("A dog runs.", "A cat sits."), ("A man runs.", "A girl sits."))
    scores = [
        [model.score(*row, condition, scale="raw") for condition in ("the animal", "the sport")]
        for row in rows
    ]
    card = (tmp_path / "run" / "README.md").read_text()
    shown = {"condition": "`condition`", "sentences": "`sentence1 SEP sentence2`"}[inputs]
    assert f"It takes {shown}; the similarity is the output" in card
    read = {"condition": scores, "sentences": list(zip(*scores, strict=True))}[inputs]
    assert read[0] == pytest.approx(read[1], abs=1e-6)
    assert abs(read[0][0] - read[0][1]) > 1e-4
    # What is left of a row is all of the input: no separator or other sign of the rest.
    text = {"condition": "the animal", "sentences": "A dog runs. [SEP] A cat sits."}[inputs]
    library = CrossEncoder(str(tmp_path / "run")).eval()
    output = library(library.preprocess([text]))["scores"].item()
    assert scores[0][0] == pytest.approx(output, abs=1e-6)


def test_fit_report_is_of_raw_similarities(tmp_path, tiny_recipe):
    result = fit(tiny_recipe, tmp_path / "run")
    dev = load_csts(Path(tiny_recipe.dev)).labeled()
    model = condsim.load(str(tmp_path / "run"))
    metrics = result.report.model.metrics
    for scale, same in (("raw", True), ("unit", False)):
        scores = model.score(dev.sentences1, dev.sentences2, dev.conditions, scale=scale)
        by_hand = 100 * np.corrcoef(scores, dev.gold)[0, 1]
        assert (abs(metrics["pearson"].value - by_hand) < 1e-3) == same


@pytest.mark.parametrize("keep", ["best", "last"])
def test_fit_keeps_the_epoch_that_is_asked_for(tmp_path, tiny_recipe, keep):
    result = fit(tiny_recipe.replaced(keep=keep, epochs=4, learning_rate=0.03), tmp_path / "run")
    epochs = result.dev_spearman
    expected = max(epochs) if keep == "best" else epochs[-1]
    assert result.report.model.metrics["spearman"].value == pytest.approx(expected, abs=1e-3)


def test_fit_frozen_encoder_moves_the_layers_on_top_only(tmp_path, tiny_recipe):
    recipe = tiny_recipe.replaced(freeze=["encoder"], transform=True, max_grad_norm=None)
    before = build_model(recipe).state_dict()
    assert fit(recipe, tmp_path / "run") is not None
    after = SentenceTransformer(str(tmp_path / "run")).state_dict()
    moved = {name for name, value in before.items() if not torch.equal(value, after[name])}
    assert moved == {"2.linear.weight", "2.linear.bias"}


def test_fit_classification_scores_by_the_expected_label(tmp_path, tiny_recipe):
    recipe = tiny_recipe.replaced(
        encoder="cross-encoder", objective={"classification": 1.0}, epochs=1
    )
    assert fit(recipe, tmp_path / "run") is not None
    model = condsim.load(str(tmp_path / "run"))
    library = CrossEncoder(str(tmp_path / "run")).eval()
    assert library.num_labels == 5
    text = "the animal [SEP] A dog runs. [SEP] A cat sits."
    shares = library(library.preprocess([text]))["scores"].softmax(dim=1)[0].tolist()
    expected = 0.25 * shares[1] + 0.5 * shares[2] + 0.75 * shares[3] + shares[4]
    score = model.score("A dog runs.", "A cat sits.", "the animal", scale="raw")
    assert score == pytest.approx(expected, abs=1e-6)


def test_fit_task_without_conditions_trains_on_plain_sentences(tmp_path, tiny_recipe):
    lines = [
        f"main\tfile\t2012\t{number:04d}\t{number % 6}.0\tA dog runs {number}.\tA cat {number}."
        for number in range(24)
    ]
    (tmp_path / "sts-train.csv").write_text("\n".join(lines) + "\n")
    for encoder in ("bi-encoder", "cross-encoder"):
        recipe = tiny_recipe.replaced(
            encoder=encoder,
            train=str(tmp_path / "sts-train.csv"),
            dev=str(tmp_path / "sts-train.csv"),
            objective={"mse": 1.0},
            epochs=1,
        )
        result = fit(recipe, tmp_path / encoder)
        assert result.report.baselines[0].name == "word-overlap"
        assert "word-overlap" in result.summary()
    with pytest.raises(InputError):
        fit(recipe.replaced(encoder="bi-encoder", objective=CCL), tmp_path / "ccl")
    with pytest.raises(InputError):
        fit(recipe.replaced(encoder="tri-encoder"), tmp_path / "tri")


def test_fit_same_seed_gives_same_weights_other_seed_differs(tmp_path, tiny_recipe, weights_of):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        fit(tiny_recipe.replaced(epochs=1, seed=seed), tmp_path / name)
    assert weights_of(tmp_path / "a") == weights_of(tmp_path / "b") != weights_of(tmp_path / "c")


@pytest.mark.slow
def test_train_command_two_processes_write_one_folder(tmp_path, tiny_recipe, two_processes):
    recipe = tiny_recipe.replaced(objective={**tiny_recipe.objective, **CCL})
    save_recipe(recipe, tmp_path / "recipe.yaml")
    words = ("train", tmp_path / "recipe.yaml", "--output", tmp_path / "run")
    two_processes("-m", "condsim", *words)
    assert (tmp_path / "run" / "report.json").is_file()


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="names of threads are in /proc")
def test_close_process_group_leaves_none_of_its_threads(tmp_path):
    def threads():
        return [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]

    store = f"file://{tmp_path}/store"
    torch.distributed.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    # A model of a run holds the group, in a circle.
    layers = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    circle = [layers(torch.ones(2, 4)), layers]
    circle.append(circle)
    assert any("gloo" in name for name in threads())
    del circle, layers
    close_process_group()
    assert not [name for name in threads() if "gloo" in name]


@pytest.mark.parametrize("resume", [False, True])
def test_fit_in_a_folder_where_another_trains_is_refused(tmp_path, tiny_recipe, resume):
    with (
        sole_process(tmp_path / "run"),
        pytest.raises(InputError),
    ):
        fit(tiny_recipe, tmp_path / "run", resume=resume)
