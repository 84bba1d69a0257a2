"""``condsim build candidates | filter``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from condsim.cli.files import Output
from condsim.cli.options import Device, show_table
from condsim.cli.process import long_work, print_result
from condsim.errors import InputError, require
from condsim.paths import check_suffix

if TYPE_CHECKING:
    from condsim_annotation.pairs import FilterCounts, FilterSettings

PresetName = Literal["coco", "flickr30k"]
Preset = Annotated[PresetName | None, typer.Option(help="Filters of the paper.")]
MaxIou = Annotated[float | None, typer.Option(help="Maximum overlap of the bags of words, 0 to 1.")]
MinCosine = Annotated[float | None, typer.Option(help="Minimum cosine of the text encoder.")]
MinRatio = Annotated[float | None, typer.Option(help="Minimum ratio of the word counts, 0 to 1.")]
MinLength = Annotated[int | None, typer.Option(help="Minimum characters of the shorter sentence.")]
StopWords = Annotated[
    Path | None, typer.Option(help="File of stop words, if not the English list.")
]
TextEncoderName = Annotated[
    str | None,
    typer.Option(
        "--text-encoder",
        help="Model for texts: a folder, a name on the Hub, or 'default' for the default model.",
        show_default="all-MiniLM-L6-v2",
    ),
]
NoTextCosine = Annotated[
    bool, typer.Option("--no-text-cosine", help="Do not compute the cosine of texts.")
]

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")


def _filter_settings(
    preset: PresetName | None, bounds: Mapping[str, float | None], *, no_text_cosine: bool
) -> FilterSettings:
    """Combine the filters of a preset with the bounds that are given."""
    from condsim_annotation.candidates import PRESETS
    from condsim_annotation.pairs import FilterSettings

    settings = FilterSettings() if preset is None else PRESETS[preset][1]
    changes = {name: bound for name, bound in bounds.items() if bound is not None}
    if not no_text_cosine:
        return settings.replaced(**changes)
    if "min_text_cosine" in changes:
        raise InputError("--no-text-cosine and --min-cosine contradict each other; give one.")
    return settings.replaced(**changes, min_text_cosine=None)


def _show_counts(counts: FilterCounts, settings: FilterSettings) -> None:
    """Print the number of pairs that each filter rejects."""
    numbers = [("seen", counts.pairs), ("rejected: a sentence with itself", counts.same_text)]
    for text, name in (
        ("IOU above", "max_iou"),
        ("cosine below", "min_text_cosine"),
        ("length ratio below", "min_length_ratio"),
        ("fewer characters than", "min_length"),
    ):
        bound = getattr(settings, name)
        if bound is not None:
            numbers.append((f"rejected: {text} {bound:g}", getattr(counts, name)))
    numbers.append(("pass all", counts.passed))
    rows = [
        (text, f"{number:,}", f"{number / max(counts.pairs, 1):.1%}") for text, number in numbers
    ]
    show_table(("", "pairs", "share"), rows, title="Sentence pairs")


@app.command()
def candidates(
    items: Annotated[Path, typer.Argument(help="File with one caption or text in each row.")],
    output: Annotated[Path, typer.Option(help="Parquet file to write."), Output(".parquet")],
    preset: Preset = None,
    k: Annotated[int | None, typer.Option(min=1, help="Neighbors of an item (64).")] = None,
    texts: Annotated[bool, typer.Option("--texts", help="Plain texts: each is an item.")] = False,
    item_column: Annotated[str, typer.Option(help="Column that names the item.")] = "item_id",
    caption_column: Annotated[
        str | None,
        typer.Option("--column", help="Column of the texts (caption; sentence with --texts)."),
    ] = None,
    source: Annotated[str | None, typer.Option(help="Name of the collection.")] = None,
    images: Annotated[
        Path | None, typer.Option(help="Folder of images, named as the items.")
    ] = None,
    image_encoder: Annotated[
        str | None, typer.Option(help="CLIP model.", show_default="clip-ViT-B-32")
    ] = None,
    embeddings: Annotated[Path | None, typer.Option(help=".npy file, a row for each item.")] = None,
    text_encoder: TextEncoderName = None,
    no_text_cosine: NoTextCosine = False,
    max_iou: MaxIou = None,
    min_cosine: MinCosine = None,
    min_ratio: MinRatio = None,
    min_length: MinLength = None,
    stop_words: StopWords = None,
    sample: Annotated[int | None, typer.Option(min=1, help="Write this many at random.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sample.")] = 0,
    exact_up_to: Annotated[
        int, typer.Option(min=0, help="Maximum items for exact search; HNSW beyond.")
    ] = 200_000,
    cache: Annotated[Path | None, typer.Option(help="Folder for vectors and indexes.")] = None,
    device: Device = None,
) -> None:
    """Pair the captions of near items and filter the pairs.

    Items are embedded by their images, by your own vectors, or by the mean of their captions.
    The same command continues an interrupted run. Run each collection by itself.

    **Examples**

    `condsim build candidates captions.csv --images photos --preset coco --output pairs.parquet`

    `condsim build candidates tickets.csv --texts --column title --output pairs.parquet`
    """
    for module in ("faiss", "filelock", "pyarrow.parquet"):
        require(module, extra="build")
    from condsim_annotation.candidates import (
        PRESETS,
        CandidateSettings,
        embed_collection,
        make_candidates,
        read_items,
    )
    from condsim_annotation.pairs import read_stop_words

    check_suffix(output, (".parquet",))
    if images is not None and (texts or embeddings is not None):
        raise InputError("--images cannot be combined with --texts or --embeddings.")
    if image_encoder is not None and images is None:
        raise InputError("--image-encoder is for --images; give the folder of images as well.")
    bounds = {"max_iou": max_iou, "min_text_cosine": min_cosine}
    bounds |= {"min_length_ratio": min_ratio, "min_length": min_length}
    filters = _filter_settings(preset, bounds, no_text_cosine=no_text_cosine)
    k = k or (64 if preset is None else PRESETS[preset][0])
    settings = CandidateSettings(
        k=k, filters=filters, exact_up_to=exact_up_to, sample=sample, seed=seed
    )
    words = read_stop_words(stop_words)
    collection = read_items(
        items,
        item_column=None if texts else item_column,
        caption_column=caption_column or ("sentence" if texts else "caption"),
        source=source,
    )
    cache = cache or output.with_suffix(".cache")
    # Without a bound and a text encoder, items that need no captions need no cosines either.
    needs_cosine = text_encoder is not None or filters.min_text_cosine is not None
    has_vectors = images is not None or embeddings is not None
    with long_work(log=None) as progress:
        vectors = embed_collection(
            collection,
            images=images,
            image_encoder=image_encoder,
            embeddings=embeddings,
            text_encoder=text_encoder,
            cosine=not no_text_cosine and (needs_cosine or not has_vectors),
            cache=cache,
            device=device,
            progress=progress,
        )
        report = make_candidates(
            collection, vectors, output, settings, words, cache=cache, progress=progress
        )
    typer.echo(
        f"{report.items:,} items, {report.captions:,} captions "
        f"({report.repeated_captions:,} repeated ones left out), "
        f"{report.item_pairs:,} pairs of near items"
    )
    _show_counts(report.counts, filters)
    typer.echo(f"left out, the same two texts came before: {report.repeated:,}")
    print_result(f"{output}: {report.written:,} pairs")


@app.command("filter")
def filter_pairs(
    pairs: Annotated[
        list[Path], typer.Argument(help="Files with the columns sentence1, sentence2.")
    ],
    output: Annotated[
        Path | None,
        typer.Option(help="Parquet or CSV file to write.", show_default="only count"),
        Output(".csv"),
    ] = None,
    preset: Preset = None,
    text_encoder: TextEncoderName = None,
    no_text_cosine: NoTextCosine = False,
    max_iou: MaxIou = None,
    min_cosine: MinCosine = None,
    min_ratio: MinRatio = None,
    min_length: MinLength = None,
    stop_words: StopWords = None,
    device: Device = None,
) -> None:
    """Filter existing pairs and report how many each filter rejects.

    Several files become one: no pair is written twice.

    **Examples**

    `condsim build filter csts_train.csv --preset flickr30k --no-text-cosine`

    `condsim build filter coco.parquet flickr.parquet --max-iou 0.1 --output pairs.parquet`
    """
    from condsim_annotation.candidates import filter_files
    from condsim_annotation.pairs import PairFilter, load_text_encoder, read_stop_words

    bounds = {"max_iou": max_iou, "min_text_cosine": min_cosine}
    bounds |= {"min_length_ratio": min_ratio, "min_length": min_length}
    settings = _filter_settings(preset, bounds, no_text_cosine=no_text_cosine)
    words = read_stop_words(stop_words)
    encoder = None
    needs_cosine = settings.min_text_cosine is not None or text_encoder is not None
    if needs_cosine and not no_text_cosine:
        encoder = load_text_encoder(text_encoder, device=device)
    rules = PairFilter(settings, encoder=encoder, stop_words=words)
    passed = filter_files(pairs, rules, output=output)
    if rules.repeated:
        typer.echo(f"left out, the pair came before: {rules.repeated:,}")
    _show_counts(rules.counts, settings)
    print_result(f"{passed:,} pairs pass" if output is None else f"{output}: {passed:,} pairs")
