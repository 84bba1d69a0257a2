"""``condsim build``: builds your own data set the way C-STS was built."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from condsim.cli.options import Device, show_table
from condsim.cli.running import check_outputs, long_work
from condsim.errors import InputError, require

if TYPE_CHECKING:
    from condsim.annotation.candidates import CandidateReport
    from condsim.rows.filters import FilterCounts, FilterSettings

PRESET = typer.Option(help="Filters of the paper: coco or flickr30k.")
MAX_IOU = typer.Option(help="Highest overlap of the bags of words, 0 to 1.")
MIN_COSINE = typer.Option(help="Lowest cosine of the text encoder.")
MIN_RATIO = typer.Option(help="Lowest ratio of the word counts, 0 to 1.")
MIN_LENGTH = typer.Option(help="Fewest characters of the shorter.")
STOP_WORDS = typer.Option(
    help="File of stop words, separated by white space.", show_default="an English list"
)
TEXT_ENCODER = typer.Option(
    help="Model for texts: a folder, a name on the Hub, or 'default' for the bundled one.",
    show_default="all-MiniLM-L6-v2",
)
NO_TEXT_COSINE = typer.Option("--no-text-cosine", help="Leave the cosine of texts out.")

_BOUNDS = ("max_iou", "min_text_cosine", "min_length_ratio", "min_length")


def filter_settings(
    name: str | None, given: Sequence[float | None], *, cosine: bool
) -> FilterSettings:
    """Puts a preset, None for no bounds, and single bounds, None for the preset's, together."""
    from condsim.rows.filters import FilterSettings, preset

    bounds = dict(zip(_BOUNDS, given, strict=True))
    if not cosine and bounds["min_text_cosine"] is not None:
        raise InputError("--no-text-cosine and --min-cosine contradict each other; give one.")
    known = FilterSettings() if name is None else preset(name)[1]
    changes = {key: bound for key, bound in bounds.items() if bound is not None}
    return known.replaced(**changes if cosine else changes | {"min_text_cosine": None})


def show_counts(counts: FilterCounts, settings: FilterSettings) -> None:
    """Prints how many pairs each filter rejects."""
    found = (
        ("seen", counts.pairs),
        ("rejected: a sentence with itself", counts.same_text),
        (f"rejected: IOU above {settings.max_iou}", counts.max_iou),
        (f"rejected: cosine below {settings.min_text_cosine}", counts.min_text_cosine),
        (f"rejected: length ratio below {settings.min_length_ratio}", counts.min_length_ratio),
        (f"rejected: fewer characters than {settings.min_length}", counts.min_length),
        ("pass all", counts.passed),
    )
    rows = [
        (what, f"{count:,}", f"{count / max(counts.pairs, 1):.1%}")
        for what, count in found
        if not what.endswith(" None")
    ]
    show_table(("", "pairs", "share"), rows, title="Sentence pairs")


app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")


@app.command()
def candidates(
    items: Annotated[Path, typer.Argument(help="File with one caption or text in each row.")],
    output: Annotated[Path, typer.Option(help="Parquet file to write.")],
    preset: Annotated[str | None, PRESET] = None,
    k: Annotated[
        int | None, typer.Option(min=1, help="Neighbours of an item.", show_default="preset's, 64")
    ] = None,
    texts: Annotated[
        bool, typer.Option("--texts", help="A plain text collection: each text is an item.")
    ] = False,
    item_column: Annotated[str, typer.Option(help="Column that names the item.")] = "item_id",
    caption_column: Annotated[
        str | None,
        typer.Option(help="Column of the text.", show_default="caption; sentence with --texts"),
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="Name of the collection.", show_default="the file's")
    ] = None,
    images: Annotated[
        Path | None, typer.Option(help="Folder of images, named as the items.")
    ] = None,
    image_encoder: Annotated[
        str | None,
        typer.Option(help="CLIP model of sentence-transformers.", show_default="clip-ViT-B-32"),
    ] = None,
    embeddings: Annotated[Path | None, typer.Option(help=".npy file with a row an item.")] = None,
    text_encoder: Annotated[str | None, TEXT_ENCODER] = None,
    no_text_cosine: Annotated[bool, NO_TEXT_COSINE] = False,
    max_iou: Annotated[float | None, MAX_IOU] = None,
    min_cosine: Annotated[float | None, MIN_COSINE] = None,
    min_ratio: Annotated[float | None, MIN_RATIO] = None,
    min_length: Annotated[int | None, MIN_LENGTH] = None,
    stop_words: Annotated[Path | None, STOP_WORDS] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, help="Write this many at random.", show_default="all")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sample.")] = 0,
    exact_up_to: Annotated[
        int, typer.Option(min=0, help="Most items for exact search; HNSW beyond.")
    ] = 200_000,
    cache: Annotated[
        Path | None,
        typer.Option(
            help="Folder for kept vectors and indexes.", show_default="beside the output, .cache"
        ),
    ] = None,
    device: Device = None,
) -> None:
    """Pair the captions of near items and filter the pairs.

    Items are embedded by their images, by vectors of your own, or by the mean of their captions.
    A run that was stopped goes on with the same command. Run each collection by itself.

    **Examples**

    `condsim build candidates captions.csv --images photos --preset coco --output pairs.parquet`

    `condsim build candidates tickets.csv --texts --caption-column title --output pairs.parquet`
    """
    for module in ("faiss", "filelock", "pyarrow.parquet"):
        require(module, extra="build")
    from condsim.annotation.candidates import (
        CandidateSettings,
        check_candidates_file,
        make_candidates,
    )
    from condsim.rows.filters import preset as preset_of
    from condsim.rows.items import read_items, read_stop_words
    from condsim.rows.near_pairs import embed

    check_outputs(output=output)
    check_candidates_file(output)
    _check_sources(texts=texts, images=images, embeddings=embeddings, image_encoder=image_encoder)
    bounds = (max_iou, min_cosine, min_ratio, min_length)
    settings = CandidateSettings(
        k=k or (64 if preset is None else preset_of(preset)[0]),
        filters=filter_settings(preset, bounds, cosine=not no_text_cosine),
        exact_up_to=exact_up_to,
        sample=sample,
        seed=seed,
    )
    words = read_stop_words(stop_words)
    collection = read_items(
        items,
        item_column=None if texts else item_column,
        caption_column=caption_column or ("sentence" if texts else "caption"),
        source=source,
    )
    given = images is not None or embeddings is not None
    kept = cache or output.with_suffix(".cache")
    with long_work(log=None) as progress:
        found = embed(
            collection,
            images=images,
            image_encoder=image_encoder,
            embeddings=embeddings,
            text_encoder=text_encoder,
            cosine=not no_text_cosine
            and not (text_encoder is None and settings.filters.min_text_cosine is None and given),
            cache=kept,
            device=device,
            progress=progress,
        )
        report = make_candidates(
            collection,
            found.items,
            output,
            settings=settings,
            cache=kept,
            progress=progress,
            caption_vectors=found.captions,
            stop_words=words,
            provenance=found.provenance,
        )
    _show(report, settings.filters)
    typer.echo(f"{output}: {report.written:,} pairs")


