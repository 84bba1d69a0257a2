"""Measure models on a written suite, with shares of overall similarity and intervals.

``python -m papers.model.measured SUITE --model default --model large --out RESULT.json`` adds each
model to the file of results, and the rows of two baselines; a killed run continues. Without
``--model`` the command prints the tables of the file. A model is a name, a folder, or either after
``LABEL=``.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import logging
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from condsim.evaluation.statistics import percentile_interval
from condsim.evaluation.suite import SuiteSet
from condsim.evaluation.suite_data import SUITE_FILE, NaturalSet, load_natural_sets
from condsim.loading import NamedScorer, load_encoder, named_scorer
from condsim.model.baselines import baseline, out_of_fold
from condsim.model.embedding import EmbeddingScorer
from condsim.types import FloatArray
from papers.model.groups import Input

_LOGGER = logging.getLogger("condsim")

Scores = NDArray[np.float32]
Embed = Callable[[Sequence[Input]], Scores]
"""Unit vectors of inputs, ``(inputs, hidden)``."""

WITH, WITHOUT = "with the condition", "without"
SHARES: Mapping[str, float] = {WITH: 0.0, "share 0.3": 0.3, WITHOUT: 1.0}
"""Shares of the plain vector; 0 is the condition alone, 1 the model without it."""
RESAMPLES = 1000
BASELINES = ("word-overlap", "condition-only")
FAMILIES = (
    "graded",
    "matching",
    "retrieval, left out",
    "balanced, left out",
    "balanced, written",
    "negation",
    "details",
    "retrieval, trained",
    "balanced, trained",
)
"""Families in the order in which they are measured."""

Figure = Sequence[float]
"""A figure and its interval of 95 %."""
Figures = dict[str, dict[str, Figure]]
"""Figures by test or family, and by share."""


def scorer_embedder(scorer: EmbeddingScorer) -> Embed:
    """Embed by a loaded model."""

    def embed(inputs: Sequence[Input]) -> Scores:
        vectors = np.empty((len(inputs), scorer.dimension), np.float32)
        for told in (True, False):
            rows = [row for row, one in enumerate(inputs) if (one[0] is not None) is told]
            if rows:
                conditions = [str(inputs[row][0]) for row in rows] if told else None
                vectors[rows] = scorer.encode([inputs[row][1] for row in rows], conditions)
        return vectors

    return embed


def stored(embed: Embed, model: str, revision: str, folder: Path) -> Embed:
    """Keep the vectors of a model for the same inputs on disk."""

    def embed_once(inputs: Sequence[Input]) -> Scores:
        digest = hashlib.sha256(f"{revision} {list(inputs)!r}".encode()).hexdigest()[:12]
        path = folder / f"{model}-{digest}.npy"
        if not path.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            np.save(path, embed(inputs).astype(np.float16))
        vectors: Scores = np.load(path).astype(np.float32)
        return vectors

    return embed_once


def share_scores(
    embed: Embed, test: SuiteSet, shares: Mapping[str, float] = SHARES
) -> dict[str, FloatArray]:
    """Scores of the rows of a test by the name of the share; each input is embedded once."""
    numbers: dict[Input, int] = {}
    task = test.task
    columns = [
        [
            [numbers.setdefault(one, len(numbers)) for one in zip(conditions, texts, strict=True)]
            for texts in (task.sentences1, task.sentences2)
        ]
        for conditions in (task.conditions or (), [None] * len(task))
    ]
    vectors = embed(list(numbers))
    conditional, plain = (
        np.einsum("nd,nd->n", vectors[first], vectors[second]) for first, second in columns
    )
    return {name: (1 - share) * conditional + share * plain for name, share in shares.items()}


def baseline_scores(name: str, test: SuiteSet) -> dict[str, FloatArray]:
    """Scores of a baseline; of ``condition-only`` none where all rows have one condition."""
    task = test.task
    if name != "condition-only":
        scores = baseline(name).score(task.sentences1, task.sentences2, task.conditions)
        return {WITH: scores}
    return {WITH: out_of_fold(task, name=name)} if len(set(task.conditions or ())) > 1 else {}


def measure(
    scores: Callable[[SuiteSet], Mapping[str, FloatArray]],
    sets: Sequence[SuiteSet],
    *,
    resamples: int = RESAMPLES,
) -> tuple[Figures, dict[str, Figure]]:
    """Figures of the tests of a family, and their means, by the name of the share.

    There is no mean for a share that some of the tests lack.
    """
    tests: Figures = {}
    draws: dict[str, list[NDArray[np.float64]]] = defaultdict(list)
    for test in sets:
        assert isinstance(test, NaturalSet)
        by_share = scores(test)
        names = list(by_share)
        drawn = test.draws(list(by_share.values()), resamples=resamples, seed=0) if names else ()
        tests[test.key] = {}
        for name, resampled in zip(names, drawn, strict=True):
            # The first number is the figure on all rows.
            values = np.concatenate([test.values(by_share[name]), resampled[0]])
            tests[test.key][name] = _figure(values)
            draws[name].append(values)
        _LOGGER.info("%s: %s", test.key, {name: own[0] for name, own in tests[test.key].items()})
    complete = {name: values for name, values in draws.items() if len(values) == len(sets)}
    return tests, {name: _figure(np.mean(values, axis=0)) for name, values in complete.items()}


def by_family(sets: Sequence[SuiteSet]) -> dict[str, list[SuiteSet]]:
    """Tests by family, in the order of `FAMILIES`."""
    families: dict[str, list[SuiteSet]] = {family: [] for family in FAMILIES}
    for test in sets:
        families.setdefault(family_of(test.key), []).append(test)
    return {family: tests for family, tests in families.items() if tests}


def _figure(values: NDArray[np.float64]) -> Figure:
    return [
        round(float(value), 2) for value in (values[0], *percentile_interval(values[0], values[1:]))
    ]


def family_of(key: str) -> str:
    """Family of a test, the balanced and retrieval ones by kind."""
    family, title = key.split(": ", 1)
    if family == "retrieval":
        return f"{family}, {'left out' if '(left out)' in title else 'trained'}"
    return f"{family}, {title.split(':')[0]}" if family == "balanced" else family


def load_model(name: str, vectors: Path) -> Embed:
    """Embed by a model that condsim loads; vectors are kept on disk."""
    named = named_scorer(name)
    return stored(scorer_embedder(opened(named)), named.name, str(named.revision()), vectors)


def opened(named: NamedScorer) -> EmbeddingScorer:
    """Load the model of a name, which must give embeddings."""
    return load_encoder(named.open())  # type: ignore[arg-type]


def suite_facts(folder: Path) -> dict[str, Any]:
    """Number of tests and rows of a suite, and a hash of its files."""
    files = [folder / entry["file"] for entry in json.loads((folder / SUITE_FILE).read_text())]
    digest = hashlib.sha256(b"".join(gzip.decompress(file.read_bytes()) for file in files))
    return {"suite": folder.name, "tests": len(files), "sha256": digest.hexdigest()[:12]}


def tables(results: Mapping[str, Any]) -> str:
    """Tables of results in Markdown: families, then tests; a column for each model and share."""
    models = results["models"]
    columns = [
        (model, share)
        for model, found in models.items()
        for share in SHARES
        if any(share in by_share for by_share in found["tests"].values())
    ]
    lines = [
        "| | " + " | ".join(f"{model}, {share}" for model, share in columns) + " |",
        "|---|" + "---:|" * len(columns),
    ]
    for kind in ("families", "tests"):
        for title in next(iter(models.values()))[kind]:
            figures = [models[model][kind].get(title, {}).get(share) for model, share in columns]
            lines.append(f"| {title} | " + " | ".join(map(_cell, figures)) + " |")
    for model, share in columns:
        own = [by for by in models[model]["tests"].values() if share in by and WITHOUT in by]
        if own and share != WITHOUT:
            worse = sum(by[share][0] < by[WITHOUT][0] - 1 for by in own)
            lines.append(
                f"\n{model}, {share}: in {worse} of {len(own)} tests more than a point worse than "
                "without."
            )
    return "\n".join(lines) + "\n"


def _cell(figure: Figure | None) -> str:
    return "-" if figure is None else "{:.1f} [{:.1f}, {:.1f}]".format(*figure)


def main() -> None:
    """Measure models and print the tables of all results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", type=Path, nargs="?", help="folder of a written suite")
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--vectors", type=Path, default=Path("vectors"))
    parser.add_argument("--out", type=Path, required=True, help="file of results")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    results: dict[str, Any] = {"models": {}}
    if options.out.is_file():
        results = json.loads(options.out.read_text(encoding="utf-8"))
    if options.suite is not None:
        facts = suite_facts(options.suite)
        sets = load_natural_sets(options.suite)
        results = {**facts, "models": results["models"] if facts.items() <= results.items() else {}}
        for name in (*BASELINES, *options.model):
            add_model(name, by_family(sets), results, options)
    sys.stdout.write(tables(results))


