from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sentencex")

from papers.contexts import (
    BLOCK,
    by_rank,
    missing_pairs,
    part_folder,
    plan_contexts,
    stored_blocks,
    write_blocks,
)
from papers.data.sts import STS_COUNTS
from papers.options import load_gold_set
from tests.papers.conftest import DataSets

from condsim.errors import InputError
from condsim.types import Task
from condsim_contexts.equations import PairTerms
from condsim_contexts.recipe import load_contexts_recipe
from papers import ContextsOptions, Options, load_experiment, names

PROJECT = Path(__file__).resolve().parents[2]
ORDER = ("corpus", "coherence", "generators", "origin", "harvest", "surrogate")
NAMES = [name for name in names() if name.startswith("ssbc")]


@pytest.fixture
def options(tmp_path, monkeypatch):
    monkeypatch.chdir(PROJECT)
    data = DataSets(tmp_path)
    for year in STS_COUNTS:
        data.sts(year, "sts12-16")
    data.stsb()
    data.sick("sick-r/sick_test.tsv")
    recipe = PROJECT / "recipes" / "contexts" / "tiny.yaml"
    return Options(data=tmp_path, runs=tmp_path / "runs", contexts=ContextsOptions(recipe=recipe))


@pytest.mark.parametrize("name", NAMES)
def test_plan_contexts_every_experiment_has_valid_recipes(name, options):
    experiment = load_experiment(name)
    named = {file for row in experiment.rows.values() for file in row.set.get("inputs", ())}
    if named:
        with pytest.raises(InputError, match=r"--recipe .*tiny\.yaml: the rows of ssbc-domain"):
            plan_contexts(experiment, options)
        own = PROJECT / "recipes" / "contexts" / "captions.yaml"
        shared = Path("../shared/data")
        assert set(load_contexts_recipe(own).inputs) == {str(shared / file) for file in named}
        for file in sorted(named):
            (options.data / file).parent.mkdir(exist_ok=True)
            (options.data / file).write_text("A text.")
        options = dataclasses.replace(
            options, contexts=dataclasses.replace(options.contexts, recipe=None)
        )
    lines = plan_contexts(experiment, dataclasses.replace(options, full=True))
    planned = {line.row.key for line in lines if line.measurement}
    scoring = [row.key for row in experiment.rows.values() if row.contexts.scorer]
    assert planned == set(scoring)
    folders = [one.folder for one in measurements(lines)]
    assert len(folders) == len(set(folders))
    assert {"word-overlap", "tfidf-cosine"} <= {row.contexts.scorer for row in _rows(experiment)}
    assert not options.runs.exists()


@pytest.mark.parametrize("name", NAMES)
def test_plan_contexts_data_is_the_folder_of_the_corpus_too(name, options, tmp_path, monkeypatch):
    # Nothing is where the recipes of the repository have it.
    elsewhere = tmp_path / "elsewhere" / "below"
    elsewhere.mkdir(parents=True)
    monkeypatch.chdir(elsewhere)
    recipe = load_contexts_recipe(PROJECT / "recipes" / "contexts" / "captions.yaml")
    files = [options.data / Path(path).relative_to("../shared/data") for path in recipe.inputs]
    options = dataclasses.replace(options, contexts=ContextsOptions())
    with pytest.raises(InputError, match=r"--data must name a folder that holds corpus/openstax"):
        plan_contexts(load_experiment(name), options)
    for file in files:
        file.parent.mkdir(exist_ok=True)
        file.write_text("A text.")
    inputs = {
        path
        for line in plan_contexts(load_experiment(name), options)
        if line.measurement
        for path in line.measurement.recipe.inputs
    }
    assert inputs <= set(map(str, files))


def test_plan_contexts_every_experiment_is_in_the_documentation():
    page = (PROJECT / "papers" / "docs" / "reproduce.md").read_text("utf-8")
    assert sorted(re.findall(r"^\| `(ssbc-[\w-]+)` \|", page, re.MULTILINE)) == sorted(NAMES)


def measurements(lines):
    return [line.measurement for line in lines if line.measurement]


def _rows(experiment):
    return experiment.rows.values()


