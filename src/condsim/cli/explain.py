"""``condsim explain``: which words of two texts carry their score."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from condsim.cli import options
from condsim.cli.files import Input, Output
from condsim.cli.pairs import (
    PairColumns,
    PairFile,
    PairsUnderOne,
    SinglePair,
    open_pairs,
    pair_arguments,
)
from condsim.cli.process import long_work, print_note
from condsim.data.batch import Batch, BlankRows
from condsim.data.formats import open_writer
from condsim.errors import InputError, located
from condsim.io import write_text
from condsim.loading import load_scorer
from condsim.model.base import SAMPLES
from condsim.model.explanation import PICTURES, Explanation, check_explained
from condsim.paths import check_suffix

_ROWS_PER_BATCH = 32
_Texts = tuple[str, str, str | None]


def _pairs(batch: Batch, columns: PairColumns, blank: BlankRows) -> dict[int, _Texts]:
    """Read texts and condition of each row with texts; reject texts that cannot be explained."""
    pairs = {}
    for index, sentence1, sentence2, condition in columns.read(batch, blank).iter_rows():
        with located(batch.rows[index].location()):
            check_explained(1, sentence1=sentence1, sentence2=sentence2)
        pairs[index] = (sentence1, sentence2, condition)
    return pairs


def _explain_file(
    file: Path, output: Path, pairs: PairFile, *, model: str | None, settings: dict[str, Any]
) -> None:
    """Explain each row of a file into another, which keeps all columns."""

    def batches(blank: BlankRows) -> Iterator[tuple[Batch, dict[int, _Texts]]]:
        columns, batches = open_pairs(file, pairs, size=_ROWS_PER_BATCH, conditional=True)
        for batch in batches:
            yield batch, _pairs(batch, columns, blank)

    # The first reading finds every fault before the work starts.
    blank = BlankRows(strict=pairs.strict)
    total = sum(len(texts) for _, texts in batches(blank))
    done = 0
    with (
        long_work(log=None, resume="Nothing was written.") as progress,
        open_writer(output) as writer,
    ):
        scorer = load_scorer(model)
        for batch, texts in batches(BlankRows()):
            explanations: list[dict[str, Any] | None] = [None] * len(batch)
            for index, row_texts in texts.items():
                explanations[index] = scorer.explain(*row_texts, **settings).to_dict()
                done += 1
                progress("explain", done, total)
            batch["explanation"] = explanations
            writer.write(batch)
    print_note(blank.note("no explanation"))
    print_note(f"{output}: {total} rows explained")


def _write(explanation: Explanation, output: Path) -> None:
    suffix = output.suffix.lower()
    if suffix in PICTURES:
        explanation.plot(output)
    elif suffix == ".html":
        head = '<!doctype html>\n<meta charset="utf-8">\n<title>condsim explain</title>\n'
        style = "<style>:root{color-scheme:light dark}body{font-family:sans-serif}</style>\n"
        write_text(output, head + style + explanation.to_html())
    else:
        content = json.dumps(explanation.to_dict(), indent=1, ensure_ascii=False)
        write_text(output, content + "\n")


def explain(
    sentence1: Annotated[str | None, Argument(), Input()] = None,
    sentence2: Annotated[str | None, Argument()] = None,
    condition: Annotated[str | None, Argument()] = None,
    *,
    pairs: PairsUnderOne,
    file: Annotated[
        Path | None, Option(help="File of pairs to explain; - is standard input.")
    ] = None,
    output: Annotated[
        Path | None,
        Option(help="File: .html, .json, .png, .svg or .pdf; .jsonl with --file."),
        Output(".jsonl"),
    ] = None,
    model: options.Model = None,
    scale: options.Scale = "unit",
    top: Annotated[int, Option(min=0, help="Number of words to list.")] = 5,
    samples: Annotated[int, Option(min=1, help="Maximum subsets of words to score.")] = SAMPLES,
    seed: options.Seed = 0,
) -> None:
    """Explain a score: which words of each text carry it under the condition.

    Blue words raise the score, orange ones lower it. The sum starts with the score of an empty
    text, and all words together make up the difference.

    **Examples**

    `condsim explain "A man throws a ball." "A girl kicks a ball." "the sport"`

    `condsim explain "A dog barks." "A cat sleeps." "the animal" --output why.html`

    `condsim explain --file pairs.csv --output explained.jsonl`
    """
    settings: dict[str, Any] = {"scale": scale, "samples": samples, "seed": seed}
    source = pair_arguments(sentence1, sentence2, condition, pairs.conditions, file)
    if not isinstance(source, SinglePair):
        if output is None:
            raise InputError("A file of pairs needs --output.")
        check_suffix(output, (".jsonl", ".ndjson"))
        _explain_file(source, output, pairs, model=model, settings=settings)
        return
    if output is not None:
        check_suffix(output, (".html", ".json", *PICTURES))
    texts = (source.sentence1, source.sentence2, source.conditions[0])
    explanation = load_scorer(model).explain(*texts, **settings)
    if output is None:
        from condsim.terminal import Terminal

        console = Terminal(highlight=False)
        console.print(explanation, "")
        typer.echo(explanation.table(top=top, ascii_only=console.options.ascii_only))
    else:
        _write(explanation, output)
        print_note(f"{output}: the explanation of a score of {explanation.score:.2f}")
