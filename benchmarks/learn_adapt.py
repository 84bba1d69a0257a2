"""``python -m benchmarks.learn_adapt``: a criterion against an adapted model, on the same labels.

Pairs of the labeled texts go to `condsim.training.adaptation.adapt`, and the adapted model ranks
the pairs of other texts by its scores. No adapted weights are kept; the figures are, so that a
killed run continues. The first draw of all sets comes before the second, so that a run that ends
early has all sets.
"""

from __future__ import annotations

import json
import shutil
import time
import zlib
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from papers.pages import MARKER, kept_notes

from benchmarks.learn_curve import SETFIT_SETS, Draw, Known, Set, auc_of, drawn, read_set
from benchmarks.learn_page import Figures, Results, column, gains, mean_of
from condsim import __version__
from condsim.cli.process import run_app
from condsim.data.formats import write_records
from condsim.io import write_text
from condsim.loading import load_encoder
from condsim.model.embedding import EmbeddingScorer
from condsim.model.learned_values import learn
from condsim.model.minilm import MINILM, packaged_folder
from condsim.training.adaptation import AdaptSettings, adapt
from condsim.types import FloatArray

LABELS = (50, 200, 500, 25, 100)
"""Numbers of labels, the most telling first."""

PAGE = Path(__file__).resolve().parents[1] / "papers" / "docs" / "results" / "learning-adapt.md"

_TEXTS = 600
_MOST_PAIRS = 1_000


def measured(data: Set, model: EmbeddingScorer, draw: Draw, done: Path) -> Figures:
    """Learn and adapt from the same texts, and rank the pairs of others: AUC times 100."""
    if not done.is_file():
        gold = np.array(data.values)[draw.test]
        figures = {
            "condition alone": tested_auc(model, data, draw),
            "criterion": auc_of(learned_vectors(data, model, draw), gold),
        }
        folder = done.with_suffix("")
        figures |= adapted(data, draw, folder)
        figures["adapted"] = tested_auc(load_encoder(folder), data, draw)
        shutil.rmtree(folder)
        write_text(done, json.dumps(figures))
    found: Figures = json.loads(done.read_text(encoding="utf-8"))
    return found


def tested_auc(model: EmbeddingScorer, data: Set, draw: Draw) -> float:
    """Rank pairs of the tested texts by a model's scores under the condition."""
    texts = [data.texts[row] for row in draw.test]
    return auc_of(model.encode(texts, data.criterion), np.array(data.values)[draw.test])


def learned_vectors(data: Set, model: EmbeddingScorer, draw: Draw) -> FloatArray:
    """Embed the tested texts under a criterion that is learned from the labeled texts."""
    criterion = learn(
        Known(model, data, conditional=True),
        [data.texts[row] for row in draw.train],
        [data.values[row] for row in draw.train],
        condition=data.criterion,
    )
    return criterion.embed(data.vectors["with"][draw.test])


def adapted(data: Set, draw: Draw, output: Path) -> Figures:
    """Adapt the model to pairs of the labeled texts; go on with an unfinished run.

    Every fifth text, by value, is in no pair to train on; its pairs choose the epoch.
    """
    train = sorted(draw.train.tolist(), key=lambda row: data.values[row])
    files = [output.with_name(f"{output.name}-{part}.csv") for part in ("train", "dev")]
    write_pairs(data, [row for place, row in enumerate(train) if place % 5], files[0])
    write_pairs(data, train[::5], files[1])
    shutil.rmtree(output, ignore_errors=True)
    began = time.process_time()
    result = adapt(files[0], output, dev=files[1], settings=AdaptSettings(), force=True)
    minutes = (time.process_time() - began) / 60
    return {"pairs": result.train_rows, "helped": float(result.helped), "minutes": minutes}


def write_pairs(data: Set, rows: Sequence[int], path: Path) -> None:
    """Write the pairs of texts, at most so many alike and so many different, in random order."""
    generator = np.random.default_rng(0)
    pairs = generator.permutation(list(combinations(rows, 2))).tolist()
    labeled: dict[str, list[dict[str, object]]] = {"alike": [], "different": []}
    for first, second in pairs:
        label = "alike" if data.values[first] == data.values[second] else "different"
        texts = {"sentence1": data.texts[first], "sentence2": data.texts[second]}
        labeled[label].append({**texts, "condition": data.criterion, "label": label})
    most = min(_MOST_PAIRS, *map(len, labeled.values()))
    write_records(path, [record for records in labeled.values() for record in records[:most]])


