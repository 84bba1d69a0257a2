"""``python -m papers.written FILE …``: the published data set of written pairs.

Takes files of the written form and, where there is one, the labels of a second reader: a file of
the same stem that ends in ``.labels``, with ``N ||| label ; label ; …`` for the pair on line N.
Writes ``train.txt``, ``dev.txt`` and ``test.txt``, split by domain, and the figures of the card.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from condsim.cli.process import run_app
from condsim.data.held_out import text_digest
from condsim.data.written import WrittenPair, iter_written, load_written, write_written
from condsim.errors import InputError, require
from condsim.evaluation.statistics import spearman
from condsim.io import write_text
from condsim.model.baselines import baseline, out_of_fold
from condsim.types import Task

SPLITS = ("train", "dev", "test")
FOLDER = Path(__file__).resolve().parents[1] / "data" / "written"

ALIKE, DIFFERENT = 4, 2
"""A pair is kept if it has a label of at least the one and a label of at most the other."""

# Share of the domains that are in test; the same share is in dev.
_SHARE = 1 / 8
# A row is dropped if the labels of two readers are this far apart.
_FAR = 2
_RANGE = (1.0, 5.0)
# The data must stay below this Spearman of the condition alone, out of fold.
_TELLS = 0.15
# Minimum number of rows; with fewer, the Spearman of the condition is chance.
_FITTED = 1000
# Number of rows dropped before the condition is fitted again.
_DROPPED = 250
_MARKS = ("<!-- figures: python -m papers.written -->", "<!-- end of figures -->")


@dataclass
class Merged:
    """The pairs of all files with the labels of both readers put together.

    Attributes:
        pairs: The pairs that are kept, by domain, then in the order of the files.
        first: The writer's label of each row that was read twice.
        second: The second reader's.
        read: Pairs in the files.
        far: Rows dropped because the readers differ by 2 or more.
        flat: Pairs dropped because no alike or no different label is left.
        repeated: Pairs dropped because a text is also in another domain, or the pair is repeated.
        telling: Rows dropped because their condition alone tells their label.
        unfit: Pairs dropped because the second labels are not those of its conditions, one line
            each.
    """

    pairs: list[WrittenPair] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    second: list[float] = field(default_factory=list)
    read: int = 0
    far: int = 0
    flat: int = 0
    repeated: int = 0
    telling: int = 0
    unfit: list[str] = field(default_factory=list)


def split_of(domain: str) -> str:
    """The split of a domain, by a hash of its name: it stays when other domains are added."""
    share = int(hashlib.sha256(domain.encode()).hexdigest()[:8], 16) / 2**32
    return "test" if share < _SHARE else "dev" if share < 2 * _SHARE else "train"


def merge(files: Sequence[Path], *, labels: Path | None = None) -> Merged:
    """Read pairs and second labels, and drops what two readers do not agree on.

    Args:
        files: Files of the written form.
        labels: Folder of the second reader's files; by default each is next to its pairs.

    Returns:
        The pairs; a label is the mean where two readers differ by 1.
    """
    merged = Merged()
    owner: dict[bytes, str] = {}
    seen: set[tuple[bytes, bytes]] = set()
    for file in files:
        beside = (labels or file.parent) / f"{file.stem}.labels"
        second = _second_labels(beside) if beside.is_file() else None
        for pair in iter_written(file):
            merged.read += 1
            pair = replace(pair, domain=pair.domain.replace("_", " and "))
            if second is not None:
                agreed = _agreed(pair, second.pop(pair.line, None), merged)
                if agreed is None:
                    continue
                pair = agreed
            kept = pair.labels.values()
            one, two = text_digest(pair.sentence1), text_digest(pair.sentence2)
            owners = {owner.setdefault(text, pair.domain) for text in (one, two)}
            if owners != {pair.domain} or not seen.isdisjoint({(one, two), (two, one)}):
                merged.repeated += 1
            elif not _is_mixed(kept):
                merged.flat += 1
            else:
                seen.add((one, two))
                merged.pairs.append(pair)
        if second:
            raise InputError(
                f"{beside}: line {min(second)} of {file} is not a pair. Number the labels by the "
                "lines of the pairs."
            )
    merged.pairs.sort(key=lambda pair: pair.domain)
    return merged


def balance(merged: Merged) -> None:
    """Drop rows whose label their condition gives away, until the conditions alone tell little.

    Writers label "the kind of …" high and "who …" low more often than not. Rows are taken from
    pairs that keep two conditions, one of them alike and one different.
    """
    while True:
        places = [(number, key) for number, one in enumerate(merged.pairs) for key in one.labels]
        rows = [merged.pairs[number] for number, _ in places]
        if len(rows) < _FITTED:
            return
        labels = np.array([one.labels[key] for one, (_, key) in zip(rows, places, strict=True)])
        told = out_of_fold(
            Task(
                name="written",
                revision="",
                sentences1=tuple(one.sentence1 for one in rows),
                sentences2=tuple(one.sentence2 for one in rows),
                conditions=tuple(key for _, key in places),
                labels=labels.astype(np.float32),
            )
        )
        if spearman(told, labels) < _TELLS:
            return
        gain = (told - told.mean()) * (labels - labels.mean())
        dropped = 0
        for row in np.argsort(-gain, kind="stable"):
            number, condition = places[row]
            pair = merged.pairs[number]
            left = {key: label for key, label in pair.labels.items() if key != condition}
            if len(left) >= 2 and _is_mixed(left.values()):
                merged.pairs[number] = replace(pair, labels=left)
                dropped += 1
            if dropped == _DROPPED:
                break
        merged.telling += dropped
        if not dropped:
            return


def _is_mixed(labels: Collection[float]) -> bool:
    """True if a pair is alike in one respect and different in another."""
    return bool(labels) and max(labels) >= ALIKE and min(labels) <= DIFFERENT


def _second_labels(path: Path) -> dict[int, tuple[float, ...]]:
    """The second reader's labels by the line of the pair."""
    found: dict[int, tuple[float, ...]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        pair, _, listed = line.partition("|||")
        try:
            key, values = int(pair), tuple(float(label) for label in listed.split(";"))
        except ValueError:
            key, values = 0, ()
        if key in found or not values or not all(_RANGE[0] <= one <= _RANGE[1] for one in values):
            raise InputError(
                f"{path}, line {number}: must be 'N ||| label ; label', with the line of a pair, "
                f"once each, and labels from 1 to 5; got {line.strip()[:60]!r}."
            )
        found[key] = values
    return found


def _agreed(
    pair: WrittenPair, second: tuple[float, ...] | None, merged: Merged
) -> WrittenPair | None:
    """The pair with the labels that both readers agree on, or nearly; None if they do not fit."""
    if second is None or len(second) != len(pair.labels):
        got = "none" if second is None else str(len(second))
        merged.unfit.append(
            f"{pair.place}: needs {len(pair.labels)} second labels, one for each condition, got "
            f"{got}. Left out; have the pair read again."
        )
        return None
    labels: dict[str, float] = {}
    for (condition, first), other in zip(pair.labels.items(), second, strict=True):
        merged.first.append(first)
        merged.second.append(other)
        if abs(first - other) < _FAR:
            labels[condition] = (first + other) / 2
        else:
            merged.far += 1
    return replace(pair, labels=labels)


def write_splits(merged: Merged, folder: Path) -> None:
    """Write the three files and the figures of the card, ``README.md``, which must be there."""
    parts = {
        split: [pair for pair in merged.pairs if split_of(pair.domain) == split] for split in SPLITS
    }
    for split, pairs in parts.items():
        if not pairs:
            raise InputError(f"The split {split!r} has no pairs. Give files with more domains.")
    card = folder / "README.md"
    before, after = _around_figures(card)
    for split, pairs in parts.items():
        write_written(pairs, folder / f"{split}.txt")
    lines = [*_counts(parts), "", *_agreement(merged), *_floors(folder), *_domains(parts)]
    write_text(card, "\n".join([before + _MARKS[0], "", *lines, "", _MARKS[1] + after]))


def _around_figures(card: Path) -> tuple[str, str]:
    """Text before and after the figures of the card."""
    text = card.read_text(encoding="utf-8") if card.is_file() else ""
    before, found, rest = text.partition(_MARKS[0])
    _, ended, after = rest.partition(_MARKS[1])
    if not found or not ended:
        raise InputError(
            f"{card}: must have the lines {_MARKS[0]!r} and {_MARKS[1]!r}, between which the "
            "figures are written. Add them."
        )
    return before, after


def _counts(parts: Mapping[str, Sequence[WrittenPair]]) -> Iterator[str]:
    yield "| split | domains | pairs | rows | label 4 or more | between | label 2 or less |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for split, pairs in [*parts.items(), ("all", [pair for one in parts.values() for pair in one])]:
        labels = np.array([label for pair in pairs for label in pair.labels.values()])
        alike, different = (labels >= ALIKE).mean(), (labels <= DIFFERENT).mean()
        shares = [f"{100 * share:.0f} %" for share in (alike, 1 - alike - different, different)]
        domains = len({pair.domain for pair in pairs})
        cells = [split, str(domains), f"{len(pairs):,}", f"{labels.size:,}", *shares]
        yield f"| {' | '.join(cells)} |"


def _agreement(merged: Merged) -> Iterator[str]:
    """Labels of the same rows by two readers, and the dropped rows."""
    first, second = np.array(merged.first), np.array(merged.second)
    if first.size:
        metrics = require("sklearn.metrics", extra="train")
        kappa = metrics.cohen_kappa_score(
            np.rint(2 * first), np.rint(2 * second), labels=range(2, 11), weights="quadratic"
        )
        apart = np.abs(first - second)
        yield (
            f"- {first.size:,} rows were labelled by a second reader: "
            f"{100 * (apart == 0).mean():.1f} % the same, {100 * (apart <= 1).mean():.1f} % within "
            f"1; Spearman {100 * spearman(first, second):.1f}, kappa with quadratic weights "
            f"{kappa:.3f}."
        )
        yield f"- {merged.far:,} of these were dropped because the readers differ by 2 or more."
    else:
        yield "- No row was labelled by a second reader yet."
    if merged.telling:
        yield (
            f"- {merged.telling:,} rows of them were dropped so that the condition alone, out of "
            f"fold, has less than {100 * _TELLS:.0f} Spearman."
        )
    count = len(merged.unfit)
    unfit = (
        f"; {count:,} more because the second labels do not fit their conditions" if count else ""
    )
    yield (
        f"- Of {merged.read:,} pairs {merged.flat:,} were dropped because no label of 4 or more, "
        f"or none of 2 or less, was left, and {merged.repeated:,} because a text is in another "
        f"domain or the pair is repeated{unfit}."
    )


def _domains(parts: Mapping[str, Sequence[WrittenPair]]) -> Iterator[str]:
    for split in SPLITS[1:]:
        counts = Counter(pair.domain for pair in parts[split])
        listed = ", ".join(f"{domain} ({count})" for domain, count in sorted(counts.items()))
        yield f"- Domains of `{split}.txt`, with their pairs: {listed}."


def _floors(folder: Path) -> Iterator[str]:
    """Results without reading the pair under its condition."""
    task = load_written([folder / f"{split}.txt" for split in SPLITS], name="written")
    alone = spearman(out_of_fold(task), task.labels)
    words = baseline("word-overlap").score(task.sentences1, task.sentences2, None)
    yield (
        f"- Spearman x 100 over all rows of the condition alone, out of fold: {100 * alone:.1f}; "
        f"of word overlap: {100 * spearman(words, task.labels):.1f}."
    )


app = typer.Typer(name="written", rich_markup_mode="markdown", pretty_exceptions_enable=False)


@app.command()
def main(
    files: Annotated[list[Path], typer.Argument(help="Files of the written form.")],
    labels: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the second reader's .labels files.",
            show_default="next to the files",
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option(help="Folder of the data set, with its card README.md.")
    ] = FOLDER,
) -> None:
    """Merge written pairs and a second reader's labels into the published data set.

    Rows on which the readers differ by 2 or more are dropped; where they differ by 1, the label is
    their mean. A pair that has no label of 4 or more, or none of 2 or less, is dropped. A domain
    is in one split, chosen by a hash of its name. Prints the figures of the card.

    **Example**

    `python -m papers.written part*.txt more/*.txt --labels more/labels`
    """
    merged = merge(sorted(files, key=lambda file: file.name), labels=labels)
    balance(merged)
    write_splits(merged, output)
    for line in merged.unfit:
        typer.echo(f"warning: {line}", err=True)
    text = (output / "README.md").read_text(encoding="utf-8")
    typer.echo(text.partition(_MARKS[0])[2].partition(_MARKS[1])[0].strip())


if __name__ == "__main__":
    run_app(app)
