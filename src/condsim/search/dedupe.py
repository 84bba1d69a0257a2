"""Duplicates under one or more conditions: near texts are grouped, and one of each group is kept.

The steps:

1. Equal texts are one: `_DistinctTexts` keeps a hash, a length and the first row of each.
2. Each distinct text is encoded under the first condition, into a file.
3. Texts are read in order of preference (``keep``). A text whose vector reaches the threshold with
   a text kept before joins its group, the nearest if there are several; otherwise it is kept and
   leads a new group. So each member is a duplicate of its leader, not only of another
   member, as in connected components (``chain``). Up to 8,192 texts every pair is compared; beyond
   that, FAISS proposes pairs and the stored vectors decide.
4. With more conditions, only texts with a neighbor under the first are encoded under the others,
   and grouped again by pairs that are near under all of them.
5. Where a number of rows is asked for instead of a threshold, step 3 is repeated with thresholds
   halved between too few and too many; the texts least like their leaders make up the number.
"""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import compress, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from condsim.console import Progress, silent
from condsim.errors import InputError, ModelError, check_at_least
from condsim.model.base import COLLECTION_SHARE, check_fraction
from condsim.model.embedding import EmbeddingScorer
from condsim.model.legibility import collect_unread
from condsim.search.vectors import (
    TEXTS_PER_STEP,
    ConditionInput,
    Numbers,
    VectorFile,
    VectorSpace,
    condition_list,
    cosine_scores,
    find_neighbors,
    float32_limit,
    group_positions,
    lowest_cosine,
    verified_edges,
)
from condsim.types import ROWS_SHOWN, BoolArray, FloatArray, IntArray, KeepRule, Scorer, html_table

_TEXTS_PER_BLOCK = 4_096
_BISECTION_STEPS = 14

Keep = KeepRule | Sequence[float]
"""Which text of a group is kept: the first, the longest, or the text with the highest number."""


class ReviewPair(NamedTuple):
    """Two kept rows that may be duplicates, with their score under the first condition.

    ``scores`` has one for each condition, None for the texts as a whole.
    """

    row: int
    other_row: int
    score: float
    scores: Mapping[str | None, float]


@dataclass(frozen=True, eq=False)
class Duplicates:
    """Groups of duplicates, each represented by one kept text.

    Attributes:
        kept_row: Row of the text that is kept in place of each, ``(n,)``; its own if it is kept.
        score: Score of each text against the kept one under the first condition, ``(n,)``; 1 for
            the same text. Below the threshold only in a group made with ``chain``.
        cosine: The raw similarity that the first threshold stands for.
        scores: The same scores under every condition, ``(n,)`` each; the key None stands for the
            texts as a whole.
        review: Pairs of kept rows for a person to decide, the highest score first.
    """

    kept_row: NDArray[np.int32]
    score: FloatArray
    cosine: float
    scores: Mapping[str | None, FloatArray]
    review: tuple[ReviewPair, ...] = ()

    def __repr__(self) -> str:
        return f"Duplicates({self.kept.sum():,} of {len(self.kept_row):,} texts kept)"

    def _repr_html_(self) -> str:
        dropped = np.flatnonzero(~self.kept).tolist()
        rows = [
            (str(row), str(self.kept_row[row]), float(self.score[row]))
            for row in dropped[:ROWS_SHOWN]
        ]
        head = ("dropped row", "kept row", "score")
        return html_table(repr(self), head, rows, more=len(dropped) - len(rows))

    @property
    def kept(self) -> BoolArray:
        """Mask of the texts that are kept, ``(n,)``."""
        is_kept: BoolArray = self.kept_row == np.arange(len(self.kept_row))
        return is_kept

    @property
    def sizes(self) -> IntArray:
        """Number of texts that each stands for, itself included, ``(n,)``; 0 if it is not kept."""
        return np.bincount(self.kept_row, minlength=len(self.kept_row))


