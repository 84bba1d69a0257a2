"""``condsim search``: finds texts of an index under conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from condsim.cli.options import JsonFile, Overall, write_report
from condsim.cli.process import print_note
from condsim.data.files import finite_values
from condsim.errors import InputError
from condsim.model.base import COLLECTION_SHARE

if TYPE_CHECKING:
    from condsim.search.query import Hit


def search(
    folder: Annotated[
        str, typer.Argument(help="Folder or address of an index; see condsim index.", metavar="DIR")
    ],
    query: Annotated[str, typer.Argument(help="Text to compare with.")],
    condition: Annotated[
        list[str] | None,
        typer.Option(
            help="In which respect texts must be similar. Repeatable.",
            show_default="the prepared one",
        ),
    ] = None,
    weight: Annotated[
        list[float] | None,
        typer.Option(help="Weight of each condition, in their order.", show_default="equal"),
    ] = None,
    where: Annotated[str | None, typer.Option(help='Filter in SQL, such as "year > 2020".')] = None,
    top: Annotated[int, typer.Option(min=1, help="Maximum number of texts to find.")] = 10,
    at_least: Annotated[float | None, typer.Option(min=0, max=1, help="Lowest score.")] = None,
    rescore: Annotated[
        int, typer.Option(min=1, help="Texts that are scored under the conditions.")
    ] = 200,
    overall: Overall = COLLECTION_SHARE,
    json: JsonFile = None,
    model: Annotated[
        str | None, typer.Option(help="Model folder or Hub name.", show_default="that of the index")
    ] = None,
) -> None:
    """Find the texts most similar to a query with respect to a condition.

    Prints the score, the key and the text of each, best first.

    **Examples**

    `condsim search tickets.index "It came two weeks late." --condition "the complaint"`

    `condsim search tickets.index "It came late." --condition "the complaint" --condition "the
    product" --weight 0.7 --weight 0.3 --where "year > 2020" --at-least 0.7 --json`
    """
    from condsim.search.index import Index

    chosen: Sequence[str] | dict[str, float] | None = condition
    if weight:
        if len(weight) != len(condition or ()):
            raise InputError(
                f"expected one --weight for each --condition, got {len(weight)} for "
                f"{len(condition or ())}."
            )
        chosen = dict(zip(condition or (), weight, strict=True))
    hits = Index.open(folder, model=model).search(
        query, chosen, where=where, top=top, at_least=at_least, rescore=rescore, overall=overall
    )
    write_report(json, finite_values([asdict(hit) for hit in hits]))
    for hit in hits:
        typer.echo(_line(hit))
    if not hits:
        print_note("Nothing was found.")


def _line(hit: Hit) -> str:
    return f"{hit.score:.2f}\t{hit.key}\t{' '.join(hit.text.split())}"
