"""Everyday judgments: how often a score is on the right side of 0.5, and the area under the curve.

``python -m papers.model.everyday --model default --out papers/docs/results/everyday`` writes a page
and its JSON. A label of more than 3 of 5 says that two texts are alike in what is asked.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from condsim.data.written import WrittenTask, load_written
from condsim.evaluation.metrics import auroc
from condsim.evaluation.statistics import Metric
from condsim.io import write_json, write_text
from condsim.loading import named_scorer
from condsim.model.baselines import baseline, out_of_fold
from condsim.types import BoolArray, Float64Array
from papers.model.measured import opened
from papers.model.noise import SURROUNDINGS, Lines, surrounded, surroundings
from papers.model.sources import ROOT

TEST = ROOT / "data" / "everyday" / "test.txt"
WITHOUT = "without a condition"


def scores_of(task: WrittenTask, models: Sequence[str]) -> Iterator[tuple[str, Float64Array]]:
    """Score the rows by the baselines, then by each model with and without the conditions."""
    texts = task.sentences1, task.sentences2
    overlap = baseline("word-overlap").score(*texts, task.conditions)
    yield "word overlap", np.asarray(overlap, np.float64)
    yield "condition only", np.asarray(out_of_fold(task), np.float64)
    for model in models:
        named = named_scorer(model)
        scorer, name = opened(named), named.name
        yield name, np.asarray(scorer.score(*texts, task.conditions), np.float64)
        yield f"{name}, {WITHOUT}", np.asarray(scorer.score(*texts), np.float64)


def figures(scores: Float64Array, alike: BoolArray, pairs: Any) -> dict[str, list[float]]:  # noqa: ANN401
    """Compute accuracy at 0.5 and the area under the curve, times 100, with 95 % intervals."""
    right = ((scores >= 0.5) == alike).astype(np.float64)

    def share(weights: Float64Array) -> Float64Array:
        return np.asarray(weights @ right / weights.sum(axis=1))

    accuracy = Metric.bootstrapped(share, pairs, resamples=1000, seed=0)
    found = {"right": accuracy, "auc": auroc(scores, alike, pairs)}
    return {
        name: [round(100 * value, 1) for value in (metric.value, metric.low, metric.high)]
        for name, metric in found.items()
    }


def measure(task: WrittenTask, models: Sequence[str]) -> dict[str, Any]:
    """Measure the baselines and the models on all rows, and on the rows of each kind."""
    texts = [*zip(task.sentences1, task.sentences2, strict=True)]
    alike, pairs = task.gold > 0.5, np.unique(texts, axis=0, return_inverse=True)[1]
    kinds = np.array(task.domains)
    results: dict[str, Any] = {"rows": len(task), "pairs": int(pairs.max()) + 1, "models": {}}
    for name, scores in scores_of(task, models):
        own = figures(scores, alike, pairs)
        by_kind = {
            str(kind): figures(scores[rows], alike[rows], pairs[rows])
            for kind in np.unique(kinds)
            if (rows := np.flatnonzero(kinds == kind)).size
        }
        results["models"][name] = {**own, "kinds": by_kind}
    return results


def among_others(task: WrittenTask, lines: Lines) -> WrittenTask:
    """Put each text into a message, a page, a log, a chat or a form.

    A text has the same surroundings under all conditions of its pair.
    """
    draw = random.Random(0)
    texts = sorted({*task.sentences1, *task.sentences2})
    long = {text: surrounded(text, draw, lines) for text in texts}
    return replace(
        task,
        sentences1=tuple(long[text] for text in task.sentences1),
        sentences2=tuple(long[text] for text in task.sentences2),
    )


def page(results: dict[str, Any]) -> str:
    """Write the page of the results."""
    models, others = results["models"], results["among_others"]
    lines = [
        "# Everyday judgments",
        "",
        f"{results['rows']} judgments of {results['pairs']} written pairs "
        "(`data/everyday/test.txt`), which no model was trained on and nothing was chosen by. "
        "*Right*: the score is on the side of 0.5 on which the label is; *AUC*: the area under the "
        "ROC curve. Both times 100, with 95 % intervals over pairs. *Condition only* is fitted out "
        "of fold.",
        "",
        *_table(models),
    ]
    chosen = [name for name in models if WITHOUT not in name and name[0] not in "wc"]
    head = " | ".join(f"{name}: right | AUC" for name in chosen)
    lines += ["", f"| kind | {head} |", "|---|" + "---:|" * (2 * len(chosen))]
    for kind in models[chosen[0]]["kinds"]:
        own = [models[name]["kinds"][kind] for name in chosen]
        cells = " | ".join(f"{one['right'][0]:.0f} | {one['auc'][0]:.0f}" for one in own)
        lines.append(f"| {kind} | {cells} |")
    lines += [
        "",
        "## Texts among others",
        "",
        "Each text stands in a message, a page, a log, a chat or a form (20 to 300 words more). "
        "Their lines (`data/noise/test.txt`) are by another hand than the lines in training. "
        "The shapes are the same.",
        "",
        *_table({name: own for name, own in others.items() if name != "condition only"}),
        "",
        "`python -m papers.model.everyday` makes this page.",
        "",
    ]
    return "\n".join(lines)


def _table(models: Mapping[str, Any]) -> list[str]:
    rows = (
        f"| {name} | {_cell(own['right'])} | {_cell(own['auc'])} |" for name, own in models.items()
    )
    return ["| | right | AUC |", "|---|---:|---:|", *rows]


def _cell(figure: Sequence[float]) -> str:
    return "{:.1f} [{:.1f}, {:.1f}]".format(*figure)


def main() -> None:
    """Measure the models and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file", type=Path, default=TEST)
    parser.add_argument("--surroundings", type=Path, default=SURROUNDINGS / "test.txt")
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--out", type=Path, required=True, help="path without suffix")
    options = parser.parse_args()
    task, models = load_written(options.file), options.model or ["default"]
    results = measure(task, models)
    long = among_others(task, surroundings(options.surroundings))
    results["among_others"] = measure(long, models)["models"]
    write_json(results, options.out.with_suffix(".json"))
    write_text(options.out.with_suffix(".md"), page(results))


if __name__ == "__main__":
    main()
