"""Weakly labeled rows, from files of sentences to a file of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice
from pathlib import Path
from typing import Annotated, NamedTuple, TypeAlias

import numpy as np
from pydantic import Field

from condsim.config import Settings
from condsim.console import Progress
from condsim.data.csts import iter_csts
from condsim.data.files import iter_rows
from condsim.data.held_out import HeldOutTexts, held_out_texts, text_digest
from condsim.errors import InputError, one_line, require
from condsim.io import check_not_input
from condsim.rows.records import counted, revisions_of, write_provenance, write_rows
from condsim.types import FloatArray
from condsim_annotation.pairs import (
    Candidate,
    FilterSettings,
    ItemPairs,
    PairFilter,
    caption_vectors,
    item_name,
    load_text_encoder,
    nearest_pairs,
    pair_id_of,
    unit_length,
)
from condsim_annotation.tables import DOES_NOT_APPLY, AnsweredRow, WeakRow
from condsim_annotation.weak.functions import ABSENT, LabelingFunction
from condsim_annotation.weak.language import Sentence
from condsim_annotation.weak.registry import Registry

# Multiples of its share that a function may have of a label, pass by pass.
_SHARE_FACTORS = (1.5, 5.0, 30.0)
# Share of the pairs that are used where one sentence has none of what is counted: they are easy.
_ABSENT_SHARE = 0.1
_PAIRS_PER_ROW = 4

_WORD_VECTOR_WIDTH = 200
_NO_TEXTS = HeldOutTexts()

WeightedFunctions: TypeAlias = Sequence[tuple[LabelingFunction, float]]
"""Functions and their relative frequencies."""


class WeakSettings(Settings):
    """Settings of a weakly labeled data set."""

    # Rows with a label from 1 to 5, two a pair, and rows with the label -1.
    rows: Annotated[int, Field(ge=2)] = 60_000
    absent: Annotated[int, Field(ge=0)] = 0
    seed: Annotated[int, Field(ge=0)] = 0
    # Neighbors of a sentence.
    k: Annotated[int, Field(ge=1)] = 32
    # Number of sentences to draw pairs from; all if None.
    sample: Annotated[int, Field(ge=2)] | None = None
    # The model whose vectors find near sentences; ``"words"`` needs none, None takes the
    # one of `condsim_annotation.pairs.load_text_encoder`.
    text_encoder: str | None = None
    # Whether the rows have the columns ``answer1`` and ``answer2``.
    answers: bool = True
    # Bounds on the pairs.
    filters: FilterSettings = FilterSettings(max_iou=0.3, min_length_ratio=0.6)


class Pool(NamedTuple):
    """Sentences of one or more files; no two differ in case and punctuation alone."""

    sentences: Sequence[str]
    # Sentences of one item are not paired.
    items: Sequence[object]
    # Sentences left out since they came before, and since they are held out.
    repeated: int
    excluded: int


def read_pool(
    paths: Sequence[Path],
    *,
    caption_column: str = "caption",
    item_column: str | None = None,
    exclude: HeldOutTexts = _NO_TEXTS,
    sample: int | None = None,
    seed: int = 0,
) -> Pool:
    """Read sentences, one a row, leave out those that are held out, and draw a sample.

    The item column names what several sentences describe; without one, each is a separate item.
    """
    seen: set[bytes] = set()
    sentences: list[str] = []
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
            sentences.append(text)
            items.append(item or len(items))
    if len(sentences) < 2:
        raise InputError(
            f"Pairs need at least two sentences, got {len(sentences)} and {excluded} that are in "
            "the files to be left out."
        )
    if sample is not None and sample < len(sentences):
        generator = np.random.default_rng(seed)
        chosen = np.sort(generator.choice(len(sentences), sample, replace=False)).tolist()
        sentences = [sentences[index] for index in chosen]
        items = [items[index] for index in chosen]
    return Pool(sentences, items, repeated, excluded)


def _word_vectors(texts: Sequence[str], seed: int, progress: Progress) -> FloatArray:
    """Embed sentences by latent semantic analysis of their words (Deerwester et al., 1990)."""
    text = require("sklearn.feature_extraction.text", extra="build")
    decomposition = require("sklearn.decomposition", extra="build")
    progress("words", 0, len(texts))
    vectorizer = text.TfidfVectorizer(sublinear_tf=True, min_df=1, stop_words="english")
    with one_line("The sentences have no words to compare", ValueError):
        weights = vectorizer.fit_transform(texts)
    width = min(_WORD_VECTOR_WIDTH, weights.shape[1] - 1, weights.shape[0] - 1)
    reduced = decomposition.TruncatedSVD(max(width, 1), random_state=seed).fit_transform(weights)
    # No vector must have the length 0.
    reduced = np.asarray(reduced, np.float32) + np.float32(1e-6)
    return unit_length(reduced, subject="words")


def _candidates(pool: Pool, pairs: ItemPairs, *, seed: int) -> Iterator[Candidate]:
    """Return the pairs of sentences of different items, in random order."""
    random = np.random.default_rng(seed)
    order, swapped = random.permutation(len(pairs)), random.random(len(pairs)) < 0.5
    for index, swap in zip(order, swapped, strict=True):
        first, second = int(pairs.items1[index]), int(pairs.items2[index])
        if pool.items[first] == pool.items[second]:
            continue
        if swap:
            first, second = second, first
        sentence1, sentence2 = pool.sentences[first], pool.sentences[second]
        pair_id = pair_id_of("weak", sentence1, sentence2)
        yield Candidate(pair_id, "weak", str(first), str(second), sentence1, sentence2)


class RowSampler:
    """Sampler of rows with as many of each function and label as wanted.

    The rows of a function are spread evenly over the five labels, so that the condition alone
    reveals little of the label. Where the pairs lack a label, further passes let functions have
    more of the others.
    """

    def __init__(self, weighted: WeightedFunctions, *, rows: int, seed: int) -> None:
        total = sum(weight for _, weight in weighted)
        # Pairs that were read.
        self.pairs = 0
        self._functions = [function for function, _ in weighted]
        self._share = {function.name: rows * weight / total / 5 for function, weight in weighted}
        self._rows = rows
        self._random = np.random.default_rng(seed)
        # Values of each sentence in the order of the functions; most are None, ABSENT or "no".
        self._values: dict[str, tuple[object, ...]] = {}
        self._drawn: Counter[tuple[str, int]] = Counter()
        self._labels: Counter[int] = Counter()

    def rows(self, candidates: Iterable[Candidate]) -> Iterator[AnsweredRow]:
        """Draw two rows of each pair that has two labels that are wanted."""
        remaining: Iterable[Candidate] = islice(candidates, _PAIRS_PER_ROW * self._rows)
        for factor in _SHARE_FACTORS:
            unused = []
            for pair in remaining:
                if self._labels.total() + 2 > self._rows:
                    return
                self.pairs += factor == _SHARE_FACTORS[0]
                chosen = self._choose(pair, factor)
                if not chosen:
                    unused.append(pair)
                    continue
                for choice in self._random.permutation(2):
                    index, label = chosen[choice]
                    function = self._functions[index]
                    self._drawn[function.name, label] += 1
                    self._labels[label] += 1
                    values = self._read(pair.sentence1)[index], self._read(pair.sentence2)[index]
                    yield _weak_row(pair, function, values, label, self._random)
            remaining = unused

    def _choose(self, pair: Candidate, factor: float) -> list[tuple[int, int]]:
        """Return the two most wanted functions and their labels, the higher label first."""
        # The most wanted function of each label.
        best: dict[int, tuple[float, str, int]] = {}
        values1, values2 = self._read(pair.sentence1), self._read(pair.sentence2)
        for index, function in enumerate(self._functions):
            value1, value2 = values1[index], values2[index]
            if value1 is None or value2 is None:
                continue
            if ABSENT in (value1, value2) and self._random.random() > _ABSENT_SHARE:
                continue
            score = function.score_values(value1, value2)
            if score is None:
                continue
            label = min(max(int(score + 0.5), 1), 5)
            need = self._need(function.name, label, factor)
            if need > 0:
                best[label] = max(best.get(label, (0.0, "", -1)), (need, function.name, index))
        if len(best) < 2:
            return []
        pairs = combinations(sorted(best, reverse=True), 2)
        labels = max(pairs, key=lambda pair: (best[pair[0]][0] + best[pair[1]][0], pair))
        return [(best[label][2], label) for label in labels]

    def _need(self, name: str, label: int, factor: float) -> float:
        """Return the need for a row of a function and label; not above 0 if there are enough."""
        function_room = self._share[name] * factor
        label_room = self._rows / 5 * min(1 + (factor - 1.5) * 0.1, 2)
        function_need = 1 - (self._drawn[name, label] + 0.5) / function_room
        label_need = 1 - self._labels[label] / label_room
        least = min(function_need, label_need)
        return least if least <= 0 else function_need + label_need

    def _read(self, text: str) -> tuple[object, ...]:
        """Return the values of a sentence; None also for an absence that is not a value."""
        if text not in self._values:
            sentence = Sentence(text)
            values = ((function, function.read(sentence)) for function in self._functions)
            self._values[text] = tuple(
                None if value is ABSENT and not function.absence_counts else value
                for function, value in values
            )
        return self._values[text]


def _absent_rows(
    candidates: Iterable[Candidate], weighted: WeightedFunctions, *, rows: int, seed: int
) -> Iterator[AnsweredRow]:
    """Draw rows whose condition does not apply to one sentence or to both."""
    random = np.random.default_rng(seed)
    drawn: Counter[str] = Counter()
    for pair in candidates:
        if drawn.total() == rows:
            return
        sentence1, sentence2 = Sentence(pair.sentence1), Sentence(pair.sentence2)
        inapplicable = {}
        for function, weight in weighted:
            values = function.read(sentence1), function.read(sentence2)
            if function.is_inapplicable(*values):
                rank = (drawn[function.name] + 1) / weight, function.name
                inapplicable[rank] = function, values
        if inapplicable:
            function, values = inapplicable[min(inapplicable)]
            drawn[function.name] += 1
            yield _weak_row(pair, function, values, DOES_NOT_APPLY, random)


def _weak_row(
    pair: Candidate,
    function: LabelingFunction,
    values: tuple[object, object],
    label: int,
    random: np.random.Generator,
) -> AnsweredRow:
    """Make a row of a pair; half of the rows have the plain name, the others another wording."""
    condition = function.name
    if random.random() >= 0.5:
        condition = function.wordings[int(random.integers(len(function.wordings)))]
    return AnsweredRow(
        pair.sentence1,
        pair.sentence2,
        condition,
        label,
        f"weak:{function.name}",
        *map(function.say, values),
    )


@dataclass(frozen=True)
class WeakReport:
    """Counts of a weakly labeled data set: sentences, pairs that were read, and rows written.

    Sentences are excluded if they are held out, and repeated if they came before. ``absent`` rows
    have the label -1, and are not among ``rows``.
    """

    sentences: int
    excluded: int
    repeated: int
    pairs: int
    rows: int
    absent: int
    labels: dict[str, int]
    families: dict[str, int]
    functions: dict[str, int]


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
    """Write a weakly labeled data set and a manifest; the same input gives the same file.

    Sentences and columns are read by `read_pool`, and vectors and neighbors stored in ``cache``.
    Each function is drawn as often as its conditions occur in the C-STS file ``like``, or by its
    weight. Rows with the label -1 may have a separate output. The manifest names the files that
    ``functions`` of the registry are from.
    """
    absent_output = absent_output or output
    for written_path in (output, absent_output):
        for path in filter(None, (*paths, *exclude, like)):
            check_not_input(written_path, path)
    cache.mkdir(parents=True, exist_ok=True)
    weighted = _weighted_functions(registry, like)
    sampler = RowSampler(weighted, rows=settings.rows, seed=settings.seed)
    pool = read_pool(
        paths,
        caption_column=caption_column,
        item_column=item_column,
        exclude=held_out_texts(exclude),
        sample=settings.sample,
        seed=settings.seed,
    )
    if settings.text_encoder == "words":
        vectors, revision = _word_vectors(pool.sentences, settings.seed, progress), None
    else:
        encoder = load_text_encoder(settings.text_encoder, device=device)
        vectors = caption_vectors(pool.sentences, encoder, cache=cache, progress=progress)
        revision = encoder.revision
    pairs = nearest_pairs(vectors, settings.k, cache=cache, progress=progress)
    candidates = PairFilter(settings.filters).passing(_candidates(pool, pairs, seed=settings.seed))
    labeled = [*counted(sampler.rows(candidates), progress, total=settings.rows)]
    absent = [*_absent_rows(candidates, weighted, rows=settings.absent, seed=settings.seed)]
    # The columns of the answers are left out where they are not asked for.
    kind = AnsweredRow if settings.answers else WeakRow
    rows = [*labeled, *absent]
    write_rows(rows if absent_output == output else labeled, output, kind=kind)
    if absent_output != output:
        write_rows(absent, absent_output, kind=kind)
    report = _report(pool, sampler.pairs, rows, registry)
    facts = {
        "excluded": revisions_of(exclude),
        "like": None if like is None else revisions_of([like]),
        "functions": revisions_of(functions),
        "settings": settings.model_dump(),
        "text_encoder_revision": revision,
        "report": report,
    }
    for path in {output, absent_output}:
        write_provenance(path, kind="weak labels", made_from=paths, facts=facts)
    return report


def _report(pool: Pool, pairs: int, rows: Sequence[AnsweredRow], registry: Registry) -> WeakReport:
    family_of = {f"weak:{function.name}": function.family for function in registry}
    labels = Counter(str(row.label) for row in rows)
    names = Counter(row.origin.removeprefix("weak:") for row in rows)
    return WeakReport(
        sentences=len(pool.sentences),
        excluded=pool.excluded,
        repeated=pool.repeated,
        pairs=pairs,
        rows=len(rows) - labels["-1"],
        absent=labels["-1"],
        labels=dict(sorted(labels.items())),
        families=dict(Counter(family_of[row.origin] for row in rows).most_common()),
        functions=dict(names.most_common()),
    )


def _weighted_functions(registry: Registry, like: Path | None) -> WeightedFunctions:
    """Return the functions with a weight above 0, and how often to draw them."""
    weighted = [(function, function.weight) for function in registry if function.weight > 0]
    if like is not None:
        functions = (registry.find(row.condition) for row in iter_csts(like, labels=False))
        conditions = Counter(function.name for function in functions if function is not None)
        weighted = [(f, float(conditions[f.name])) for f, _ in weighted if conditions[f.name]]
        if not weighted:
            raise InputError(
                f"{like}: none of its conditions is understood by a function with a weight above 0."
            )
    return weighted
