from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from condsim.errors import InputError, ModelError
from condsim.loading import load_scorer
from condsim.training.folder import finished_run
from condsim_contexts.harvest import Harvest
from condsim_contexts.origin import open_pipeline
from condsim_contexts.pipeline import Pipeline
from condsim_contexts.recipe import ContextsRecipe, load_contexts_recipe, save_contexts_recipe

pq = pytest.importorskip("pyarrow.parquet")

PAIR = ("The baker sells bread.", "The smith sells horseshoes.")


def recipe_of(text: Path, **sections: object) -> ContextsRecipe:
    """A run of some seconds; sections are changed key by key."""
    path = text.with_suffix(".yaml")
    small = {
        "corpus": "{chunk_sentences: 5}",
        "vocabulary": "{size: 400}",
        "coherence": (
            "{embedding: 8, hidden: 8, head_size: 8, batch_sentences: 64, max_steps: 3, "
            "evaluations: 1, precision: float32}"
        ),
        "generators": (
            "{max_tokens: 16, batch_tokens: 512, max_steps: 2, evaluations: 1, "
            "held_out_examples: 4, models: one, precision: float32}"
        ),
        "selection": "{size: 3, chunks: 5, candidates: 1}",
        "scoring": "{references: 2}",
        "harvest": "{pairs: 400, shard_pairs: 50}",
        "surrogate": "{width: 16, layers: 1, train: {max_seq_length: 16}}",
    }
    lines = [f"name: small\ninputs: [{text}]\n", *(f"{k}: {v}\n" for k, v in small.items())]
    path.write_text("".join(lines))
    return load_contexts_recipe(path, overrides=[f"{k}={v}" for k, v in sections.items()])


def new(folder: Path, recipe: ContextsRecipe, until: Any = "surrogate", **options: Any) -> Pipeline:
    return Pipeline(folder, recipe, until=until, **options)


lines: list[str] = []


def make(
    folder: Path, recipe: ContextsRecipe, until: Any = "harvest"
) -> list[tuple[str, int, int]]:
    """Makes a run up to a stage; gives the progress, and the lines in `lines`."""
    told: list[tuple[str, int, int]] = []
    made = new(folder, recipe, until, progress=lambda *what: told.append(what))
    with made.locked():
        lines[:] = made.run()
    return told


