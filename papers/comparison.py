"""``python -m papers.comparison``: condsim next to the tools that one would use instead.

Four small tasks, each with a table of ``docs/comparison.md``: a hundred rows of pairs, search,
groups and duplicates. Samples are drawn with a fixed seed. BERTopic and semhash are measured where
they are installed, language models and cross-encoders where ``--scorer`` names one.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from sklearn.cluster import KMeans
from sklearn.metrics import f1_score, v_measure_score

from condsim.cli.process import run_app
from condsim.errors import InputError
from condsim.evaluation.bootstrap import Metric
from condsim.evaluation.evaluate import Scores, evaluate
from condsim.io import MINILM, write_text
from condsim.loading import named_scorer, open_scorer
from condsim.model.embedding import EmbeddingScorer
from condsim.search.cluster import cluster
from condsim.types import BoolArray, FloatArray, IntArray, Scorer, Task
from papers.comparison_samples import ROOT, Facet, draw_facets, draw_pairs, draw_products

PAGE = ROOT / "docs" / "comparison.md"


class Approach(NamedTuple):
    """Name of a scorer, and whether it is given the condition."""

    scorer: str
    conditional: bool


CONDSIM, PLAIN_MINILM = "**condsim**", "all-MiniLM-L6-v2"
APPROACHES: Mapping[str, Approach] = {
    CONDSIM: Approach("default", conditional=True),
    "condsim, no condition": Approach("default", conditional=False),
    "all-MiniLM-L6-v2, condition in front": Approach(MINILM[0], conditional=True),
    PLAIN_MINILM: Approach(MINILM[0], conditional=False),
    "word overlap": Approach("word-overlap", conditional=False),
}

_DEPTH = 10
_RESAMPLES = 500
# Scores and cosines that may be thresholds of duplicates.
_THRESHOLDS = np.linspace(0.05, 0.99, 95)


def table_row(approach: str, figures: Sequence[Metric], *cells: float) -> str:
    """Lay figures, times 100, and other numbers out as a row of a table."""
    words = [
        f"{figure.value:.1f}"
        + ("" if np.isnan(figure.low) else f" [{figure.low:.1f}, {figure.high:.1f}]")
        for figure in figures
    ]
    return f"| {' | '.join([approach, *words, *(f'{cell:,.1f}' for cell in cells)])} |"


def percent(statistic: Callable[[IntArray], float], size: int) -> Metric:
    """Evaluate a statistic of rows, given their indices, with its bootstrap interval."""
    generator = np.random.default_rng(0)
    draws = [statistic(generator.integers(size, size=size)) for _ in range(_RESAMPLES)]
    return Metric.of(100 * statistic(np.arange(size)), 100 * np.array(draws))


def scores_of(scorer: Scorer, task: Task, *, conditional: bool) -> FloatArray:
    """Score the rows of a task, with or without their conditions."""
    return scorer.score(task.sentences1, task.sentences2, task.conditions if conditional else None)


def measure_scores(approach: Approach, task: Task) -> tuple[FloatArray, tuple[float, float, float]]:
    """Load a scorer and score a task; both times in seconds and the peak memory in MiB."""
    start = time.perf_counter()
    scorer = open_scorer(approach.scorer)
    loaded = time.perf_counter()
    scores = scores_of(scorer, task, conditional=approach.conditional)
    scored = time.perf_counter()
    # The high-water mark of Linux, which begins again in each process.
    status = Path("/proc/self/status").read_text(encoding="utf-8").split("VmHWM:")
    return scores, (loaded - start, scored - loaded, float(status[1].split()[0]) / 1024)


def pair_rows(task: Task, approaches: Mapping[str, Approach]) -> Iterator[str]:
    """Score a task by each approach in a separate process."""
    spawning = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawning, max_tasks_per_child=1) as processes:
        for name, approach in approaches.items():
            scores, cost = processes.submit(measure_scores, approach, task).result()
            metrics = evaluate(Scores(name, scores), task).model.metrics
            yield table_row(name, [metrics["pair_accuracy"], metrics["spearman"]], *cost)


def facet_row(name: str, facets: Sequence[Facet], figure: Callable[[Facet], Metric]) -> str:
    """Measure an approach on each facet, and its time in seconds."""
    start = time.perf_counter()
    figures = [figure(facet) for facet in facets]
    return table_row(name, figures, time.perf_counter() - start)


def precision(facet: Facet, *, scorer: Scorer, conditional: bool) -> Metric:
    """Share of the ten best hits of a text that have its value, the mean over all texts."""
    texts, values = facet.texts, facet.values
    if isinstance(scorer, EmbeddingScorer):
        vectors = scorer.encode(texts, facet.condition if conditional else None)
        compared = vectors @ vectors.T
    else:
        compared = np.stack([scorer.score([text] * len(texts), texts, None) for text in texts])
    # A text is not a hit of itself.
    np.fill_diagonal(compared, -np.inf)
    hits = np.argsort(-compared, axis=1, kind="stable")[:, :_DEPTH]
    shares = (values[hits] == values[:, None]).mean(axis=1)
    return percent(lambda rows: float(shares[rows].mean()), len(texts))


def precision_by_chance(facet: Facet) -> Metric:
    """Share of the other texts that have the value of a text, the mean over all texts."""
    number = len(facet.values)
    same = int((facet.values[:, None] == facet.values).sum()) - number
    return Metric(100 * same / (number * (number - 1)), np.nan, np.nan)


def agreement(facet: Facet, *, encoder: EmbeddingScorer, conditional: bool, topics: bool) -> Metric:
    """V-measure of as many groups as the facet has values, by k-means or by BERTopic."""
    vectors = encoder.encode(facet.texts, facet.condition if conditional else None)
    k = len(set(facet.values))
    if topics:
        # UMAP is set as in BERTopic, plus a seed. K-means assigns all texts.
        umap, bertopic = import_module("umap"), import_module("bertopic")
        reducer = umap.UMAP(n_components=5, min_dist=0.0, metric="cosine", random_state=0)
        groups = KMeans(k, n_init=10, random_state=0)
        model = bertopic.BERTopic(umap_model=reducer, hdbscan_model=groups)
        labels = np.array(model.fit_transform(list(facet.texts), embeddings=vectors)[0])
    else:
        labels = cluster(facet.texts, None, k=k, vectors=vectors).labels
    return percent(
        lambda rows: float(v_measure_score(facet.values[rows], labels[rows])), len(labels)
    )


Detector = Callable[[float], BoolArray]
"""Returns which pairs are duplicates at a threshold, ``(n,)``."""


def score_detector(task: Task, *, scorer: Scorer, conditional: bool) -> Detector:
    """Detect pairs whose score reaches the threshold."""
    scores = scores_of(scorer, task, conditional=conditional)
    return lambda threshold: scores >= threshold


def semhash_detector(task: Task, *, encoder: Any) -> Detector:  # noqa: ANN401
    """Detect pairs of which semhash keeps the same text."""
    texts = list(dict.fromkeys([*task.sentences1, *task.sentences2]))
    collection = import_module("semhash").SemHash.from_records(texts, model=encoder)

    def detect(threshold: float) -> BoolArray:
        filtered = collection.self_deduplicate(threshold).filtered
        kept = {duplicate.record: duplicate.duplicate_of for duplicate in filtered}
        sides = [
            [kept.get(text, text) for text in side] for side in (task.sentences1, task.sentences2)
        ]
        return np.array(sides[0]) == np.array(sides[1])

    return detect


def duplicate_row(name: str, samples: Sequence[Task], detector: Callable[[Task], Detector]) -> str:
    """Choose the threshold on the first sample and measure F1 on the second."""
    start = time.perf_counter()
    (first, gold), second = ((detector(task), task.labels == 1) for task in samples)
    best = max(_THRESHOLDS, key=lambda threshold: float(f1_score(gold, first(threshold))))
    detected, gold = second[0](best), second[1]
    seconds = time.perf_counter() - start
    figure = percent(
        lambda rows: float(f1_score(gold[rows], detected[rows], zero_division=0.0)), len(gold)
    )
    return table_row(name, [figure], float(best), seconds)


def fill(text: str, tables: Mapping[str, Sequence[str]]) -> str:
    """Replace the rows of each table between its marks, below its head."""
    for name, rows in tables.items():
        before, mark, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- /{name} -->")
        if not mark or not end:
            raise InputError(f"The page must have the lines <!-- {name} --> and <!-- /{name} -->.")
        head = rest.splitlines()[:2]
        text = before + mark + "\n".join([*head, *rows, end]) + after
    return text


app = typer.Typer(add_completion=False)


@app.command()
def main(
    data: Annotated[Path, typer.Option(help="Folder of the data sets.")] = Path("../shared/data"),
    scorer: Annotated[
        list[str] | None,
        typer.Option(help="LABEL=NAME of a scorer of pairs, such as a prompted model. Repeatable."),
    ] = None,
    pairs: Annotated[int, typer.Option(min=4, help="Pairs of texts, two rows each.")] = 50,
    texts: Annotated[int, typer.Option(min=50, help="Drug reviews drawn at most.")] = 300,
    products: Annotated[int, typer.Option(min=4, help="Product pairs of each label.")] = 200,
    page: Annotated[Path, typer.Option(help="The page with the tables to replace.")] = PAGE,
) -> None:
    """Measure condsim and its alternatives on four tasks and write the tables of the page."""
    named = [named_scorer(name) for name in scorer or ()]
    added = {other.name: Approach(other.source, conditional=True) for other in named}
    task = draw_pairs(ROOT / "data" / "written" / "dev.txt", pairs=pairs)
    # First, so that each process starts from a small one.
    rows = {"pairs": list(pair_rows(task, {**APPROACHES, **added}))}

    opened = {
        name: open_scorer(name) for name in dict.fromkeys(a.scorer for a in APPROACHES.values())
    }
    facets = draw_facets(data / "criteria", texts=texts)
    samples = draw_products(data / "criteria" / "wdc" / "dev.jsonl.gz", pairs=products)
    rows |= {"search": [], "groups": [], "duplicates": []}
    for name, approach in APPROACHES.items():
        opened_as = {"scorer": opened[approach.scorer]}
        searching = partial(precision, conditional=approach.conditional, **opened_as)
        detecting = partial(score_detector, conditional=approach.conditional, **opened_as)
        rows["search"].append(facet_row(name, facets, searching))
        rows["duplicates"].append(duplicate_row(name, samples, detecting))
    rows["search"].append(facet_row("random order", facets, precision_by_chance))
    ways = [(name, name, False) for name in APPROACHES if name != "word overlap"]
    if find_spec("bertopic") is not None:
        ways += [("BERTopic", PLAIN_MINILM, True), ("BERTopic on condsim", CONDSIM, True)]
    for label, name, topics in ways:
        encoder = opened[APPROACHES[name].scorer]
        assert isinstance(encoder, EmbeddingScorer)
        conditional = APPROACHES[name].conditional
        figure = partial(agreement, encoder=encoder, conditional=conditional, topics=topics)
        rows["groups"].append(facet_row(label, facets, figure))
    if find_spec("semhash") is not None:
        detector = partial(semhash_detector, encoder=opened[MINILM[0]])
        rows["duplicates"].append(duplicate_row("semhash", samples, detector))
    write_text(page, fill(page.read_text(encoding="utf-8"), rows))
    typer.echo(f"{page}: {sum(map(len, rows.values()))} rows")


if __name__ == "__main__":
    run_app(app)
