"""``condsim explain``: which words of two texts carry their score."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from condsim.cli.options import ConditionColumn, Model, Scale, Text1, Text2, whole_pair
from condsim.cli.pairs import PairColumns, pair_columns
from condsim.cli.process import long_work
from condsim.data.files import Batch, column_names, open_writer, read_batches
from condsim.errors import InputError
from condsim.io import write_text
from condsim.loading import load_scorer
from condsim.model.base import SAMPLES, PairScorer
from condsim.model.explanation import PICTURES, check_explained

if TYPE_CHECKING:
    from condsim.model.explanation import Explanation

_ROWS_PER_BATCH = 32
_JSON_LINES = (".jsonl", ".ndjson")
_SINGLE_FILES = (".html", ".json", *PICTURES)


def _explained(
    scorer: PairScorer, texts: tuple[str, str, str], options: dict[str, Any]
) -> Explanation:
    """Explain a pair, with what the labelling functions read from it."""
    from condsim.rows.teach import function_answers

    return scorer.explain(*texts, read=function_answers, **options)


def _pairs(
    batch: Batch, columns: PairColumns, condition: str | None
) -> Iterator[tuple[str, str, str]]:
    """Yield texts and condition of each row; reject texts that cannot be explained."""
    for row in batch.rows:
        sentence1, sentence2 = row.text(columns.text1), row.text(columns.text2)
        try:
            check_explained(1, sentence1=sentence1, sentence2=sentence2)
        except InputError as error:
            raise InputError(f"{row.place()}: {error}") from None
        chosen = (
            row.text(columns.condition, is_condition=True)
            if columns.condition is not None
            else condition
        )
        yield sentence1, sentence2, str(chosen)


def _explain_file(
    file: Path,
    output: Path,
    columns: PairColumns,
    *,
    model: str | None,
    options: dict[str, Any],
) -> None:
    """Explain each row of a file into another, which keeps all columns."""
    condition = columns.conditions[0] if columns.conditions else None

    def batches() -> Iterator[Batch]:
        return read_batches(file, columns=columns.names, size=_ROWS_PER_BATCH)

    total = sum(len(list(_pairs(batch, columns, condition))) for batch in batches())
    with (
        long_work(log=None, resume="Nothing was written.") as progress,
        open_writer(output) as writer,
    ):
        scorer = load_scorer(model)
        done = 0
        for batch in batches():
            explanations = []
            for texts in _pairs(batch, columns, condition):
                explanations.append(_explained(scorer, texts, options).to_dict())
                done += 1
                progress("explain", done, total)
            batch["explanation"] = explanations
            writer.write(batch)
    typer.echo(f"{output}: {total} rows explained", err=True)


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


def _check_suffix(output: Path, suffixes: tuple[str, ...]) -> None:
    if output.suffix.lower() not in suffixes:
        raise InputError(
            f"--output {output}: the suffix must be one of {', '.join(suffixes)}; got "
            f"{output.suffix!r}."
        )


def explain(
    sentence1: Annotated[str | None, typer.Argument()] = None,
    sentence2: Annotated[str | None, typer.Argument()] = None,
    condition: Annotated[str | None, typer.Argument()] = None,
    file: Annotated[
        Path | None,
        typer.Option(help="File of pairs to explain: CSV, TSV, JSONL or Parquet; needs --output."),
    ] = None,
    text1: Text1 = "sentence1",
    text2: Text2 = "sentence2",
    condition_column: ConditionColumn = "condition",
    condition_of_all: Annotated[
        str | None, typer.Option("--condition", help="Condition for every row of --file.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="File to write: .html, .json, .png, .svg or .pdf; .jsonl with --file."),
    ] = None,
    model: Model = None,
    scale: Scale = "unit",
    top: Annotated[int, typer.Option(min=0, help="Number of words to list.")] = 5,
    samples: Annotated[
        int, typer.Option(min=1, help="Maximum number of subsets of words to score for each text.")
    ] = SAMPLES,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the drawn subsets.")] = 0,
) -> None:
    """Explain a score: which words of each text carry it under the condition.

    Blue words raise the score, orange ones lower it. Contributions plus the baseline score, for
    which one text says nothing, sum to the score. `read` shows the value that a labelling function
    extracted from each text.

    **Examples**

    `condsim explain "A man throws a ball." "A girl kicks a ball." "the sport"`

    `condsim explain "A dog barks." "A cat sleeps." "the animal" --output why.html`

    `condsim explain --file pairs.csv --output explained.jsonl`
    """
    options: dict[str, Any] = {"scale": scale, "samples": samples, "seed": seed}
    if file is not None:
        if sentence1 is not None or output is None:
            raise InputError("--file needs --output, and no sentences.")
        _check_suffix(output, _JSON_LINES)
        names = column_names(file)
        columns = pair_columns(
            names,
            file,
            text1=text1,
            text2=text2,
            condition_column=condition_column,
            conditions=None if condition_of_all is None else [condition_of_all],
        )
        if columns.is_plain:
            columns = columns._replace(condition=condition_column)
        _explain_file(file, output, columns, model=model, options=options)
        return
    texts = whole_pair(sentence1, sentence2, condition)
    if output is not None:
        _check_suffix(output, _SINGLE_FILES)
    explanation = _explained(load_scorer(model), texts, options)
    if output is None:
        from condsim.console import Terminal

        console = Terminal(highlight=False)
        console.print(explanation, "")
        typer.echo(explanation.table(top=top, ascii_only=console.options.ascii_only))
    else:
        _write(explanation, output)
