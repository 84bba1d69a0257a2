"""From files of captions to a weakly labelled data set on disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass
from itertools import chain
from pathlib import Path

from condsim.construction.row_files import (
    AnsweredRow,
    WeakRow,
    revisions_of,
    write_provenance,
    write_rows,
)
from condsim.construction.weak.draw import Drawing, absent_rows
from condsim.construction.weak.functions import LabellingFunction
from condsim.construction.weak.pool import Pool, WeakSettings, near_pairs, read_pool
from condsim.construction.weak.registry import Registry
from condsim.progress import Progress
from condsim.tasks import held_out_texts, iter_csts


@dataclass(frozen=True)
class WeakReport:
    """What was made."""

    sentences: int  # sentences that pairs were drawn from
    excluded: int  # sentences left out since they are in a file to be kept apart
    repeated: int  # sentences left out since they came before
    pairs: int  # pairs that were looked at
    rows: int  # rows written with a label from 1 to 5
    absent: int  # rows written with the label -1
    labels: dict[str, int]  # rows by label
    families: dict[str, int]  # rows by family of their function
    functions: dict[str, int]  # rows by function


def build_weak(
    paths: Sequence[Path],
    output: Path,
    registry: Registry,
    *,
    settings: WeakSettings,
    cache: Path,
    progress: Progress,
    caption_column: str = "caption",
    item_column: str | None = None,
    exclude: Sequence[Path] = (),
    like: Path | None = None,
    absent_output: Path | None = None,
    functions: Sequence[Path] = (),
    device: str | None = None,
) -> WeakReport:
    """Makes a weakly labelled data set; the same input gives the same file.

    Args:
        output: A ``.csv`` or ``.parquet`` file to write; a manifest lies beside it.
        settings: Sizes, seed and bounds.
        cache: Folder where vectors and neighbours are kept.
        progress: Called with the stage, what is done and what there is.
        caption_column: See `read_pool`.
        item_column: See `read_pool`.
        exclude: Files of sentences that must not be used; see `condsim.tasks.held_out_texts`.
        like: A C-STS file; each function is drawn as often as its conditions are written there.
        absent_output: File for rows with the label -1; the same file if None.
        functions: Files that functions of the registry are from, for the manifest.
        device: Where torch runs; it chooses if None.

    Raises:
        InputError: If a file cannot be read or written, or an option is out of its range.
        MissingExtraError: If an optional library is not installed.
    """
    cache.mkdir(parents=True, exist_ok=True)
    weighted = _weighted(registry, like)
    drawing = Drawing(weighted, rows=settings.rows, seed=settings.seed)
    pool = read_pool(
        paths,
        caption_column=caption_column,
        item_column=item_column,
        exclude=held_out_texts(exclude),
        sample=settings.sample,
        seed=settings.seed,
    )
    pairs, revision = near_pairs(pool, settings, cache=cache, progress=progress, device=device)
    written: Counter[tuple[str, int]] = Counter()

    def counted(rows: Iterator[AnsweredRow]) -> Iterator[WeakRow]:
        for row in rows:
            written[row.origin.removeprefix("weak:"), row.label] += 1
            if written.total() % 100 == 0:
                progress("rows", written.total(), settings.rows + settings.absent)
            yield row if settings.answers else WeakRow(*astuple(row)[:5])

    labelled = counted(drawing.rows(pairs))
    absent = counted(absent_rows(pairs, weighted, rows=settings.absent, seed=settings.seed))
    kind = AnsweredRow if settings.answers else WeakRow
    if absent_output is None:
        write_rows(chain(labelled, absent), output, kind=kind)
    else:
        write_rows(labelled, output, kind=kind)
        write_rows(absent, absent_output, kind=kind)
    report = _report(pool, drawing.seen, written, registry)
    facts = {
        "excluded": revisions_of(exclude),
        "like": None if like is None else revisions_of([like]),
        "functions": revisions_of(functions),
        "settings": settings.model_dump(),
        "text_encoder_revision": revision,
        "report": asdict(report),
    }
    for path in filter(None, (output, absent_output)):
        write_provenance(path, kind="weak labels", made_from=paths, facts=facts)
    return report


def _weighted(registry: Registry, like: Path | None) -> list[tuple[LabellingFunction, float]]:
    """The functions that are drawn, and how often; one whose own weight is 0 never is."""
    drawn = [(function, function.weight) for function in registry if function.weight > 0]
    if like is not None:
        found = (registry.find(row.condition) for row in iter_csts(like, labels=False))
        written = Counter(function.name for function in found if function is not None)
        drawn = [(f, float(written[f.name])) for f, _ in drawn if written[f.name]]
    return drawn


def _report(
    pool: Pool, pairs: int, written: Counter[tuple[str, int]], registry: Registry
) -> WeakReport:
    family = {function.name: function.family for function in registry}
    labels, families, names = Counter[str](), Counter[str](), Counter[str]()
    for (name, label), rows in written.items():
        labels[str(label)] += rows
        families[family[name]] += rows
        names[name] += rows
    absent = labels["-1"]
    return WeakReport(
        sentences=len(pool.collection.captions),
        excluded=pool.excluded,
        repeated=pool.repeated,
        pairs=pairs,
        rows=labels.total() - absent,
        absent=absent,
        labels=dict(sorted(labels.items())),
        families=dict(families.most_common()),
        functions=dict(names.most_common()),
    )
