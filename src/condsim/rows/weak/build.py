"""From files of captions to a weakly labelled data set on disk: pairs, their conditions, rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from condsim.config import Settings
from condsim.console import Progress
from condsim.data.csts import iter_csts
from condsim.data.held_out import HeldOutTexts, held_out_texts, text_digest
from condsim.data.reading import iter_rows
from condsim.errors import InputError, require
from condsim.io import check_not_input
from condsim.rows.filters import FilterSettings, PairFilter
from condsim.rows.items import Collection, item_name
from condsim.rows.near_pairs import caption_vectors, load_text_encoder, nearest_pairs, unit_length
from condsim.rows.records import (
    DOES_NOT_APPLY,
    AnsweredRow,
    Candidate,
    WeakRow,
    pair_id_of,
    revisions_of,
    write_provenance,
    write_rows,
)
from condsim.rows.weak.functions import ABSENT, LabellingFunction
from condsim.rows.weak.language import Sentence
from condsim.rows.weak.registry import Registry
from condsim.types import FloatArray

_WIDTH = 200  # of vectors of words
_NONE = HeldOutTexts()


class WeakSettings(Settings):
    """How a weakly labelled data set is made."""

    rows: Annotated[int, Field(ge=2)] = 60_000  # rows with a label from 1 to 5, two a pair
    absent: Annotated[int, Field(ge=0)] = 0  # rows with the label -1
    seed: Annotated[int, Field(ge=0)] = 0  # seed of all that is drawn
    k: Annotated[int, Field(ge=1)] = 32  # neighbours of a sentence
    # Sentences to draw pairs from; all if None.
    sample: Annotated[int, Field(ge=2)] | None = None
    # The model whose vectors say which sentences are near; ``"words"`` needs none, None is that of
    # `condsim.rows.near_pairs.load_text_encoder`.
    text_encoder: str | None = None
    answers: bool = True  # whether the rows have the columns ``answer1`` and ``answer2``
    # Bounds that pairs must keep.
    filters: FilterSettings = FilterSettings(max_iou=0.3, min_length_ratio=0.6)


@dataclass(frozen=True, eq=False)
class Pool:
    """Sentences of one or more files."""

    collection: Collection  # repeated: the same as an earlier one but for case and punctuation
    items: Sequence[object]  # of each sentence; sentences of an item are not paired
    excluded: int  # left out, since a file to be kept apart has them


def read_pool(
    paths: Sequence[Path],
    *,
    caption_column: str = "caption",
    item_column: str | None = None,
    exclude: HeldOutTexts = _NONE,
    sample: int | None = None,
    seed: int = 0,
) -> Pool:
    """Reads sentences, leaves out what must be, and draws some.

    Args:
        paths: Files with a row a sentence; formats as `condsim.data.reading.iter_rows` reads them.
        item_column: The column that names what several sentences describe, which are not paired;
            each sentence is by itself if None.
        sample: Sentences to draw; all if None.

    Raises:
        InputError: If a file cannot be read, or fewer than two sentences are left.
    """
    seen: set[bytes] = set()
    texts: list[str] = []
    items: list[object] = []
    excluded = repeated = 0
    columns = [caption_column] if item_column is None else [caption_column, item_column]
    for row in chain.from_iterable(iter_rows(path, columns=columns) for path in paths):
        text = row.text(caption_column)
        item = None if item_column is None else (row.path, item_name(row, item_column))
        key = text_digest(text)
        if key in seen:
            repeated += 1
            continue
        seen.add(key)
        if text in exclude:
            excluded += 1
        else:
            texts.append(text)
            items.append(item or len(items))
    if len(texts) < 2:
        raise InputError(
            f"Pairs need at least two sentences that are not left out. Got {len(texts)}; "
            f"{excluded} are in the files to be kept apart. Give more captions."
        )
    chosen = np.arange(len(texts))
    if sample is not None and sample < len(texts):
        chosen = np.sort(np.random.default_rng(seed).choice(len(texts), sample, replace=False))
    collection = Collection(
        source="weak",
        revision="",
        item_ids=tuple(f"sentence-{place}" for place in chosen),
        captions=tuple(texts[place] for place in chosen),
        starts=np.arange(len(chosen) + 1),
        repeated=repeated,
    )
    return Pool(collection, [items[place] for place in chosen], excluded)


def _vectors(
    pool: Pool, settings: WeakSettings, *, cache: Path, progress: Progress, device: str | None
) -> tuple[FloatArray, str | None]:
    """Gives vectors of the sentences, and the revision of the model that made them."""
    if settings.text_encoder == "words":
        return _word_vectors(pool.collection.captions, settings.seed, progress), None
    encoder = load_text_encoder(settings.text_encoder, device=device)
    vectors = caption_vectors(pool.collection, encoder, cache=cache, progress=progress)
    return vectors, encoder.revision


def _word_vectors(texts: Sequence[str], seed: int, progress: Progress) -> FloatArray:
    """Latent semantic analysis of the sentences' own words (Deerwester et al., 1990)."""
    text = require("sklearn.feature_extraction.text", extra="build")
    decomposition = require("sklearn.decomposition", extra="build")
    progress("words", 0, len(texts))
    counts = text.TfidfVectorizer(sublinear_tf=True, min_df=1, stop_words="english")
    try:
        weights = counts.fit_transform(texts)
    except ValueError as error:  # only stop words
        raise InputError(f"The sentences have no words to compare ({error}).") from error
    width = min(_WIDTH, weights.shape[1] - 1, weights.shape[0] - 1)
    reduced = decomposition.TruncatedSVD(max(width, 1), random_state=seed).fit_transform(weights)
    reduced = np.asarray(reduced, np.float32) + np.float32(1e-6)  # none is of length 0
    return unit_length(reduced, what="words")