def find_duplicates(
    texts: Iterable[str],
    scorer: Scorer,
    condition: ConditionInput,
    *,
    at_least: float | Sequence[float] | None = None,
    and_overall: float | None = None,
    overall: float = COLLECTION_SHARE,
    keep: Keep = "first",
    chain: bool = False,
    to: int | None = None,
    review_from: float | None = None,
    folder: Path | None = None,
    progress: Progress = silent,
) -> Duplicates:
    """Find texts that say the same with respect to one or more conditions.

    A text is a duplicate of a kept one if their scores reach the threshold of every condition. A
    text that is near to several kept ones joins the nearest. With more than 8,192 distinct texts,
    near neighbors are found with FAISS, which may miss a pair with a cosine far below 0.9.

    Texts that contain different words or characters that the model cannot read, such as emoji, are
    not duplicates. A text that `EmbeddingScorer.reads` rejects is only a duplicate of the same
    text.

    Each distinct text is encoded once under the first condition, and once without unless
    ``overall`` is 0. Its vector is stored on disk (float32, 3 kB for the default model, or 1.5 kB);
    the memory holds about 0.4 kB for each.

    Args:
        texts: The texts, n; read twice or more, so that they need not be in memory.
        scorer: A bi- or tri-encoder.
        condition: What duplicates have in common: one condition, or several that must all hold;
            None compares texts as a whole.
        at_least: Calibrated score that duplicates reach, in [0, 1]: one for all conditions, or one
            for each. Left out with ``to``.
        and_overall: Score without a condition that duplicates must reach as well, in [0, 1]: one
            more test, next to the conditions.
        overall: Share of the similarity without the condition in the score under each condition,
            in [0, 1]; see `EmbeddingScorer.score`.
        keep: Which text of a group is kept: ``"first"``, ``"longest"`` (in characters), or the one
            with the highest of n numbers, such as dates. Of equal ones, the first.
        chain: Whether the duplicate of a duplicate is in the group as well.
        to: Number of rows to keep; the threshold of the condition is chosen to match.
        review_from: Lowest score under the first condition of the pairs of kept texts to return
            for review: for each kept text, its nearest kept text before it.
        folder: Where vectors are stored during the work; the system's temporary folder if None.
        progress: Called with the stage, what is done and what there is.

    Returns:
        Which text stands for each.

    Raises:
        InputError: If the input breaks a rule, or the vectors do not fit on the disk.
        ModelError: If the scorer has no embeddings.
        MissingExtraError: If the ``search`` extra is not installed.

    Example:
        >>> import condsim
        >>> texts = ["A dog runs.", "A cat sleeps.", "A dog runs."]
        >>> find_duplicates(texts, condsim.load(), "the animal", at_least=0.9).kept.tolist()
        [True, True, False]
    """
    if not isinstance(scorer, EmbeddingScorer):
        raise ModelError(f"{scorer.name} gives only scores; this needs a bi- or tri-encoder.")
    if isinstance(texts, str) or iter(texts) is texts:
        raise InputError("The 'texts' are read twice; give a list, not one text or an iterator.")
    check_fraction("share", overall=overall)
    tests = _threshold_tests(condition_list(condition, scorer), at_least, and_overall, to)
    limits = [
        lowest_cosine(
            scorer, score, argument="and_overall" if name is None else "at_least", condition=name
        )
        for name, score in tests
    ]
    review = None
    if review_from is not None:
        review = lowest_cosine(scorer, review_from, argument="review_from", condition=tests[0][0])
    distinct = _DistinctTexts(texts, progress)
    preferred_row, order = distinct.preferred(keep)
    try:
        with (
            collect_unread(),
            tempfile.TemporaryDirectory(prefix="condsim-", dir=folder) as temporary,
        ):
            path, first = Path(temporary), tests[0][0]
            work = _Deduplication(distinct, scorer, path, order, first, overall, progress)
            names = [name for name, _ in tests]
            if to is None:
                leader = work.groups(names, limits, chain=chain)
            else:
                leader, limits[0] = work.groups_of_number(first, to)
            stands_for = leader[distinct.text_of]
            scores = {name: work.scores(name, distinct.text_of, stands_for) for name in names}
            pairs: tuple[ReviewPair, ...] = ()
            if review is not None:
                pairs = work.review_pairs(leader, review, preferred_row, names)
    except OSError as error:
        widths = [scorer.dimension_of(name, overall=overall) for name, _ in tests]
        size = sum(widths) * len(distinct.first) * 4 >> 20
        raise InputError(
            f"Cannot store the vectors in {folder or tempfile.gettempdir()}: "
            f"{error.strerror or error}. Up to {size + 1:,} MiB are needed there."
        ) from error
    return Duplicates(preferred_row[stands_for], scores[first], limits[0], scores, pairs)