@pytest.fixture(scope="module")
def origin(small_text, tmp_path_factory) -> Path:
    """A run up to the origin; not to be changed."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("origin")
    (folder / "days.txt").write_text(small_text)
    make(folder / "run", recipe_of(folder / "days.txt"), "origin")
    return folder


@pytest.fixture
def copy(origin, tmp_path) -> tuple[Path, ContextsRecipe]:
    """The same run, to be changed."""
    shutil.copytree(origin, tmp_path / "copy")
    recipe = recipe_of(tmp_path / "copy" / "days.txt")
    save_contexts_recipe(recipe, tmp_path / "copy" / "run" / "contexts.yaml")
    return tmp_path / "copy" / "run", recipe


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning")
def test_pipeline_from_text_to_surrogate(copy):
    folder, recipe = copy
    told = make(folder, recipe, "surrogate")
    stages = list(dict.fromkeys(stage for stage, *_ in told))
    assert stages == ["corpus", "harvest"]
    assert "surrogate; Spearman" in lines[-1]
    assert told[-1] == ("harvest", 400, 400)
    finished = finished_run(folder / "surrogate")
    assert finished.report.valid_rows >= 3
    assert finished.recipe.pooling == "mean"
    assert load_scorer(folder / "surrogate", device="cpu").name == "small surrogate"
    # Once more: everything is there, and nothing is computed.
    made = [*folder.rglob("*.safetensors"), *folder.rglob("*.parquet"), *folder.rglob("*.npy")]
    times = {path: path.stat().st_mtime_ns for path in made}
    told = make(folder, recipe, "surrogate")
    assert told == [("corpus", 0, 0)]
    assert {path: path.stat().st_mtime_ns for path in times} == times
    # Another harvest in its place: its pairs are written, and the old surrogate is not its own.
    shutil.rmtree(folder / "harvest")
    before = (folder / "pairs" / "train.parquet").read_bytes()
    other = recipe.replaced(selection=recipe.selection.replaced(size=2))
    with pytest.raises(InputError, match=r"surrogate was trained on another harvest than the one"):
        make(folder, other, "surrogate")
    assert (folder / "pairs" / "train.parquet").read_bytes() != before


def test_opened_run_is_an_origin_model_that_needs_no_input(copy, tmp_path):
    folder, _ = copy
    folder.with_name("days.txt").unlink()
    moved = folder.rename(tmp_path / "moved")
    scorer = load_scorer(moved)
    assert scorer.name == "small origin"
    raw = scorer.score(*PAIR, scale="raw")
    assert -1 <= raw <= 1
    assert scorer.score(PAIR[0], PAIR[0]) == pytest.approx(1.0, abs=1e-5)


def test_opened_run_version_is_that_of_weights_and_settings(copy):
    folder, recipe = copy
    scorer, identity = load_scorer(folder), open_pipeline(folder).identity
    assert scorer.scored_by["selection"]["size"] == 3
    other = recipe.replaced(selection=recipe.selection.replaced(size=2))
    save_contexts_recipe(other, folder / "contexts.yaml")
    versions = {scorer.revision, load_scorer(folder).revision}
    save_contexts_recipe(recipe, folder / "contexts.yaml")
    assert load_scorer(folder).revision == scorer.revision
    for model in (folder / "coherence", folder / "generators" / "all"):
        tensors = load_file(model / "model.safetensors")
        name = sorted(tensors)[0]
        save_file(tensors | {name: tensors[name] + 1}, model / "model.safetensors")
        versions.add(load_scorer(folder).revision)
        assert open_pipeline(folder).identity != identity
        identity = open_pipeline(folder).identity
    assert len(versions) == 4


def test_opened_run_of_an_unfinished_one_says_what_is_missing(copy):
    folder, _ = copy
    (folder / "generators" / "report.json").unlink()
    with pytest.raises(ModelError, match=r"is unfinished: stage 'generators' is not done"):
        _ = open_pipeline(folder).scorer
    with pytest.raises(InputError, match=r"is not a run of contexts: there is no contexts.yaml"):
        open_pipeline(folder / "corpus")


def test_opened_run_fits_weights_to_held_out_text(tmp_path):
    random = np.random.default_rng(0)
    documents = []
    for number in range(20):  # each of words of its own
        words = [f"{name}{number}" for name in ("oak", "elm", "ash", "fir", "yew", "bay")]
        sentences = (random.choice(words, 5) for _ in range(15))
        documents.append("\n".join(" ".join(chosen).capitalize() + "." for chosen in sentences))
    (tmp_path / "days.txt").write_text("\n\n".join(documents))
    counts = {"generators.kind": "counts", "scoring.weights.coherence": "0"}
    make(tmp_path / "run", recipe_of(tmp_path / "days.txt", **counts), "origin")
    run = open_pipeline(tmp_path / "run")
    with pytest.raises(InputError, match=r"need 64 held-out sentences .* got 1[0-9]\."):
        run.fit_weights()
    half = run.recipe.generators.replaced(held_out=0.5)
    run.recipe = run.recipe.replaced(generators=half)
    found = run.fit_weights(sentences=96)
    assert sum(found.weights.values) == pytest.approx(1.0, abs=0.002)
    assert found.weights.coherence == 0
    assert found.sentences == 48
    assert found.accuracy > 0.5  # a document is about one thing, and names it again and again
    assert set(found.alone) == {"center", "left", "right"}


def test_pipeline_terms_of_weight_0_train_no_model(small_text, tmp_path):
    (tmp_path / "days.txt").write_text(small_text)
    weights = {"scoring.weights": "{coherence: 1, center: 0, left: 0, right: 0}"}
    recipe = recipe_of(tmp_path / "days.txt", **weights)
    make(tmp_path / "run", recipe, "origin")
    assert not (tmp_path / "run" / "generators").exists()
    assert load_scorer(tmp_path / "run").score(PAIR[0], PAIR[0]) == pytest.approx(1.0)


def test_pipeline_harvest_cost_is_that_of_what_is_missing(copy):
    folder, recipe = copy
    recipe = recipe.replaced(harvest=recipe.harvest.replaced(pairs=100))
    with new(folder, recipe, "harvest").locked() as made:
        cost = made.harvest_cost()
        assert cost.pairs == 100
        assert cost.models == 3
        harvested = made.harvest()
        harvested.shard(1).unlink()
        assert made.harvest_cost().pairs == 50
        made.harvest()
        assert made.harvest_cost() is None


@pytest.mark.parametrize(
    ("section", "change"),
    [
        ("corpus", "corpus.min_words=4"),
        ("vocabulary", "vocabulary.size=500"),
        ("index", "index.min_df=1"),
        ("coherence", "coherence.max_steps=4"),
        ("generators", "generators.dropout=0"),
    ],
)
def test_pipeline_of_a_changed_recipe_is_refused(origin, section: str, change: str):
    key, _, value = change.partition("=")
    recipe = recipe_of(origin / "days.txt", **{key: value})
    with pytest.raises(InputError):
        new(origin / "run", recipe)


def test_pipeline_origin_settings_may_change_until_there_is_a_harvest(copy):
    folder, recipe = copy
    other = recipe.replaced(selection=recipe.selection.replaced(size=2))
    make(folder, other.replaced(harvest=other.harvest.replaced(pairs=20)), "harvest")
    assert open_pipeline(folder).recipe.selection.size == 2
    with pytest.raises(InputError, match="selection, harvest changed"):
        new(folder, recipe)
    new(folder, recipe, "origin")  # beside the harvest the origin may be tried with any


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"harvest.pairs": 299}, "'harvest.pairs' must be at least 300 to train a surrogate"),
        ({"surrogate.backbone": "/no/such"}, "The backbone folder '/no/such' does not exist"),
        ({"generators.backbone": "./none"}, r"The backbone folder '\./none' does not exist"),
        ({"inputs": "[none.txt]"}, r"none\.txt does not exist\."),
    ],
)
def test_pipeline_mistakes_are_told_before_anything_is_made(
    tmp_path, sections: dict[str, object], message: str
):
    (tmp_path / "a.txt").write_text("A text.")
    with pytest.raises((InputError, ModelError), match=message):
        new(tmp_path / "run", recipe_of(tmp_path / "a.txt", **sections))
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_pipeline_killed_in_any_stage_ends_with_the_same_harvest(copy, tmp_path):
    folder, _ = copy
    recipe = str(folder.with_name("days.yaml"))
    run = [sys.executable, "-m", "condsim", "contexts", "run", recipe, "--until", "harvest"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}  # sums of two threads differ run by run
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run([*run, "--output", str(whole)], env=environment, check=True, timeout=300)
    command = [*run, "--output", str(killed)]
    for mark in (
        "corpus",
        "coherence",
        "generators/all/config.json",
        "harvest/pairs-00003.parquet",
    ):
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment)
        try:
            stop = time.monotonic() + 120
            while not (killed / mark).exists() and process.poll() is None:
                assert time.monotonic() < stop
                time.sleep(0.01)
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
    subprocess.run(command, env=environment, check=True, timeout=300)
    one, other = (Harvest.open(path / "harvest") for path in (whole, killed))
    for number in range(one.settings.shards):
        assert one.shard(number).read_bytes() == other.shard(number).read_bytes()