def _near_pairs(
    pool: Pool, vectors: FloatArray, settings: WeakSettings, cache: Path, progress: Progress
) -> Iterator[Candidate]:
    """Gives near pairs in random order."""
    near = nearest_pairs(vectors, settings.k, cache=cache, progress=progress)
    random = np.random.default_rng(settings.seed)
    source, texts = pool.collection.source, pool.collection.captions
    order, swapped = random.permutation(len(near)), random.random(len(near)) < 0.5
    for place, swap in zip(order, swapped, strict=True):
        one, two = int(near.items1[place]), int(near.items2[place])
        if pool.items[one] == pool.items[two]:
            continue
        if swap:
            one, two = two, one
        yield Candidate(
            pair_id=pair_id_of(source, texts[one], texts[two]),
            source=source,
            item1=str(one),
            item2=str(two),
            sentence1=texts[one],
            sentence2=texts[two],
            similarity=float(near.similarity[place]),
        )


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


_LOOSER = (1.5, 5.0, 30.0)  # times what a function may have of a label, pass by pass
_NONE_SHARE = 0.1  # of pairs where one sentence has none of what is counted: too easy for more
_LOOKED_AT = 4  # pairs for each row that is wanted, at most
_USUAL = (None, ABSENT, "no")  # what most functions read, which is kept as a byte