def add_model(
    name: str,
    families: Mapping[str, Sequence[SuiteSet]],
    results: dict[str, Any],
    options: argparse.Namespace,
) -> None:
    """Measure a model on the families that its results lack, and save after each."""
    scorer = named_scorer(name)
    revision = scorer.revision()
    own = results["models"].get(scorer.name)
    if own is None or own["revision"] != revision:
        # The figures of another model of this name.
        own = {"revision": revision, "families": {}, "tests": {}}
        results["models"][scorer.name] = own
    missing = {family: sets for family, sets in families.items() if family not in own["families"]}
    if not missing:
        return
    if name in BASELINES:
        scores = partial(baseline_scores, name)
    else:
        scores = partial(share_scores, load_model(name, options.vectors))
    for family, sets in missing.items():
        tests, means = measure(scores, sets)
        own["tests"] |= tests
        own["families"][family] = means
        options.out.write_text(as_json(results), encoding="utf-8")


_FLAT_LIST = re.compile(r"\[\s+([^\[\]]*?)\s+\]")


def as_json(results: Mapping[str, Any]) -> str:
    """Results in JSON, a line for each figure."""
    text = json.dumps(results, indent=1)
    return _FLAT_LIST.sub(lambda match: f"[{' '.join(match[1].split())}]", text) + "\n"


if __name__ == "__main__":
    main()