def _threshold_tests(
    conditions: Sequence[str | None],
    at_least: float | Sequence[float] | None,
    and_overall: float | None,
    to: int | None,
) -> list[tuple[str | None, float]]:
    """Return the conditions with their thresholds; None stands for no condition."""
    if and_overall is not None and conditions == [None]:
        raise InputError("Without a condition, 'at_least' is the score that 'and_overall' means.")
    if to is not None:
        if at_least is not None or and_overall is not None or len(conditions) > 1:
            raise InputError(
                "The number of rows to keep, 'to', takes the place of a threshold: give it with "
                "one condition, and without 'at_least' and 'and_overall'."
            )
        if not isinstance(to, int | np.integer):
            raise InputError(f"'to' must be a whole number; got {to}.")
        check_at_least(1, to=to)
        return [(conditions[0], 0.0)]
    thresholds = [] if at_least is None else [float(score) for score in np.atleast_1d(at_least)]
    if len(thresholds) == 1:
        thresholds *= len(conditions)
    if len(thresholds) != len(conditions):
        raise InputError(
            "Give the score that duplicates reach, 'at_least', once or for each condition, or the "
            f"number of rows to keep, 'to' (conditions: {len(conditions)}, scores: "
            f"{len(thresholds)})."
        )
    tests: list[tuple[str | None, float]] = list(zip(conditions, thresholds, strict=True))
    return tests if and_overall is None else [*tests, (None, and_overall)]


class _DistinctTexts:
    """Distinct texts by 64 bits of hash: two of a million collide once in 4e7 files."""

    def __init__(self, texts: Iterable[str], progress: Progress) -> None:
        self.texts = texts
        digests, lengths = array("Q"), array("i")
        for row, text in enumerate(texts, start=1):
            if not isinstance(text, str) or not text.strip():
                raise InputError(f"Text {row} must be a str with text; got {text!r}.")
            digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            digests.append(int.from_bytes(digest))
            lengths.append(len(text))
            if row % _TEXTS_PER_BLOCK == 0:
                progress("read", row, 0)
        if not lengths:
            raise InputError("There are no texts. Give one or more.")
        self.lengths: Numbers = np.frombuffer(lengths, np.int32)  # (n,)
        _, first, text_of = np.unique(
            np.frombuffer(digests, np.uint64), return_index=True, return_inverse=True
        )
        order = np.argsort(first).astype(np.int32)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order), dtype=np.int32)
        # The first row of each of m distinct texts, ascending, and the text of each of n rows.
        self.first: Numbers = first[order].astype(np.int32)
        self.text_of: Numbers = rank[text_of]

    def read(self, texts: Numbers) -> Iterator[list[str]]:
        """Yield some distinct texts in the order of their rows, block by block."""
        selected = np.zeros(len(self.lengths), np.bool_)
        selected[self.first[texts]] = True
        stream = compress(self.texts, selected)
        count = 0
        while block := list(islice(stream, _TEXTS_PER_BLOCK)):
            count += len(block)
            yield block
        if count != len(texts):
            raise InputError(f"The texts changed while they were read: {len(texts)}, then {count}.")

    def preferred(self, keep: Keep) -> tuple[Numbers, Numbers]:
        """Return the preferred row of each text, and the texts, the preferred first, ``(m,)``."""
        lengths = self.lengths.astype(np.float64)
        rules: dict[KeepRule, NDArray[np.float64]] = {
            "first": np.zeros_like(lengths),
            "longest": lengths,
        }
        try:
            ranks = rules[keep] if isinstance(keep, str) else np.asarray(keep, np.float64)
        except (KeyError, TypeError, ValueError):
            ranks = np.empty(0)
        if ranks.shape != self.lengths.shape or np.isnan(ranks).any():
            raise InputError(
                f"'keep' must be {', '.join(map(repr, rules))} or a number for each of the "
                f"{len(self.lengths)} texts."
            )
        by_rank = np.argsort(-ranks, kind="stable").astype(np.int32)
        order, position = np.unique(self.text_of[by_rank], return_index=True)
        return by_rank[position], order[np.argsort(position)].astype(np.int32)