class _Drawing:
    """Draws rows from pairs, with as many of each function and label as wanted."""

    # A function's rows are spread evenly over the five labels, so that the condition alone tells
    # little of the label. What pairs do not have is made up for by others, pass by pass.

    def __init__(
        self, weighted: Sequence[tuple[LabellingFunction, float]], *, rows: int, seed: int
    ) -> None:
        if not weighted:
            raise InputError("No labelling function has a weight above 0; none could be drawn.")
        total = sum(weight for _, weight in weighted)
        self._functions = {function.name: function for function, _ in weighted}
        self._share = {function.name: rows * weight / total / 5 for function, weight in weighted}
        self._rows = rows
        self._random = np.random.default_rng(seed)
        # By sentence: a byte for each function, and the values that are not usual.
        self._read: dict[str, tuple[bytes, list[object]]] = {}
        self._drawn: Counter[tuple[str, int]] = Counter()  # by function and label
        self._labels: Counter[int] = Counter()
        self.seen = 0  # pairs that were looked at

    def rows(self, pairs: Iterable[Candidate]) -> Iterator[AnsweredRow]:
        """Draws two rows of each pair that has them."""
        source: Iterator[Candidate] = islice(pairs, _LOOKED_AT * self._rows)
        for looser in _LOOSER:
            waiting = []
            for pair in source:
                if self._labels.total() + 2 > self._rows:
                    return
                self.seen += looser == _LOOSER[0]
                chosen = self._choose(pair, looser)
                if not chosen:
                    waiting.append(pair)
                for place in self._random.permutation(2) if chosen else ():
                    name, label = chosen[place]
                    self._drawn[name, label] += 1
                    self._labels[label] += 1
                    values = self._values(pair.sentence1)[name], self._values(pair.sentence2)[name]
                    yield _row(pair, self._functions[name], values, label, self._random)
            source = iter(waiting)

    def _choose(self, pair: Candidate, looser: float) -> list[tuple[str, int]]:
        """The two functions whose rows are wanted most and their labels; the higher label first."""
        best: dict[int, tuple[float, str]] = {}
        one, two = self._values(pair.sentence1), self._values(pair.sentence2)
        for name in one:
            if name not in two:
                continue
            if ABSENT in (one[name], two[name]) and self._random.random() > _NONE_SHARE:
                continue
            score = self._functions[name].score_values(one[name], two[name])
            if score is None:
                continue
            label = min(max(int(score + 0.5), 1), 5)
            need = self._need(name, label, looser)
            if need > 0:
                best[label] = max(best.get(label, (0.0, "")), (need, name))
        combined = [
            (best[high][0] + best[low][0], high, low) for high in best for low in best if high > low
        ]
        return [(best[label][1], label) for label in max(combined)[1:]] if combined else []

    def _need(self, name: str, label: int, looser: float) -> float:
        """How much a row of this function and label is wanted; 0 or below if not."""
        room = self._share[name] * looser
        label_room = self._rows / 5 * min(1 + (looser - 1.5) * 0.1, 2)
        of_function = 1 - (self._drawn[name, label] + 0.5) / room
        of_label = 1 - self._labels[label] / label_room
        least = min(of_function, of_label)
        return least if least <= 0 else of_function + of_label

    def _values(self, text: str) -> dict[str, object]:
        """What the functions read from a sentence, in their order."""
        if text not in self._read:
            sentence, made, told = Sentence(text), bytearray(), list[object]()
            for function in self._functions.values():
                value = function.read(sentence)
                if value is ABSENT and not function.none_is_a_value:
                    value = None
                code = next((at for at, usual in enumerate(_USUAL) if value is usual), len(_USUAL))
                made.append(code)
                if code == len(_USUAL):
                    told.append(value)
            self._read[text] = bytes(made), told
        codes, told = self._read[text]
        rest = iter(told)
        return {
            name: _USUAL[code] if code < len(_USUAL) else next(rest)
            for name, code in zip(self._functions, codes, strict=True)
            if code
        }


def _absent_rows(
    pairs: Iterable[Candidate],
    weighted: Sequence[tuple[LabellingFunction, float]],
    *,
    rows: int,
    seed: int,
) -> Iterator[AnsweredRow]:
    """Draws rows whose condition does not apply to one sentence or to both."""
    random = np.random.default_rng(seed)
    drawn: Counter[str] = Counter()
    for pair in pairs:
        if drawn.total() == rows:
            return
        one, two = Sentence(pair.sentence1), Sentence(pair.sentence2)
        read = ((f, weight, (f.read(one), f.read(two))) for f, weight in weighted)
        void = {
            ((drawn[function.name] + 1) / weight, function.name): (function, values)
            for function, weight, values in read
            if function.void(*values)
        }
        if not void:
            continue
        function, values = void[min(void)]
        drawn[function.name] += 1
        yield _row(pair, function, values, DOES_NOT_APPLY, random)