@app.command("filter")
def filter_(
    pairs: Annotated[
        list[Path], typer.Argument(help="Files with the columns sentence1, sentence2.")
    ],
    output: Annotated[
        Path | None, typer.Option(help="Parquet or CSV file to write.", show_default="only count")
    ] = None,
    preset: Annotated[str | None, PRESET] = None,
    text_encoder: Annotated[str | None, TEXT_ENCODER] = None,
    no_text_cosine: Annotated[bool, NO_TEXT_COSINE] = False,
    max_iou: Annotated[float | None, MAX_IOU] = None,
    min_cosine: Annotated[float | None, MIN_COSINE] = None,
    min_ratio: Annotated[float | None, MIN_RATIO] = None,
    min_length: Annotated[int | None, MIN_LENGTH] = None,
    stop_words: Annotated[Path | None, STOP_WORDS] = None,
    device: Device = None,
) -> None:
    """Filter existing pairs and report how many each filter rejects.

    Several files become one: no pair is written twice.

    **Examples**

    `condsim build filter csts_train.csv --preset flickr30k --no-text-cosine`

    `condsim build filter coco.parquet flickr.parquet --max-iou 0.1 --output pairs.parquet`
    """
    from condsim.rows.filters import PairFilter, filter_files
    from condsim.rows.items import read_stop_words
    from condsim.rows.near_pairs import load_text_encoder

    check_outputs(output=output)
    bounds = (max_iou, min_cosine, min_ratio, min_length)
    settings = filter_settings(preset, bounds, cosine=not no_text_cosine)
    words = read_stop_words(stop_words)
    wanted = settings.min_text_cosine is not None or text_encoder is not None
    encoder = None
    if wanted and not no_text_cosine:
        encoder = load_text_encoder(text_encoder, device=device)
    rules = PairFilter(settings, encoder=encoder, stop_words=words)
    passed = filter_files(pairs, rules, output=output)
    if rules.repeated:
        typer.echo(f"left out, the pair came before: {rules.repeated:,}")
    show_counts(rules.counts, settings)
    typer.echo(f"{passed:,} pairs pass" if output is None else f"{output}: {passed:,} pairs")


def _check_sources(
    *, texts: bool, images: Path | None, embeddings: Path | None, image_encoder: str | None
) -> None:
    """Refuses options that say two things about the items."""
    if images is not None and embeddings is not None:
        raise InputError("--images and --embeddings both embed the items; give one of them.")
    if texts and images is not None:
        raise InputError("--texts has no items with images; leave --images out.")
    if image_encoder is not None and images is None:
        raise InputError("--image-encoder is for --images; give the folder of images too.")


def _show(report: CandidateReport, settings: FilterSettings) -> None:
    """Prints what there was and what became of it."""
    typer.echo(
        f"{report.items:,} items, {report.captions:,} captions "
        f"({report.repeated_captions:,} repeated ones left out), "
        f"{report.item_pairs:,} pairs of near items"
    )
    show_counts(report.counts, settings)
    typer.echo(f"left out, the same two texts came before: {report.repeated:,}")