class _Deduplication:
    """Vectors of the distinct texts in a folder, and the groups made from them."""

    def __init__(
        self,
        texts: _DistinctTexts,
        scorer: EmbeddingScorer,
        folder: Path,
        order: Numbers,
        condition: str | None,
        overall: float,
        progress: Progress,
    ) -> None:
        self._texts, self._scorer, self._folder = texts, scorer, folder
        self._overall = overall
        self._order = order
        self._progress = progress
        self._first = self._new_file(condition)
        # Vectors under each condition, and the distinct texts that have them, ascending.
        self._encoded: dict[str | None, tuple[VectorFile, Numbers]] = {}
        # Hash of the words of each distinct text that the model cannot read, 0 for none.
        self._unread = np.zeros(len(order), np.int64)

    def groups(
        self, conditions: Sequence[str | None], limits: Sequence[float], *, chain: bool
    ) -> Numbers:
        """Return the distinct text that leads the group of each, ``(m,)``."""
        self._encode(self._first, conditions[0], np.arange(len(self._order), dtype=np.int32))
        space = VectorSpace(self._first, self._order, float32_limit(limits[0]))
        several = len(conditions) > 1
        unread, progress = self._unread[self._order], self._progress
        group, near = group_positions(
            [space], unread=unread, chain=chain, all_pairs=several, progress=progress
        )
        if several and near.any():
            # Only texts with a neighbor under the first condition are read under the others.
            order = self._order[near]
            spaces = [space._replace(rows=order)]
            ascending = np.sort(order)
            rows = np.searchsorted(ascending, order).astype(np.int32)
            for number, condition in enumerate(conditions[1:], start=1):
                file = self._new_file(condition)
                self._encode(file, condition, ascending)
                spaces.append(VectorSpace(file, rows, float32_limit(limits[number])))
            inner, _ = group_positions(
                spaces, unread=self._unread[order], chain=chain, progress=progress
            )
            positions = np.flatnonzero(near)
            group = np.arange(len(self._order), dtype=np.int32)
            group[positions] = positions[inner]
        return self._by_text(group)

    def groups_of_number(self, condition: str | None, number: int) -> tuple[Numbers, float]:
        """Return groups of which exactly ``number`` texts are kept, and the cosine used."""
        count = len(self._order)
        if number > count:
            raise InputError(
                f"'to' must be at most {count}, the number of distinct texts; got {number}."
            )
        self._encode(self._first, condition, np.arange(count, dtype=np.int32))
        space = VectorSpace(self._first, self._order, np.float32(0))
        low, high = -1.0, 1.0
        unread = self._unread[self._order]
        _, first, part = np.unique(unread, return_index=True, return_inverse=True)
        if len(first) > number:
            # So few rows cannot be kept if texts with different unread words are.
            unread, first, part = np.zeros_like(unread), np.zeros(1, np.int64), 0 * part
        group = first[part].astype(np.int32)
        neighbors = find_neighbors(space)
        for _ in range(_BISECTION_STEPS):
            middle = (low + high) / 2
            candidate, _ = group_positions(
                [space._replace(limit=float32_limit(middle))],
                unread=unread,
                neighbors=neighbors,
                progress=self._progress,
            )
            if len(np.unique(candidate)) > number:
                high = middle
            else:
                low, group = middle, candidate
        # The texts least like the one that stands for them make up the number.
        positions = np.arange(count)
        leaders = space.take(group.astype(np.int64))
        cosine = np.einsum("nd,nd->n", space.take(positions), leaders)
        cosine[group == positions] = 2
        lacking = number - len(np.unique(group))
        promoted = np.argsort(cosine, kind="stable")[:lacking]
        group[promoted] = promoted
        return self._by_text(group), low

    def scores(self, condition: str | None, texts: Numbers, leaders: Numbers) -> FloatArray:
        """Score n texts against others under a condition, ``(n,)``; 1 for the same text."""
        scores = np.ones(len(texts), np.float32)
        differ = np.flatnonzero(texts != leaders)
        file, encoded = self._vectors_of(condition, np.union1d(texts[differ], leaders[differ]))
        for start in range(0, len(differ), _TEXTS_PER_BLOCK):
            part = differ[start : start + _TEXTS_PER_BLOCK]
            sides = (np.searchsorted(encoded, rows[part]) for rows in (texts, leaders))
            vectors, leader_vectors = (file.take(rows.astype(np.int32)) for rows in sides)
            cosines = np.einsum("nd,nd->n", vectors, leader_vectors)
            scores[part] = cosine_scores(self._scorer, cosines, condition)
        return scores

    def _vectors_of(self, condition: str | None, texts: Numbers) -> tuple[VectorFile, Numbers]:
        """Return vectors of some texts, ascending, encoded unless they are; and whose they are."""
        if condition in self._encoded and np.isin(texts, self._encoded[condition][1]).all():
            return self._encoded[condition]
        file = self._new_file(condition)
        self._encode(file, condition, texts.astype(np.int32))
        return self._encoded[condition]

    def _new_file(self, condition: str | None) -> VectorFile:
        number = sum(1 for _ in self._folder.iterdir())
        width = self._scorer.dimension_of(condition, overall=self._overall)
        return VectorFile(self._folder / str(number), width)

    def review_pairs(
        self, leader: Numbers, cosine: float, row_of: Numbers, conditions: Sequence[str | None]
    ) -> tuple[ReviewPair, ...]:
        """Return each kept text with its nearest kept text before it, from a cosine on."""
        order = self._order[leader[self._order] == self._order]
        space = VectorSpace(self._first, order, float32_limit(cosine))
        neighbors = find_neighbors(space)
        texts, others = list[Numbers](), list[Numbers]()
        for start in range(0, len(order), TEXTS_PER_STEP):
            positions = np.arange(start, min(start + TEXTS_PER_STEP, len(order)))
            vectors = space.take(positions)
            neighbors.add(np.ascontiguousarray(vectors), positions)
            queries, nearest = neighbors.search(vectors, space.limit)
            before = nearest < positions[queries]
            edges = queries[before], nearest[before]
            queries, nearest, cosines = verified_edges([space], [vectors], edges)
            best = np.lexsort((nearest, -cosines, queries))
            paired, index = np.unique(queries[best], return_index=True)
            texts.append(order[positions[paired]])
            others.append(order[nearest[best[index]]])
        first, second = np.concatenate(texts), np.concatenate(others)
        scores = {name: self.scores(name, first, second).tolist() for name in conditions}
        rows = zip(row_of[first].tolist(), row_of[second].tolist(), strict=True)
        pairs = [
            ReviewPair(*pair, scores[conditions[0]][number], {n: scores[n][number] for n in scores})
            for number, pair in enumerate(rows)
        ]
        return tuple(sorted(pairs, key=lambda pair: (-pair.score, pair.row)))

    def _encode(self, file: VectorFile, condition: str | None, texts: Numbers) -> None:
        """Write the vectors of some texts, ascending, under a condition."""
        self._encoded[condition] = file, texts
        done = 0
        stage = "encoded without a condition" if condition is None else f"encoded: {condition!r}"
        with file.path.open("wb") as stream:
            for block in self._texts.read(texts):
                vectors = self._scorer.encode(block, condition, overall=self._overall)
                if file is self._first:
                    for index, words in self._unread_words(block):
                        self._unread[texts[done + index]] = words
                stream.write(np.ascontiguousarray(vectors, np.float32).tobytes())
                done += len(block)
                self._progress(stage, done, len(texts))

    def _unread_words(self, block: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Yield the index of each text with words that the model cannot read, and their hash."""
        parts = self._scorer.unread_parts(block)
        for index, text in enumerate(block) if parts else ():
            if text in parts:
                digest = blake2b(parts[text].encode(), digest_size=8).digest()
                yield index, int.from_bytes(digest, signed=True)

    def _by_text(self, group: Numbers) -> Numbers:
        """Turn positions in the order of preference into numbers of distinct texts."""
        leader = np.empty(len(group), np.int32)
        leader[self._order] = self._order[group]
        return leader
