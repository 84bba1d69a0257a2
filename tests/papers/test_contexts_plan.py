from __future__ import annotations

import dataclasses
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sentencex")

from papers.columns import TEST_SETS
from papers.contexts import (
    BLOCK,
    by_rank,
    drawn_cases,
    missing_pairs,
    part_folder,
    plan_contexts,
    stored_blocks,
    write_blocks,
)
from papers.data.sts import STS_COUNTS
from papers.options import load_gold_set

from condsim.contexts.equations import PairTerms
from condsim.contexts.recipe import load_contexts_recipe
from condsim.errors import InputError
from condsim.types import Task
from papers import ContextsOptions, Options, load_experiment, names, open_work

PROJECT = Path(__file__).resolve().parents[2]
ORDER = ("corpus", "coherence", "generators", "origin", "harvest", "surrogate")
NAMES = [name for name in names() if name.startswith("ssbc")]


@pytest.fixture
def options(tmp_path, monkeypatch) -> Options:
    monkeypatch.chdir(PROJECT)
    pairs = [f"{row % 6}.0\tA man runs {row}.\tA dog runs {row}." for row in range(8)]
    for folder in ("sts-b", "sts12-16", "sick-r"):
        (tmp_path / folder).mkdir()
    (tmp_path / "sts-b" / "sts-test.csv").write_text(
        "".join(f"main\tours\t2012\t{row:04}\t{pair}\n" for row, pair in enumerate(pairs))
    )
    for year, subsets in STS_COUNTS.items():
        for subset in subsets:
            file = tmp_path / "sts12-16" / f"sts{year % 100}.{subset}.test.tsv"
            file.write_text("score\tsentence1\tsentence2\n" + "\n".join(pairs) + "\n")
    rows = [f"{row}\tA man.\tA dog.\t{1 + row % 5}\tNEUTRAL\n" for row in range(8)]
    head = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    (tmp_path / "sick-r" / "sick_test.tsv").write_text(head + "".join(rows))
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
        for file in load_contexts_recipe(PROJECT / "recipes/contexts/openstax.yaml").inputs:
            if not Path(file).is_file():
                pytest.skip(f"{file} is not here")
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


def test_plan_contexts_every_experiment_is_in_the_documentation():
    page = (PROJECT / "papers" / "docs" / "reproduce.md").read_text("utf-8")
    assert sorted(re.findall(r"^\| `(ssbc-[\w-]+)` \|", page, re.MULTILINE)) == sorted(NAMES)


def measurements(lines):
    return [line.measurement for line in lines if line.measurement]


def _rows(experiment):
    return experiment.rows.values()


def test_plan_contexts_known_numbers_of_the_paper():
    assert load_experiment("ssbc-table2").paper("origin", "spearman", "sts16").value == 79.93
    assert load_experiment("ssbc-table6").paper("paper-10m", "spearman", "sts-b").value == 49.41
    assert load_experiment("ssbc-table9").paper("no-sides", "spearman", "sts-b").text == "76.50"


def test_plan_contexts_seven_sets_or_those_asked_for(options):
    experiment = load_experiment("ssbc-table2")
    assert len(measurements(plan_contexts(experiment, options))) == 5 * len(TEST_SETS)
    only = dataclasses.replace(options.contexts, only=("sick-r",))
    lines = plan_contexts(experiment, dataclasses.replace(options, contexts=only))
    assert len(measurements(lines)) == 5
    assert {line.gold for line in lines if line.row.key == "glove"} == set(TEST_SETS)


def test_plan_contexts_candidates_are_changed_for_counts_too(options):
    changed = dataclasses.replace(options, overrides=("selection.candidates=3",))
    for experiment in map(load_experiment, NAMES):
        if "inputs" not in next(iter(experiment.rows.values())).set:
            runs = measurements(plan_contexts(experiment, changed))
            assert {run.recipe.selection.candidates for run in runs} == {3}


def test_plan_contexts_of_one_scorer_come_together(options):
    scorers = [
        one.part_folder.name for one in open_work(load_experiment("ssbc-choices"), options).runs
    ]
    changes = sum(one != other for one, other in pairwise(scorers))
    assert changes == len(set(scorers)) - 1


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
        ("ssbc-table7", {"overrides": ("selection={size: 3}",)}, r"differ in 'selection\."),
        ("ssbc-table7", {"overrides": ("selection.sise=3",)}, "'sise'"),
        ("ssbc-table9", {"overrides": ("scoring.weights.left=0",)}, "differ in 'scoring.weights"),
        ("ssbc-table6", {"only": ("sick-r",)}, "ssbc-table6 measures on sts-b"),
        ("ssbc-table6", {"rows": 2}, "--rows must be at least 3, got 2"),
        ("ssbc-table6", {"data": Path("none")}, r"no none/sts-b/sts-test\.csv: --data must name"),
        ("ssbc-table2", {"data": Path("none")}, r"no none/sts12-16: --data must name"),
        ("ssbc-table2", {"data": None}, "folder of the data sets with --data; it must hold sts12"),
        ("ssbc-table6", {"recipe": Path("none.yaml")}, r"contexts recipe none\.yaml"),
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


def test_plan_contexts_weight_of_a_term_that_is_not_computed_is_told(options):
    experiment = load_experiment("ssbc-cases")
    origin = experiment.rows["origin"]
    how = origin.contexts.replaced(weights={"left": 1.0})
    changed = experiment.replaced(rows={"origin": origin.replaced(contexts=how)})
    chosen = dataclasses.replace(options, overrides=("scoring.weights.left=0",))
    with pytest.raises(InputError, match="row 'origin' weighs the term 'left'"):
        plan_contexts(changed, chosen)


def test_load_gold_set_year_is_its_subsets_together(options):
    gold = load_gold_set("sts12", options)
    assert len(gold.task) == 5 * 8
    assert gold.label == "STS12"
    assert "STS12.MSRvid" in gold.source


def test_load_gold_set_rows_are_drawn_once_and_in_order(options):
    def few(rows):
        return dataclasses.replace(options, contexts=ContextsOptions(rows=rows))

    one, other = (load_gold_set("sts-b", few(5)) for _ in range(2))
    every = load_gold_set("sts-b", options)
    assert len(one.task) == 5
    assert one.task.sentences1 == other.task.sentences1
    places = [every.task.sentences1.index(text) for text in one.task.sentences1]
    assert places == sorted(places)
    assert one.code != every.code
    assert load_gold_set("sts-b", few(8)).code == every.code


class Fake:
    """Terms that tell which pair they belong to."""

    def __init__(self) -> None:
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


def test_drawn_cases_are_two_of_each_fifth_from_the_top():
    labels = np.repeat(np.arange(6, dtype=np.float32), 4)
    rows = drawn_cases(labels, (0.0, 5.0))
    assert len(rows) == 10
    assert sorted(labels[rows], reverse=True) == labels[rows].tolist()
    assert set(labels[rows][2:].astype(int)) == {0, 1, 2, 3}
    assert len(drawn_cases(labels[:1], (0.0, 5.0))) == 1
