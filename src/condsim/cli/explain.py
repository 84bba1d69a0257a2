"""``condsim explain``: which words of two texts carry their score."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from condsim.cli.options import Model, whole_pair
from condsim.cli.running import long_work
from condsim.data.reading import iter_rows
from condsim.data.writing import kept_record, write_records
from condsim.errors import InputError
from condsim.io import write_text
from condsim.loading import load_scorer
from condsim.model.base import SAMPLES, PairScorer, Scale
from condsim.model.explanation import PICTURES, check_explained

if TYPE_CHECKING:
    from condsim.console import Progress
    from condsim.model.explanation import Explanation

_COLUMNS = ("sentence1", "sentence2", "condition")
_ROWS = (".jsonl", ".ndjson")
_ONE = (".html", ".json", *PICTURES)


def _explained(
    scorer: PairScorer, texts: tuple[str, str, str], *, scale: Scale, samples: int, seed: int
) -> Explanation:
    """Explains a pair, with what the labelling functions read from it."""
    from condsim.rows.teach import function_answers

    return scorer.explain(*texts, scale=scale, samples=samples, seed=seed, read=function_answers)


def _explain_file(file: Path, output: Path, *, model: str | None, options: dict[str, Any]) -> None:
    """Explains each row of a file into another, which keeps all columns."""

    def rows(progress: Progress) -> Iterator[dict[str, object]]:
        scorer = load_scorer(model)
        for done, row in enumerate(iter_rows(file, columns=_COLUMNS, others=True), start=1):
            texts = (row.text("sentence1"), row.text("sentence2"), row.text("condition"))
            found = _explained(scorer, texts, **options).to_dict()
            kept = kept_record(row, table=False, beside=["explanation"])
            yield {**kept, **dict(zip(_COLUMNS, texts, strict=True)), "explanation": found}
            progress("explain", done, total)

    total = 0
    for row in iter_rows(file, columns=_COLUMNS):
        total += 1
        texts = {name: row.text(name) for name in _COLUMNS}
        try:
            check_explained(1, sentence1=texts["sentence1"], sentence2=texts["sentence2"])
        except InputError as error:
            raise InputError(f"{row.place()}: {error}") from None
    with long_work(log=None, resume="Nothing was written.") as progress:
        written = write_records(output, rows(progress))
    typer.echo(f"{output}: {written} rows explained", err=True)


def _write(found: Explanation, output: Path) -> None:
    suffix = output.suffix.lower()
    if suffix in PICTURES:
        found.plot(output)
    elif suffix == ".html":
        head = '<!doctype html>\n<meta charset="utf-8">\n<title>condsim explain</title>\n'
        style = "<style>:root{color-scheme:light dark}body{font-family:sans-serif}</style>\n"
        write_text(output, head + style + found.to_html())
    else:
        write_text(output, json.dumps(found.to_dict(), indent=1, ensure_ascii=False) + "\n")


def _check_suffix(output: Path, known: tuple[str, ...]) -> None:
    if output.suffix.lower() not in known:
        raise InputError(
            f"--output {output}: the suffix must be one of {', '.join(known)}. "
            f"Got {output.suffix!r} instead."
        )


def explain(
    sentence1: Annotated[str | None, typer.Argument()] = None,
    sentence2: Annotated[str | None, typer.Argument()] = None,
    condition: Annotated[str | None, typer.Argument()] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            help="File to explain: CSV, TSV, JSONL or Parquet with sentence1, sentence2, "
            "condition; needs --output."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="File to write: .html, .json, .png, .svg or .pdf; .jsonl with --file."),
    ] = None,
    model: Model = None,
    scale: Annotated[
        Scale,
        typer.Option(
            help="unit: from 0 to 1, 0.5 is the middle. likert: from 1 to 5. raw: the cosine."
        ),
    ] = "unit",
    top: Annotated[int, typer.Option(min=0, help="Number of words to list.")] = 5,
    samples: Annotated[
        int, typer.Option(min=1, help="Most subsets of the words of each text that are scored.")
    ] = SAMPLES,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the drawn subsets.")] = 0,
) -> None:
    """Explain a score: which words of each text carry it under the condition.

    Blue words raise the score, orange ones lower it. The listed contributions, all other words and
    the score when one text says nothing add up to the score. `read` is what the labelling functions
    read from a text under the condition.

    **Examples**

    `condsim explain "A man throws a ball." "A girl kicks a ball." "the sport"`

    `condsim explain "A dog barks." "A cat sleeps." "the animal" --output why.html`

    `condsim explain --file pairs.csv --output explained.jsonl`
    """
    options: dict[str, Any] = {"scale": scale, "samples": samples, "seed": seed}
    if file is not None:
        if sentence1 is not None or output is None:
            raise InputError(
                "--file needs --output, and no sentences beside it. Give one of both ways."
            )
        _check_suffix(output, _ROWS)
        _explain_file(file, output, model=model, options=options)
        return
    texts = whole_pair(sentence1, sentence2, condition)
    if output is not None:
        _check_suffix(output, _ONE)
    found = _explained(load_scorer(model), texts, **options)
    if output is None:
        from condsim.console import Terminal

        console = Terminal(highlight=False)
        console.print(found, "")
        typer.echo(found.table(top=top, ascii_only=console.options.ascii_only))
    else:
        _write(found, output)
