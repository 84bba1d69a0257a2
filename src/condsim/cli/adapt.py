"""``condsim adapt``: adapt the default model to labelled pairs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from condsim.cli.process import long_work
from condsim.errors import InputError, require

if TYPE_CHECKING:
    from condsim.console import Progress
    from condsim.training.adaptation import Adaptation, AdaptSettings


def adapt(
    labelled: Annotated[
        Path,
        typer.Argument(help="Labelled pairs, or a table with a text and labels of it in each row."),
    ],
    output: Annotated[Path, typer.Option(help="Folder to write.")],
    model: Annotated[
        str | None,
        typer.Option(help="Folder of the bi-encoder to adapt.", show_default="the default model"),
    ] = None,
    dev: Annotated[
        Path | None,
        typer.Option(help="Labelled pairs to measure on, instead of a share of the rows."),
    ] = None,
    text: Annotated[str, typer.Option(help="In a table, the column of the text.")] = "text",
    criteria: Annotated[
        list[str] | None,
        typer.Option(
            help="In a table, the column of a criterion; may be repeated.",
            show_default="all other columns",
        ),
    ] = None,
    rows: Annotated[int, typer.Option(min=50, help="Most rows to draw from a table.")] = 2_000,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Most passes over the rows.", show_default="10")
    ] = None,
    minutes: Annotated[float | None, typer.Option(help="Most minutes of training.")] = None,
    rehearsal: Annotated[
        float | None,
        typer.Option(help="Share of training that keeps the rest as it is.", show_default="1/3"),
    ] = None,
    dev_share: Annotated[
        float | None, typer.Option(help="Share of the rows to measure on.", show_default="0.2")
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="Highest learning rate.", show_default="6e-5")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the draws.", show_default="0")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Write the model even if it does no better.")
    ] = False,
) -> None:
    """Adapt the model to your own criteria, from 50 to 2,000 labelled pairs.

    Pairs have the columns sentence1, sentence2, condition and label: a number from 1 to 5 or from 0
    to 1, or alike or different. A part of them is kept to measure on. What the model knows of other
    texts is rehearsed meanwhile. The result is an int8 model, as light as the default model; if it
    does no better on your rows, nothing is written and the exit status is 1. After Ctrl-C or a
    crash, run the same command again to continue.

    **Examples**

    `condsim adapt labelled.csv --output model`

    `condsim adapt tickets.csv --criteria topic --criteria sentiment --output model --minutes 5`

    `condsim score --model model "The room was cold." "It was freezing." "the temperature"`
    """
    require("sentence_transformers", extra="train")
    from condsim.data.files import column_names
    from condsim.training.adaptation import AdaptSettings, adapt as adapt_model

    given: dict[str, Any] = {
        "epochs": epochs,
        "minutes": minutes,
        "rehearsal": rehearsal,
        "dev_share": dev_share,
        "learning_rate": learning_rate,
        "seed": seed,
    }
    settings = AdaptSettings(**{key: one for key, one in given.items() if one is not None})
    names = {*column_names(labelled)}
    is_table = not names & {"sentence1", "sentence2"} and (text in names or bool(criteria))
    with TemporaryDirectory(prefix="condsim-") as folder, long_work() as progress:
        train, measured = labelled, dev
        if is_table:
            parts = ("train", "dev") if dev is None else ("train",)
            train, *drawn = draw_rows(
                labelled, Path(folder), settings, text=text, criteria=criteria, rows=rows,
                parts=parts, progress=progress,
            )  # fmt: skip
            measured = dev or drawn[0]
        result = adapt_model(
            train, output, model=model or "default", dev=measured, settings=settings, force=force
        )
    _show(result, output)


def draw_rows(
    table: Path,
    folder: Path,
    settings: AdaptSettings,
    *,
    text: str,
    criteria: list[str] | None,
    rows: int,
    parts: Sequence[str] = ("train", "dev"),
    progress: Progress,
) -> list[Path]:
    """Sampler of pairs from a table, with separate texts for training and for measuring."""
    import numpy as np

    from condsim.data.files import iter_rows, stem_of
    from condsim.data.held_out import text_digest
    from condsim.io import write_text
    from condsim.rows.criteria.build import build_criteria
    from condsim.rows.criteria.settings import CriteriaSettings

    found = [
        (text_digest(row.text(text)), row.record)
        for row in iter_rows(table, columns=(text,), whole_record=True)
    ]
    texts = list(dict(found))
    order = np.random.default_rng(settings.seed).permutation(len(texts))
    held = settings.dev_share if "dev" in parts else 0.0
    kept = {texts[place] for place in order[: round(held * len(texts))].tolist()}
    outputs = []
    for part in parts:
        chosen = [record for digest, record in found if (digest in kept) == (part == "dev")]
        source = folder / part / f"{stem_of(table)}.jsonl"
        source.parent.mkdir()
        write_text(source, "".join(f"{json.dumps(one)}\n" for one in chosen))
        output = folder / f"{stem_of(table)}-{part}.csv"
        share = held if part == "dev" else 1 - held
        drawn = CriteriaSettings(rows=max(2, round(rows * share)), seed=settings.seed)
        # Pairs take two criteria that cut across one another.
        forms = [{"form": "pairs"}, {}] if part == "dev" else [{}]
        for form in forms:
            try:
                build_criteria(
                    [source], output, drawn.replaced(**form), text=text, criteria=criteria,
                    progress=progress,
                )  # fmt: skip
                break
            except InputError as error:
                reason = str(error).replace(str(source), str(table))
        else:
            raise InputError(
                f"{reason} ('condsim build criteria' has more options; adapt takes its rows.)"
            )
        outputs.append(output)
    return outputs


def _show(result: Adaptation, output: Path) -> None:
    typer.echo(result.to_text())
    if result.output is None:
        typer.echo(
            f"Not written: on your rows it does no better than before. Label more pairs, look for "
            f"wrong labels, or write it all the same with --force (kept in {output}.work)."
        )
        raise typer.Exit(1)
    if not result.helped:
        typer.echo(f"{output}: written, although it does no better than before.")
        return
    typer.echo(
        f"{output}: written. Measure it on rows that it has not seen: "
        f"condsim evaluate --data rows.csv --model {output}"
    )