def test_part_folder_changes_with_what_decides_it_alone(options):
    def folders(*overrides):
        changed = dataclasses.replace(options, overrides=overrides)
        lines = plan_contexts(load_experiment("ssbc-cases"), changed)
        recipe = measurements(lines)[0].recipe
        return {part: part_folder(options.runs, part, recipe) for part in ORDER}

    base = folders()

    def changed(*overrides):
        return [part for part, folder in folders(*overrides).items() if folder != base[part]]

    assert changed("scoring.batch_size=8") == []
    assert changed("surrogate.width=32") == ["surrogate"]
    assert changed("scoring.center=context") == ["harvest", "surrogate"]
    assert changed("selection.size=4") == ["origin", "harvest", "surrogate"]
    assert changed("coherence.head=linear") == ["coherence", "origin", "harvest", "surrogate"]
    assert len(changed("corpus.min_words=4")) == 6


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("ssbc-table7", {"overrides": ("selection.size=3",)}, "differ in 'selection.size'"),
        ("ssbc-table6", {"only": ("sick-r",)}, "ssbc-table6 measures on sts-b"),
        ("ssbc-table6", {"rows": 2}, "--rows must be at least 3, got 2"),
        ("ssbc-table2", {"data": Path("none")}, r"no none/sts12-16: --data must name"),
    ],
)
def test_plan_contexts_mistake_is_told(name, change, message, options):
    own = {key: value for key, value in change.items() if hasattr(options.contexts, key)}
    rest = {key: value for key, value in change.items() if key not in own}
    contexts = dataclasses.replace(options.contexts, **own)
    with pytest.raises(InputError, match=message):
        plan_contexts(
            load_experiment(name), dataclasses.replace(options, contexts=contexts, **rest)
        )


def test_load_gold_set_rows_are_drawn_once_and_in_order(options):
    def few(rows):
        return dataclasses.replace(options, contexts=ContextsOptions(rows=rows))

    one, other = (load_gold_set("sts-b", few(4)) for _ in range(2))
    every = load_gold_set("sts-b", options)
    assert len(one.task) == 4
    assert one.task.sentences1 == other.task.sentences1
    places = [every.task.sentences1.index(text) for text in one.task.sentences1]
    assert places == sorted(places)
    assert one.code != every.code
    assert load_gold_set("sts-b", few(6)).code == every.code


class Fake:
    """Terms that tell which pair they belong to."""

    def __init__(self):
        self.without_contexts = 0
        self.asked: list[str] = []

    def pair_terms(self, sentences1, sentences2):
        for sentence, _ in zip(sentences1, sentences2, strict=True):
            self.asked.append(sentence)
            self.without_contexts += int(sentence) % 2
            values = np.full(1 + int(sentence) % 3, float(sentence), np.float32)
            yield PairTerms({"left": values}, {"left": -values}, {})


def test_write_blocks_goes_on_where_it_stopped(tmp_path):
    texts = tuple(str(row) for row in range(2 * BLOCK + 5))
    task = Task("t", "r", texts, texts, None, np.zeros(len(texts), np.float32))
    scorer = Fake()
    told = []
    write_blocks(tmp_path, scorer, task, progress=lambda *what: told.append(what))
    assert told == [(0, 261), (128, 261), (256, 261), (261, 261)]
    second = tmp_path / "terms-00001.npz"
    second.write_bytes(second.read_bytes()[:100])  # cut off
    assert missing_pairs(tmp_path, len(task)) == BLOCK + 5
    again = Fake()
    write_blocks(tmp_path, again, task, progress=lambda *what: None)
    assert again.asked == list(texts[BLOCK:])
    assert missing_pairs(tmp_path, len(task)) == 0
    blocks = list(stored_blocks(tmp_path, len(task)))
    assert sum(block.without_contexts for block in blocks) == BLOCK + 2
    pairs = [pair for block in blocks for pair in block.pairs]
    assert [pair.first["left"][0] for pair in pairs] == [float(text) for text in texts]
    assert [len(pair.second["left"]) for pair in pairs] == [1 + int(text) % 3 for text in texts]


def test_by_rank_equal_scores_share_their_labels():
    scores = np.array([0.5, 0.1, 0.5, 0.9], np.float32)
    labels = np.array([0, 1, 2, 5], np.float32)
    assert by_rank(scores, labels).tolist() == [1.5, 0.0, 1.5, 5.0]