def main(
    data: Annotated[Path, typer.Option(help="Folder of the sets of criteria.")],
    sets: Annotated[list[str] | None, typer.Option("--set", help="Set; repeatable.")] = None,
    labels: Annotated[list[int] | None, typer.Option(help="Numbers of labels. Repeatable.")] = None,
    draws: Annotated[int, typer.Option(min=1)] = 3,
    minutes: Annotated[
        float, typer.Option(help="Begin no adaptation after so many minutes of this call.")
    ] = float("inf"),
    runs: Annotated[Path, typer.Option(help="Folder of what is done.")] = Path("runs/learn-adapt"),
    output: Path = PAGE,
) -> None:
    """Compare criteria with adapted models, on the same labels."""
    runs.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    model, minilm = load_encoder(None), load_encoder(packaged_folder(MINILM[0]))
    numbers = labels or LABELS
    found: dict[int, dict[str, list[Figures]]] = {number: {} for number in sorted(numbers)}
    for seed in range(draws):
        for number in numbers:
            for name, criterion in SETFIT_SETS:
                if sets and name not in sets:
                    continue
                file = next(data.joinpath(name).glob("test.jsonl.gz"))
                texts = read_set(file, name, criterion, model, minilm, runs, most=_TEXTS)
                draw = drawn(texts, number, seed)
                done = runs / f"{name}-{zlib.crc32(criterion.encode())}-{number}-{seed}.json"
                is_late = time.monotonic() - began > 60 * minutes
                if number + len(draw.test) > len(texts.texts) or (is_late and not done.is_file()):
                    continue
                figures = measured(texts, model, draw, done)
                found[number].setdefault(f"{name}: {criterion}", []).append(figures)
                typer.echo(f"{name}, {number} labels, draw {seed}: {figures}", err=True)
    results: Results = {str(number): rows for number, rows in found.items() if rows}
    write_text(output, page(results) + MARKER + (kept_notes(output) or "\n"))
    report = {"condsim": __version__, "model": model.name, "results": results}
    write_text(output.with_suffix(".json"), json.dumps(report, indent=1) + "\n")


def page(results: Results) -> str:
    """Lay out the means for each number of labels, and a row for each set."""
    return PAGE_TEXT.format(means="\n".join(_means(results)), rows="\n".join(_rows(results)))


def _means(results: Results) -> Iterator[str]:
    for number, sets in results.items():
        runs = sum(map(len, sets.values()))
        names = ("condition alone", "criterion", "adapted")
        cells = [f"{mean_of(column(sets, name))[0]:.1f}" for name in names]
        for base in ("condition alone", "criterion"):
            gain, low, high = mean_of(gains(sets, "adapted", base))
            cells.append(f"{gain:+.1f} [{low:+.1f}, {high:+.1f}]")
        cost = mean_of(column(sets, "minutes"))[0]
        yield f"| {number} | {len(sets)} | {runs} | {' | '.join(cells)} | {cost:.1f} |"


def _rows(results: Results) -> Iterator[str]:
    names = ("condition alone", "criterion", "adapted")
    for number, sets in results.items():
        for title, draws in sets.items():
            cells = [f"{np.mean([draw[name] for draw in draws]):.1f}" for name in names]
            pairs, minutes = (
                np.mean([draw[name] for draw in draws]) for name in ("pairs", "minutes")
            )
            helped = sum(bool(draw["helped"]) for draw in draws)
            yield (
                f"| {title} | {number} | {' | '.join(cells)} | {pairs:.0f} | "
                f"{helped} of {len(draws)} | {minutes:.1f} |"
            )


PAGE_TEXT = """# A criterion and an adapted model, on the same labels

Written by `python -m benchmarks.learn_adapt --data ../shared/data/criteria`. AUC times 100 of the
pairs of 100 other texts. *Condition alone* and *adapted* are cosines under the condition, as
`condsim score` compares texts. *Pairs* is how many pairs of the labeled texts `condsim adapt` was
trained on, with its defaults; a fifth of the texts chose the epoch. *Helped* is how often it found
the adapted model better on the pairs of that fifth: without `--force`, it writes no other. Minutes
are processor time on one thread. *Over* is what adapting gains over the condition alone and over
the criterion, with its 95 % interval from a bootstrap over sets, then draws.

| labels | sets | runs | alone | criterion | adapted | over alone | over criterion | minutes |
|---:|---:|---:|---:|---:|---:|---:|---:|---:|
{means}

## By set

| set, criterion | labels | condition alone | criterion | adapted | pairs | helped | minutes |
|---|---:|---:|---:|---:|---:|---:|---:|
{rows}

"""


if __name__ == "__main__":
    app = typer.Typer()
    app.command()(main)
    run_app(app)
