"""``python -m benchmarks.comparison``: condsim next to the tools that one would use instead.

Four small tasks, each with a table of ``docs/comparison.md``: a hundred rows of pairs, search,
groups and duplicates. Samples are drawn with a fixed seed. BERTopic and semhash are measured where
they are installed, language models and cross-encoders where ``--scorer`` names one.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from enum import StrEnum
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, f1_score
from threadpoolctl import threadpool_limits

from benchmarks.clustering import over_seeds
from benchmarks.comparison_samples import (
    PRODUCT,
    ROOT,
    Facet,
    draw_facets,
    draw_pairs,
    draw_products,
)
from benchmarks.comparison_tables import fill, percent, table_row
from condsim.cli.process import run_app
from condsim.evaluation.evaluate import Scores, evaluate
from condsim.evaluation.statistics import Metric
from condsim.io import write_text
from condsim.loading import named_scorer, open_scorer
from condsim.model.embedding import EmbeddingScorer
from condsim.model.minilm import MINILM
from condsim.search.clustering import cluster
from condsim.search.dedupe import find_duplicates
from condsim.types import BoolArray, FloatArray, IntArray, Scorer, Task

PAGE = ROOT / "docs" / "comparison.md"


class Table(StrEnum):
    """Names of the tables, as in the marks of the page."""

    PAIRS = "pairs"
    SEARCH = "search"
    GROUPS = "groups"
    DUPLICATES = "duplicates"


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
# Number of seeds of the groups.
_SEEDS = 5
# Scores and cosines that may be thresholds of duplicates.
_THRESHOLDS = np.linspace(0.05, 0.99, 48)


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
            cells = (f"{number:,.1f}" for number in cost)
            yield table_row(name, [metrics["pair_accuracy"], metrics["spearman"]], *cells)


def facet_row(name: str, facets: Sequence[Facet], figure: Callable[[Facet], Metric]) -> str:
    """Measure an approach on each facet, and its time in seconds."""
    start = time.perf_counter()
    figures = [figure(facet) for facet in facets]
    return table_row(name, figures, f"{time.perf_counter() - start:.1f}")


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
    """Adjusted Rand index over seeds of as many groups as the facet has values.

    The groups come from k-means on the embeddings, or from BERTopic.
    """
    # UMAP raises the number of threads, which slows encoders down on busy processors.
    with threadpool_limits(1):
        vectors = encoder.encode(facet.texts, facet.condition if conditional else None)
    k = len(set(facet.values))
    figures = []
    for seed in range(_SEEDS):
        if topics:
            labels = _topics(facet.texts, vectors, k=k, seed=seed)
        else:
            labels = cluster(facet.texts, None, k=k, vectors=vectors, seed=seed).labels
        figures.append(float(adjusted_rand_score(facet.values, labels)))
    return over_seeds(figures)


def _topics(texts: Sequence[str], vectors: FloatArray, *, k: int, seed: int) -> IntArray:
    """Topics of BERTopic with its own UMAP, plus a seed; k-means assigns all texts."""
    umap, bertopic = import_module("umap"), import_module("bertopic")
    reducer = umap.UMAP(n_components=5, min_dist=0.0, metric="cosine", random_state=seed)
    groups = KMeans(k, n_init=10, random_state=seed)
    model = bertopic.BERTopic(umap_model=reducer, hdbscan_model=groups)
    return np.array(model.fit_transform(list(texts), embeddings=vectors)[0])


Detector = Callable[[float], BoolArray]
"""Returns which pairs are duplicates at a threshold, ``(n,)``."""


def score_detector(task: Task, *, scorer: Scorer, conditional: bool) -> Detector:
    """Detect pairs whose score reaches the threshold."""
    scores = scores_of(scorer, task, conditional=conditional)
    return lambda threshold: np.asarray(scores >= threshold)


def collection_detector(task: Task, *, encoder: EmbeddingScorer, semhash: bool) -> Detector:
    """Detect pairs for which one text is kept when all texts of the task are deduplicated."""
    texts = list(dict.fromkeys([*task.sentences1, *task.sentences2]))
    if semhash:
        collection = import_module("semhash").SemHash.from_records(texts, model=encoder)

    def detect(threshold: float) -> BoolArray:
        if semhash:
            filtered = collection.self_deduplicate(threshold).filtered
            kept_of = {duplicate.record: duplicate.duplicate_of for duplicate in filtered}
        else:
            rows = find_duplicates(texts, encoder, PRODUCT, at_least=threshold, overall=0).kept_row
            kept_of = {text: texts[row] for text, row in zip(texts, rows.tolist(), strict=True)}
        pairs = zip(task.sentences1, task.sentences2, strict=True)
        return np.array(
            [kept_of.get(first, first) == kept_of.get(second, second) for first, second in pairs]
        )

    return detect


def duplicate_row(name: str, samples: Sequence[Task], detector: Callable[[Task], Detector]) -> str:
    """Choose the threshold on the first sample; measure F1 and the time on the second."""
    detect, gold = detector(samples[0]), samples[0].labels == 1
    best = float(max(_THRESHOLDS, key=lambda value: float(f1_score(gold, detect(value)))))
    start, gold = time.perf_counter(), samples[1].labels == 1
    detected = detector(samples[1])(best)
    seconds = time.perf_counter() - start
    figure = percent(
        lambda rows: float(f1_score(gold[rows], detected[rows], zero_division=0.0)), len(gold)
    )
    return table_row(name, [figure], f"{best:.2f}", f"{seconds:.1f}")


def search_rows(facets: Sequence[Facet], opened: Mapping[str, Scorer]) -> Iterator[str]:
    """Search by each approach, and by chance."""
    for name, (source, conditional) in APPROACHES.items():
        searching = partial(precision, scorer=opened[source], conditional=conditional)
        yield facet_row(name, facets, searching)
    yield facet_row("random order", facets, precision_by_chance)


def duplicate_rows(samples: Sequence[Task], opened: Mapping[str, Scorer]) -> Iterator[str]:
    """Detect duplicates by each approach: pair by pair, then in the whole collection."""
    for name, (source, conditional) in APPROACHES.items():
        detecting = partial(score_detector, scorer=opened[source], conditional=conditional)
        yield duplicate_row(name, samples, detecting)
    for label, source in (("condsim dedupe", "default"), ("semhash", MINILM[0])):
        encoder = opened[source]
        if isinstance(encoder, EmbeddingScorer) and (
            source == "default" or find_spec("semhash") is not None
        ):
            in_collection = partial(
                collection_detector, encoder=encoder, semhash=label == "semhash"
            )
            yield duplicate_row(f"{label}, all texts at once", samples, in_collection)


def group_rows(facets: Sequence[Facet], opened: Mapping[str, Scorer]) -> Iterator[str]:
    """Group by each approach that has embeddings, and by BERTopic."""
    ways = [(name, name, False) for name in APPROACHES]
    if find_spec("bertopic") is not None:
        ways += [("BERTopic", PLAIN_MINILM, True), ("BERTopic on condsim", CONDSIM, True)]
    for label, name, topics in ways:
        source, conditional = APPROACHES[name]
        encoder = opened[source]
        if isinstance(encoder, EmbeddingScorer):
            grouping = partial(agreement, encoder=encoder, conditional=conditional, topics=topics)
            yield table_row(label, [grouping(facet) for facet in facets])


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
    table: Annotated[
        list[Table] | None, typer.Option(help="Make this table only. Repeatable.")
    ] = None,
    page: Annotated[Path, typer.Option(help="The page with the tables to replace.")] = PAGE,
) -> None:
    """Measure condsim and its alternatives on four tasks and write the tables of the page."""
    chosen, rows = set(table or Table), dict[str, list[str]]()
    if Table.PAIRS in chosen:
        # First, so that each process starts from a small one.
        named = [named_scorer(name) for name in scorer or ()]
        added = {other.name: Approach(other.source, conditional=True) for other in named}
        task = draw_pairs(ROOT / "data" / "written" / "dev.txt", pairs=pairs)
        rows[Table.PAIRS] = list(pair_rows(task, {**APPROACHES, **added}))
    opened = {
        name: open_scorer(name) for name in dict.fromkeys(a.scorer for a in APPROACHES.values())
    }
    facets = draw_facets(data / "criteria", texts=texts)
    if Table.SEARCH in chosen:
        rows[Table.SEARCH] = list(search_rows(facets, opened))
    if Table.DUPLICATES in chosen:
        samples = draw_products(data / "criteria" / "wdc" / "dev.jsonl.gz", pairs=products)
        rows[Table.DUPLICATES] = list(duplicate_rows(samples, opened))
    if Table.GROUPS in chosen:
        rows[Table.GROUPS] = list(group_rows(facets, opened))
    write_text(page, fill(page.read_text(encoding="utf-8"), rows))
    typer.echo(f"{page}: {sum(map(len, rows.values()))} rows")


if __name__ == "__main__":
    run_app(app)
