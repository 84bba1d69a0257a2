"""``python -m benchmarks.learned_thresholds``: how often the promise of a threshold is kept.

A criterion and its threshold are learned from labeled texts of a set; the precision of the
threshold is measured on the pairs of other texts. Next to it, a threshold that takes pairs of the
same texts for independent.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks.cluster_names import PAGE as NAMES, read
from condsim import __version__
from condsim.cli.process import run_app
from condsim.errors import InputError
from condsim.evaluation.threshold import PROMISES, find_threshold
from condsim.io import write_text
from condsim.labeling import EncodeOnce
from condsim.loading import load_encoder
from condsim.model.criterion import features
from condsim.model.learned_values import learn

SETS = (
    ("sentihood", "the opinion about the place in general"),
    ("clinc150", "the domain"),
    ("bitext", "the topic"),
    ("hwu64", "the domain"),
    ("medquad", "the kind of information"),
    ("snips", "the intent"),
    ("oats", "what is reviewed"),
)
PAGE = NAMES.with_name("learned-thresholds.md")
_TEXTS = 900
_VALUES = 8
_TESTED = 500
_FEWEST_TESTED = 150


def measure(
    name: str, condition: str, value_of: dict[str, str], encoder: EncodeOnce, labels: int, seed: int
) -> Iterator[dict[str, object]]:
    """Yield the promise and the precision on other texts, with and without shared texts counted."""
    texts, gold = np.array([*value_of]), np.array([*value_of.values()])
    order = np.random.default_rng(seed).permutation(len(texts))
    train, test = order[:labels], order[labels:][:_TESTED]
    if len(test) < _FEWEST_TESTED:
        return
    criterion = learn(encoder, texts[train].tolist(), gold[train].tolist(), condition=condition)
    assert criterion.held_out is not None
    scores, pairs, same = criterion.held_out
    points = criterion.embed(features(encoder, texts[test].tolist(), condition))
    first, second = np.triu_indices(len(test), 1)
    new_scores = criterion.calibration.apply((points @ points.T)[first, second])
    new_same = (gold[test][:, None] == gold[test])[first, second]
    for method, shared in (("shared texts counted", pairs), ("taken for independent", None)):
        result: dict[str, object] = {"set": name, "labels": labels, "method": method}
        result.update(promise=None, precision=None)
        for promise in PROMISES:
            try:
                threshold = find_threshold(scores, same, precision=promise, texts=shared)
            except InputError:
                continue
            reached = new_same[new_scores >= threshold.value]
            result.update(promise=promise, precision=round(float(reached.mean()), 4))
            break
        yield result


def page(results: list[dict[str, object]]) -> Iterator[str]:
    """Yield the lines of the page of results."""
    yield "# Thresholds of learned criteria\n"
    yield (
        "Written by `python -m benchmarks.learned_thresholds`: draws of labeled texts, the highest "
        "promise of 95, 90, 80 and 70 in 100 that they allow, and the precision of that threshold "
        f"on the pairs of {_FEWEST_TESTED} to {_TESTED} other texts of the set.\n"
    )
    yield "| pairs of the same texts | labels | draws | with a promise | broken | mean promise |"
    yield "|---|---:|---:|---:|---:|---:|"
    keys = dict.fromkeys((str(row["method"]), int(str(row["labels"]))) for row in results)
    for method, labels in sorted(keys):
        rows = [row for row in results if (row["method"], row["labels"]) == (method, labels)]
        kept = [
            (float(str(row["promise"])), float(str(row["precision"])))
            for row in rows
            if row["promise"]
        ]
        broken = sum(precision < promise for promise, precision in kept)
        mean = np.mean([promise for promise, _ in kept]) if kept else 0
        yield f"| {method} | {labels} | {len(rows)} | {len(kept)} | {broken} | {100 * mean:.0f} |"


def main(
    data: Annotated[Path, typer.Option(help="Folder of the sets of criteria.")],
    draws: Annotated[int, typer.Option(min=1)] = 6,
    output: Path = PAGE,
) -> None:
    """Measure how often the promise of a learned threshold is kept."""
    model = load_encoder(None)
    results: list[dict[str, object]] = []
    for name, condition in SETS:
        value_of = read(data, name, condition, texts=_TEXTS, values=_VALUES)
        encoder = EncodeOnce(model, condition)
        for labels in (50, 100, 200):
            for seed in range(draws):
                results += measure(name, condition, value_of, encoder, labels, seed)
        typer.echo(name, err=True)
    write_text(output, "\n".join(page(results)) + "\n")
    report = {"condsim": __version__, "model": model.name, "draws": draws, "results": results}
    write_text(output.with_suffix(".json"), json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    app = typer.Typer()
    app.command()(main)
    run_app(app)
