"""``condsim verdict``: what the second of two texts is to the first, or new texts to a store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from typer import Argument, Option

from condsim.cli.files import Input, Output
from condsim.cli.options import JudgeName, TextFile, check_column
from condsim.cli.pairs import (
    PairsUnderOne,
    SinglePair,
    is_file,
    open_pairs,
    pair_arguments,
    read_verdicts,
)
from condsim.cli.process import long_work, print_note
from condsim.data.batch import Batch, BlankRows
from condsim.data.formats import WRITTEN, is_table, open_writer
from condsim.data.row import Row, short_repr
from condsim.errors import InputError
from condsim.loading import load_encoder

if TYPE_CHECKING:
    from condsim.console import ProgressDisplay
    from condsim.evaluation.threshold import Threshold
    from condsim.model.embedding import EmbeddingScorer
    from condsim.model.finding import Finding
    from condsim.model.judge import Judge, Verdict
    from condsim.search.index import Index

_SINGLE_PAIR = (
    "Give two texts, a file of pairs with --output, or a file of new texts with --against and "
    "--output."
)


def verdict_command(
    first: Annotated[
        str | None, Argument(help="The known text, or a file; - is standard input."), Input()
    ] = None,
    second: Annotated[str | None, Argument(help="The new text.")] = None,
    *,
    pairs: PairsUnderOne,
    against: Annotated[
        str | None,
        Option(help="File or index of known texts; the first file then has new ones."),
        Input(),
    ] = None,
    column: Annotated[
        str, Option("--column", help="Column of the texts; with --against.")
    ] = "text",
    output: Annotated[
        Path | None, Option(help=f"File to write: {WRITTEN}."), Output(".tsv")
    ] = None,
    about: Annotated[bool, Option("--about", help="Also name the words that decided.")] = False,
    labeled: Annotated[
        Path | None,
        Option(help="Pairs with the right verdict in the column verdict, to choose a threshold."),
    ] = None,
    at_most_false_merges: Annotated[
        float | None,
        Option(
            min=0.0001,
            max=0.9999,
            help="Promised highest share of the merges that are wrong; needs --labeled.",
            show_default="no threshold",
        ),
    ] = None,
    candidates: Annotated[
        int | None,
        Option(
            min=1,
            max=1000,
            help="Known texts that are read for each new one; with --against.",
            show_default="8",
        ),
    ] = None,
    time: Annotated[
        str | None,
        Option(
            help="Columns of the times for which the texts of a pair hold: NAME1 and NAME2.",
            metavar="NAME",
            show_default="no times",
        ),
    ] = None,
    judge: JudgeName = None,
    model: Annotated[
        str | None,
        Option(
            help="Model that finds the known texts; with --against.",
            show_default="the default model",
        ),
    ] = None,
) -> None:
    """Say what a text is to a known one: duplicate, update, contradiction, related, or new.

    With a file of pairs, keeps all columns and adds `verdict`, `probability`, the probability of
    each verdict, and the `reason` where the judge cannot tell. With --against, finds the nearest
    known texts of each new one, and adds the one that decided; a JSON file has the verdicts against
    all of them in `candidates`. A merge is a duplicate or an update: with --labeled and
    --at-most-false-merges, pairs below a threshold are not merged.

    **Examples**

    `condsim verdict "Staging listens on port 8080." "Staging was moved to port 8090."`

    `condsim verdict pairs.csv --output judged.csv`

    `condsim verdict notes.csv --against store.csv --output judged.csv`
    """
    _check_together(labeled, at_most_false_merges, against, time)
    condition = pairs.given_condition
    source: Path | SinglePair
    if against is None:
        if candidates is not None or model is not None or column != "text":
            raise InputError("--candidates, --model and --column go with --against.")
        source = _texts_or_file(first, second, condition)
    else:
        source = _file_of_news(first, second)
    # Slow to import.
    from condsim.model.judge import load_judge

    if isinstance(source, SinglePair):
        if output is not None or labeled is not None or time is not None:
            raise InputError("Options of files, such as --output, go with one file.")
        _print_verdict(load_judge(judge), source, condition, about=about)
        return
    if output is None:
        raise InputError("A file of texts needs --output, the file to write.")
    with long_work(log=None, resume="Nothing was written.") as progress:
        reader = load_judge(judge)
        threshold = None
        if labeled is not None and at_most_false_merges is not None:
            threshold = _threshold(reader, labeled, pairs, at_most_false_merges)
        judging = _Judging(reader, threshold.value if threshold else 0.0, progress, about, time)
        if against is None:
            judging.pairs(source, output, pairs)
        else:
            judging.news(_News(source, column, pairs, against, model), output, candidates)
    if threshold is not None:
        print_note(
            f"merged from a probability of {threshold.value:.4f}: of the {threshold.reached:,} "
            f"labeled pairs that reach it {1 - threshold.precision:.3f} are false merges "
            f"[{1 - threshold.high:.3f}, {1 - threshold.low:.3f}], and {1 - threshold.recall:.3f} "
            f"of {threshold.positives:,} merges are missed"
        )


def _check_together(
    labeled: Path | None, rate: float | None, against: str | None, time: str | None
) -> None:
    if (labeled is None) != (rate is None):
        raise InputError("--labeled and --at-most-false-merges go together.")
    if time is not None and (against is not None or labeled is not None):
        raise InputError("--time goes with a file of pairs, and without --labeled.")


def _texts_or_file(
    first: str | None, second: str | None, condition: str | None
) -> SinglePair | Path:
    if first is not None and second is None and not is_file(first):
        raise InputError(f"There is no file {short_repr(first)}. {_SINGLE_PAIR}")
    return pair_arguments(first, second, None, [condition or ""], None)


def _file_of_news(file: str | None, other: str | None) -> Path:
    if file is None or other is not None:
        raise InputError(_SINGLE_PAIR)
    return Path(file)


def _print_verdict(judge: Judge, pair: SinglePair, condition: str | None, *, about: bool) -> None:
    verdict = judge.verdict(pair.sentence1, pair.sentence2, condition, about=about)
    typer.echo(verdict.verdict)
    shares = [f"{name} {value:.2f}" for name, value in verdict.probabilities.items()]
    print_note(verdict.reason or ", ".join(shares))
    if verdict.about:
        print_note(f"decided by: {', '.join(verdict.about)}")


def _threshold(judge: Judge, labeled: Path, pairs: PairsUnderOne, rate: float) -> Threshold:
    """Find the least probability of a merge that keeps the promise on labeled pairs."""
    from condsim.evaluation.threshold import find_threshold
    from condsim.model.judge import MERGED

    rows = read_verdicts(labeled, pairs)
    if not {*MERGED} & {*rows.right}:
        raise InputError(f"{labeled}: no row is a duplicate or an update, so none tells a merge.")
    verdicts = judge.verdict(rows.first, rows.second, rows.conditions)
    places = {text: place for place, text in enumerate({*rows.first, *rows.second})}
    texts = [[places[first], places[second]] for first, second in zip(*rows[1:3], strict=True)]
    return find_threshold(
        [verdict.merge for verdict in verdicts],
        [name in MERGED for name in rows.right],
        precision=1 - rate,
        texts=texts,
    )


class _News:
    """New texts of a file, and the known ones that they are judged against."""

    def __init__(
        self, file: Path, column: str, pairs: PairsUnderOne, against: str, model: str | None
    ) -> None:
        form = pairs.file_format
        self.file = TextFile(file, column, form, tables=True, strict=pairs.strict)
        self.condition = pairs.given_condition
        self.known: list[str] | Index
        self.scorer: EmbeddingScorer | None = None
        if Path(against).is_file():
            known = TextFile(Path(against), column, form, tables=False, strict=pairs.strict)
            self.known = list(known)
            self._numbers = np.flatnonzero(known.present) + 1
            self.scorer = load_encoder(model)
            print_note(known.blank.note("no place among the known"))
        else:
            from condsim.search.index import Index

            self.known = Index.open(against, model=model)

    def shown(self, finding: Finding) -> str | int | None:
        """Return the key of the known text in an index, or its row, counted from 1."""
        row = finding.row
        return int(self._numbers[row]) if isinstance(row, int) else row

    def record(self, finding: Finding) -> dict[str, object]:
        """Return a candidate as a cell of JSON."""
        verdict = finding.verdict
        shares = {name: round(share, 4) for name, share in verdict.probabilities.items()}
        found = {"verdict": verdict.verdict, "known": finding.known}
        return {**found, "known_row": self.shown(finding), "probabilities": shares}


@dataclass
class _Judging:
    """Judging of files into a file."""

    judge: Judge
    merged_from: float
    progress: ProgressDisplay
    about: bool
    time: str | None
    counts: Counter[str] = field(default_factory=Counter)

    def pairs(self, file: Path, output: Path, pairs: PairsUnderOne) -> None:
        """Judge a file of pairs."""
        blank = BlankRows(strict=pairs.strict)
        columns, batches = open_pairs(file, pairs)
        for side in "12" if self.time else "":
            advice = "--time names the columns without their 1 and 2."
            check_column(file, f"{self.time}{side}", pairs.file_format, advice=advice)
        table = is_table(output, any_rows=False)
        done = 0
        with open_writer(output) as writer:
            for batch in batches:
                if table and not done:
                    batch.check_flat()
                rows, first, second, conditions = columns.read(batch, blank)
                verdicts = self.judge.verdict(first, second, conditions, about=self.about)
                if self.time:
                    dates = (_times(batch.rows[row], self.time) for row in rows.tolist())
                    verdicts = [
                        verdict.dated(*times) if times else verdict
                        for verdict, times in zip(verdicts, dates, strict=True)
                    ]
                merged = [verdict.merged_from(self.merged_from) for verdict in verdicts]
                self._add_columns(batch, rows.tolist(), merged)
                writer.write(batch)
                done += len(batch)
                self.progress("judging", done, 0, f"{done:,} rows")
        self._summarize(output, blank)

    def news(self, news: _News, output: Path, candidates: int | None) -> None:
        """Judge new texts against known ones."""
        from condsim.search.verdicts import CANDIDATES, find_verdicts

        findings = find_verdicts(
            list(news.file),
            news.known,
            self.judge,
            scorer=news.scorer,
            condition=news.condition,
            candidates=candidates or CANDIDATES,
            merged_from=self.merged_from,
            about=self.about,
            progress=self.progress,
        )
        table = is_table(output)
        with open_writer(output) as writer:
            for batch, rows in news.file.batches():
                places = np.flatnonzero(news.file.present[rows]).tolist()
                some = [next(findings) for _ in places]
                self._add_columns(batch, places, [finding.verdict for finding in some])
                _add(batch, "known", places, [finding.known for finding in some])
                _add(batch, "known_row", places, [news.shown(finding) for finding in some])
                if not table:
                    read = [[news.record(one) for one in finding.candidates] for finding in some]
                    _add(batch, "candidates", places, read)
                writer.write(batch)
        self._summarize(output, news.file.blank)

    def _add_columns(self, batch: Batch, rows: Sequence[int], verdicts: Sequence[Verdict]) -> None:
        """Add the verdicts of some rows; the cells of others are empty."""
        from condsim.model.judge import VERDICTS

        self.counts.update(verdict.verdict for verdict in verdicts)
        _add(batch, "verdict", rows, [verdict.verdict for verdict in verdicts])
        shares = [
            {"probability": verdict.probability, **verdict.probabilities}
            if verdict.probabilities
            else {}
            for verdict in verdicts
        ]
        for name in ("probability", *VERDICTS):
            cells = [round(share[name], 4) if share else None for share in shares]
            _add(batch, name, rows, cells)
        _add(batch, "reason", rows, [verdict.reason or None for verdict in verdicts])
        if self.about:
            _add(batch, "about", rows, [", ".join(verdict.about) for verdict in verdicts])

    def _summarize(self, output: Path, blank: BlankRows) -> None:
        numbers = [f"{name} {number:,}" for name, number in sorted(self.counts.items())]
        print_note(f"{output}: {', '.join(numbers) or 'no rows'}")
        print_note(blank.note("no verdict"))


def _times(row: Row, name: str) -> tuple[datetime, datetime] | None:
    """Read the times of both texts of a pair; None if one is missing."""
    times = []
    for column in (f"{name}1", f"{name}2"):
        cell = str(row.record.get(column) or "").strip()
        if not cell:
            return None
        try:
            times.append(datetime.fromisoformat(cell))
        except ValueError:
            rule = "must be a date or time in ISO 8601, such as 2026-03-01"
            raise InputError(f"{row.location(column)}: {rule}; got {short_repr(cell)}.") from None
    return times[0], times[1]


def _add(batch: Batch, name: str, rows: Sequence[int], values: Sequence[object]) -> None:
    """Add a column with values in some rows."""
    column: list[object] = [None] * len(batch)
    for row, value in zip(rows, values, strict=True):
        column[row] = value
    batch[name] = column