def _row(
    pair: Candidate,
    function: LabellingFunction,
    values: tuple[object, object],
    label: int,
    random: np.random.Generator,
) -> AnsweredRow:
    """A row of a pair: the plain name in half of the rows, another wording in the others."""
    condition = function.name
    if random.random() >= 0.5:
        condition = function.wordings[int(random.integers(len(function.wordings)))]
    return AnsweredRow(
        sentence1=pair.sentence1,
        sentence2=pair.sentence2,
        condition=condition,
        label=label,
        origin=f"weak:{function.name}",
        answer1=function.say(values[0]),
        answer2=function.say(values[1]),
    )


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
        exclude: Files of sentences that must not be used; see `held_out_texts`.
        like: A C-STS file; each function is drawn as often as its conditions are written there.
        absent_output: File for rows with the label -1; the same file if None.
        functions: Files that functions of the registry are from, for the manifest.
        device: Where torch runs; it chooses if None.

    Raises:
        InputError: If a file cannot be read or written, or an option is out of its range.
        MissingExtraError: If an optional library is not installed.
    """
    absent_output = absent_output or output
    for made in (output, absent_output):
        for path in filter(None, (*paths, *exclude, like)):
            check_not_input(made, path)
    cache.mkdir(parents=True, exist_ok=True)
    weighted = _weighted(registry, like)
    drawing = _Drawing(weighted, rows=settings.rows, seed=settings.seed)
    pool = read_pool(
        paths,
        caption_column=caption_column,
        item_column=item_column,
        exclude=held_out_texts(exclude),
        sample=settings.sample,
        seed=settings.seed,
    )
    vectors, revision = _vectors(pool, settings, cache=cache, progress=progress, device=device)
    near = _near_pairs(pool, vectors, settings, cache, progress)
    pairs = PairFilter(settings.filters).passing(near)
    written: Counter[tuple[str, int]] = Counter()

    def counted(rows: Iterator[AnsweredRow]) -> Iterator[WeakRow]:
        for row in rows:
            written[row.origin.removeprefix("weak:"), row.label] += 1
            if written.total() % 100 == 0:
                progress("rows", written.total(), settings.rows + settings.absent)
            yield row if settings.answers else WeakRow(*astuple(row)[:5])

    labelled = counted(drawing.rows(pairs))
    absent = counted(_absent_rows(pairs, weighted, rows=settings.absent, seed=settings.seed))
    kind = AnsweredRow if settings.answers else WeakRow
    if absent_output == output:
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
    for path in {output, absent_output}:
        write_provenance(path, kind="weak labels", made_from=paths, facts=facts)
    return report


def _weighted(registry: Registry, like: Path | None) -> list[tuple[LabellingFunction, float]]:
    """The functions that are drawn, and how often; one whose own weight is 0 never is."""
    drawn = [(function, function.weight) for function in registry if function.weight > 0]
    if like is not None:
        found = (registry.find(row.condition) for row in iter_csts(like, labels=False))
        written = Counter(function.name for function in found if function is not None)
        drawn = [(f, float(written[f.name])) for f, _ in drawn if written[f.name]]
        if not drawn:
            raise InputError(
                f"{like}: none of its conditions is understood by a function that is drawn. Give "
                "another file of conditions, or functions for these."
            )
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
        repeated=pool.collection.repeated,
        pairs=pairs,
        rows=labels.total() - absent,
        absent=absent,
        labels=dict(sorted(labels.items())),
        families=dict(families.most_common()),
        functions=dict(names.most_common()),
    )
