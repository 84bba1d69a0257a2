"""``python -m benchmarks.learn_adapt``: a criterion against an adapted model, on the same labels.

The labeled and the tested texts are the first draw of `benchmarks.learn_curve`. Pairs of the
labeled texts go to ``condsim adapt``, and the adapted model ranks the pairs of the tested texts by
its scores. No adapted weights are kept; the figures are, so that a killed run continues.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zlib
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from papers.pages import MARKER, kept_notes

from benchmarks.learn_curve import Draw, Known, Set, auc_of, drawn, read_set
from condsim import __version__
from condsim.cli.process import run_app
from condsim.data.formats import write_records
from condsim.io import write_text
from condsim.loading import load_encoder
from condsim.model.embedding import EmbeddingScorer
from condsim.model.learned_values import learn
from condsim.model.minilm import MINILM, packaged_folder
from condsim.types import FloatArray

SETS = {
    "sentihood": "the opinion about the place in general",
    "oats": "what is reviewed",
    "bitext": "the register",
    "mams": "the opinion about the food",
}
"""Sets of short texts with one of their criteria; the first two trained no default model."""

LABELS = (50, 200)
PAGE = Path(__file__).resolve().parents[1] / "papers" / "docs" / "results" / "learning-adapt.md"

_MOST_PAIRS = 1_000

Figures = dict[str, float]


def measured(
    data: Set, model: EmbeddingScorer, draw: Draw, runs: Path, minutes: float | None
) -> Figures:
    """Learn and adapt from the same texts, and rank the pairs of others: AUC times 100."""
    done = runs / f"{data.name}-{zlib.crc32(data.criterion.encode())}-{len(draw.train)}.json"
    if not done.is_file():
        gold = np.array(data.values)[draw.test]
        figures = {
            "condition alone": tested_auc(model, data, draw),
            "criterion": auc_of(learned_vectors(data, model, draw), gold),
        }
        folder = done.with_suffix("")
        figures |= adapt(data, draw, folder, minutes)
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


def adapt(data: Set, draw: Draw, output: Path, minutes: float | None) -> Figures:
    """Run ``condsim adapt`` on pairs of the labeled texts; go on with an unfinished run.

    Every fifth text, by value, is in no pair to train on; its pairs choose the epoch.
    """
    train = sorted(draw.train.tolist(), key=lambda row: data.values[row])
    files = [output.with_name(f"{output.name}-{part}.csv") for part in ("train", "dev")]
    write_pairs(data, [row for place, row in enumerate(train) if place % 5], files[0])
    write_pairs(data, train[::5], files[1])
    command = [sys.executable, "-m", "condsim", "adapt", str(files[0]), "--dev", str(files[1])]
    command += ["--force", "--output", str(output)]
    command += [] if minutes is None else ["--minutes", f"{minutes:g}"]
    if not output.is_dir():
        subprocess.run(command, check=True)
    manifest = json.loads((output / "manifest.json").read_text(encoding="utf-8"))
    before, after = (
        np.mean([figure["value"] for figure in manifest["dev"][when].values() if figure["value"]])
        for when in ("before", "after")
    )
    return {"pairs": manifest["train_rows"], "helped": float(after > before)}


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
    minutes: Annotated[
        float | None, typer.Option(help="Minutes that each training is planned for.")
    ] = None,
    runs: Annotated[Path, typer.Option(help="Folder of what is done.")] = Path("runs/learn-adapt"),
    output: Path = PAGE,
) -> None:
    """Compare criteria with adapted models, on the same labels."""
    runs.mkdir(parents=True, exist_ok=True)
    model, minilm = load_encoder(None), load_encoder(packaged_folder(MINILM[0]))
    results: dict[str, dict[str, Figures]] = {}
    for name in sets or SETS:
        file = next(data.joinpath(name).glob("test.jsonl.gz"))
        texts = read_set(file, name, SETS[name], model, minilm, runs)
        for number in labels or LABELS:
            draw = drawn(texts, number, 0)
            if number + len(draw.test) <= len(texts.texts):
                figures = measured(texts, model, draw, runs, minutes)
                results.setdefault(f"{name}: {SETS[name]}", {})[str(number)] = figures
    write_text(output, page(results) + MARKER + (kept_notes(output) or "\n"))
    report = {"condsim": __version__, "model": model.name, "minutes": minutes, "results": results}
    write_text(output.with_suffix(".json"), json.dumps(report, indent=1) + "\n")


def page(results: dict[str, dict[str, Figures]]) -> str:
    """Lay out a row for each set and number of labels."""
    rows = [
        f"| {title} | {number} | {found['condition alone']:.1f} | {found['criterion']:.1f} | "
        f"{found['adapted']:.1f} | {found['pairs']:.0f} | {'yes' if found['helped'] else 'no'} |"
        for title, sizes in results.items()
        for number, found in sizes.items()
    ]
    return PAGE_TEXT.format(rows="\n".join(rows))


PAGE_TEXT = """# A criterion and an adapted model, on the same labels

Written by `python -m benchmarks.learn_adapt --data ../shared/data/criteria`. AUC times 100 of the
pairs of 100 other texts, one draw, without intervals. *Condition alone* and *adapted* are cosines
under the condition, as `condsim score` compares texts; the page of learning gives the condition a
share of 0.3 of the vector without it. *Pairs* is how many pairs of the labeled texts `condsim
adapt` was trained on; a fifth of the texts chose the epoch. *Helped* is whether it found the
adapted model better on the pairs of that fifth: without `--force`, it writes no other.

| set, criterion | labels | condition alone | criterion | adapted | pairs | helped |
|---|---:|---:|---:|---:|---:|---|
{rows}

"""


if __name__ == "__main__":
    app = typer.Typer()
    app.command()(main)
    run_app(app)
