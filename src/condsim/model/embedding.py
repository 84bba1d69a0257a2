"""Scorers that compare two embeddings by cosine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Self, overload

import numpy as np

from condsim.errors import InputError, ModelError
from condsim.model.applicability import PROBE, ApplicabilityHead, Embedded
from condsim.model.aspects import embed_aspects
from condsim.model.base import (
    Condition,
    Conditions,
    Rows,
    Scale,
    Texts,
    check_fraction,
    check_rows,
    rescaled,
)
from condsim.model.calibration import Calibration
from condsim.model.criterion import SHARE, Criterion, is_criterion_file
from condsim.model.inputs import (
    Chunks,
    as_read,
    collect_truncations,
    conditional_sentences,
    deduplicate_inputs,
    row_blocks,
)
from condsim.model.legibility import collect_unread, record_unread
from condsim.model.reading import Embed, ReadingScorer
from condsim.types import FloatArray, IntArray

if TYPE_CHECKING:
    from condsim.model.explanation import Occlusion
    from condsim.model.judge import Verdict

# Texts with a higher cosine are the same tokens to the model.
MIN_COSINE_OF_SAME_TOKENS = 0.9999
# Of a long text, a chunk counts by this power of the chance that it speaks of the condition, which
# is taken for at least so much (papers/docs/experiments.md).
_MENTION_POWER, _LEAST_CHANCE = 8, 0.01


def joined(under: FloatArray, plain: FloatArray, *, overall: float) -> FloatArray:
    """Join embeddings under a condition and without it, by the share of the latter."""
    return np.concatenate([under * (1 - overall) ** 0.5, plain * overall**0.5], axis=-1)


class EmbeddingScorer(ReadingScorer):
    """Scores by the cosine of two conditional sentences, each distinct one encoded once.

    A text that with its condition is longer than the model reads is split at the ends of sentences.
    Its embedding is the mean over its `chunks`, weighted by their tokens. A condition that
    leaves fewer than 16 tokens for the text is refused with an `InputError`.

    Memory does not grow with the number of rows, apart from the result.

    Attributes:
        name: Short name, shown in tables.
        order: Order of condition and sentence, and whether conditions are bare.
        dimension: Length of an embedding.
        calibration: From cosine to a score in [0, 1]; if None, scores are the cosines.
        head: The fitted head that `applicability` needs, or None.
        folder: Where it was loaded from; None for a model of the Hub.
    """

    head: ApplicabilityHead | None = None
    folder: Path | None = None
    # The head that was checked to belong to this model.
    _checked_head: ApplicabilityHead | None = None
    # Learned criteria by the names that stand for them.
    criteria: Mapping[str, Criterion] = MappingProxyType({})

    def encode(
        self, sentences: Texts, condition: Conditions | None = None, *, overall: float = 0.0
    ) -> FloatArray:
        """Encode sentences, each under its condition.

        The dot product of two embeddings is the raw score of the pair. With a share w of the whole,
        the embedding under the condition is followed by the embedding of the sentence alone:
        ``[√(1 - w) v(c), √w v]``, of length 1 as well.

        Args:
            sentences: Sentences, length n, or one.
            condition: Conditions, length n, or one for all, which may be a learned `Criterion`;
                see `score` for None.
            overall: Share of the embedding without the condition, in [0, 1]; see `score`. A
                criterion has its own share, and takes no other.

        Returns:
            Embeddings of length 1, ``(n, dimension)`` float32; ``(dimension,)`` for single texts.
            With a share above 0, ``2 * dimension`` numbers, and with a criterion as many as its
            ``dimension``.

        Raises:
            InputError: If a text is empty or not a str, or lengths differ.
        """
        check_fraction("share", overall=overall)
        condition = self.resolved(condition)
        if overall and condition is not None and not isinstance(condition, Criterion):
            with collect_truncations(), collect_unread():
                parts = (self.encode(sentences, condition), self.encode(sentences))
            return joined(*parts, overall=overall)
        rows = check_rows(condition, sentences=sentences)
        width = (rows.criterion or self).dimension
        embeddings = np.empty((len(rows), width), dtype=np.float32)
        with collect_truncations(), collect_unread():
            for block in row_blocks(rows.sentences):
                self._record_unread(rows, block)
                vectors, index = self._embed_rows(rows, block)
                embeddings[block] = vectors[index[0]]
        return embeddings[0] if rows.single else embeddings

    @overload
    def applicability(  # type: ignore[overload-overlap]  # a str is a sequence of str, too
        self, sentences1: str, sentences2: str, condition: str
    ) -> float: ...
    @overload
    def applicability(
        self, sentences1: Texts, sentences2: Texts, condition: Texts
    ) -> FloatArray: ...

    def applicability(
        self, sentences1: Texts, sentences2: Texts, condition: Texts
    ) -> float | FloatArray:
        """Compute how likely a condition applies to both sentences.

        Where it does not, a score means little: C-STS calls such rows invalid (label -1). It is the
        product of the two sentences' `mentions`. A single text next to sequences stands for every
        row.

        Args:
            sentences1: First sentences, length n, or one.
            sentences2: Second sentences, length n, or one.
            condition: Conditions, length n, or one.

        Returns:
            A float for single texts, else ``(n,)`` float32, in [0, 1].

        Raises:
            InputError: If a text is empty or not a str, or lengths differ.
            ModelError: If the model has no head, or another model's.
        """
        rows, (first, second) = self._mentions(
            condition, sentences1=sentences1, sentences2=sentences2
        )
        return float(first[0] * second[0]) if rows.single else first * second

    @overload
    def mentions(self, sentences: str, condition: Condition) -> float: ...  # type: ignore[overload-overlap]
    @overload
    def mentions(self, sentences: Texts, condition: Conditions) -> FloatArray: ...

    def mentions(self, sentences: Texts, condition: Conditions) -> float | FloatArray:
        """Compute how likely each text says something about its condition.

        This separates two texts that are silent on a condition from two that agree.

        Args:
            sentences: Texts, length n, or one.
            condition: Conditions, length n, or one.

        Returns:
            A float for single texts, else ``(n,)`` float32, in [0, 1].

        Raises:
            InputError: If a text is empty or not a str, or lengths differ.
            ModelError: If the model has no head, or another model's.
        """
        rows, (chances,) = self._mentions(condition, sentences=sentences)
        return float(chances[0]) if rows.single else chances

    def _mentions(self, condition: Conditions, **sentences: Texts) -> tuple[Rows, list[FloatArray]]:
        """Return the checked rows, and the probabilities of each column of texts, ``(n,)``."""
        resolved = self.resolved(condition)
        words = resolved.condition if isinstance(resolved, Criterion) else resolved
        # As one of the texts, the condition must not be missing.
        rows = check_rows(None, **sentences, condition="" if words is None else words)
        head = self._own_head()
        chances = [np.empty(len(rows), dtype=np.float32) for _ in rows.sentences]
        with collect_truncations(), collect_unread():
            for block in row_blocks(rows.sentences):
                self._record_unread(rows, block)
                embedded = self._embedded(rows, block)
                for column, column_rows in zip(chances, embedded, strict=True):
                    column[block] = head.probability(column_rows)
        return rows, chances

    def _own_head(self) -> ApplicabilityHead:
        """Return the head; ModelError if there is none, or another model's."""
        if self.head is None:
            raise ModelError(
                f"{self.name!r} has no applicability head. Fit one with 'condsim applicability "
                "fit', and put it into the model's folder."
            )
        if self._checked_head is not self.head:
            # Past the cache, which may be asking for this.
            probe = conditional_sentences(*([part] for part in PROBE), order=self.order)
            self.head.check(self._embed(probe)[0], model=self.name)
            self._checked_head = self.head
        return self.head

    def embedded(self, sentences: Texts, conditions: Texts) -> Embedded:
        """Embed rows in the three ways that an applicability head needs; see `mentions`."""
        (embedded,) = self._embedded(check_rows(conditions, sentences=sentences), slice(None))
        return embedded

    def _embedded(self, rows: Rows, block: slice) -> list[Embedded]:
        vectors, index = self._embed_rows(rows, block)
        conditions = as_read(rows.conditions or (), order=self.order)
        alone = Rows((*rows.sentences, conditions), None, single=False)
        plain, plain_index = self._embed_rows(alone, block)
        condition = plain[plain_index[-1]]
        return [
            Embedded(vectors[under], plain[own], condition)
            for under, own in zip(index, plain_index[:-1], strict=True)
        ]

    def _chunk_weights(self, chunks: Chunks, vectors: FloatArray, embed: Embed) -> FloatArray:
        """Prefer chunks that speak of their condition, if the model has a head to tell."""
        weights = super()._chunk_weights(chunks, vectors, embed)
        if isinstance(chunks.inputs[0], str):
            return weights
        try:
            head = self._own_head()
        except ModelError:
            return weights
        columns = [list(column) for column in zip(*chunks.inputs, strict=True)]
        texts, conditions = columns if self.order == "sentence-first" else columns[::-1]
        distinct, index = np.unique(conditions, return_inverse=True)
        plain = embed(self._tokenized([*texts, *distinct.tolist()]).inputs)
        parts = Embedded(vectors, plain[: len(texts)], plain[len(texts) :][index])
        chances = np.maximum(head.probability(parts), _LEAST_CHANCE)
        weights *= chances**_MENTION_POWER
        return weights

    def _summary(self) -> list[tuple[str, object]]:
        return [
            ("name", self.name),
            ("kind", type(self).__name__),
            ("dimension", self.dimension),
            ("calibrated", "no" if self.calibration is None else "yes"),
            ("applicability", "no" if self.head is None else "yes"),
        ]

    def resolved(self, condition: Conditions | None) -> Conditions | None:
        """Return the learned criterion that a condition is, or names; else the condition.

        Args:
            condition: A criterion, a name that is registered, or the name of a file that ends in
                ``.criterion``.

        Raises:
            ModelError: If the file is not a criterion, or one of another model.
        """
        if isinstance(condition, list | tuple) and condition:
            # Commands and databases repeat the condition of all rows.
            names = {name for name in condition if isinstance(name, str)}
            learned = [name for name in names if is_criterion_file(name) or name in self.criteria]
            if learned and len(set(condition)) > 1:
                raise InputError(
                    f"The learned criterion {min(learned)!r} must be the condition of all rows: "
                    "give rows with other conditions in another call, or another file."
                )
            if learned:
                return self.resolved(learned[0])
        if isinstance(condition, Criterion):
            self.named(condition)
        elif isinstance(condition, str):
            if is_criterion_file(condition) and condition not in self.criteria:
                self.register(Criterion.load(condition), name=condition)
            return self.criteria.get(condition, condition)
        return condition

    def register(self, criterion: Criterion, *, name: str) -> None:
        """Let a condition of this name stand for a criterion from now on.

        Raises:
            ModelError: If the criterion was learned with another model.
        """
        criterion.check(self)
        self.criteria = {**self.criteria, name: criterion, criterion.name: criterion}

    def with_criteria(self, criteria: Mapping[str, Criterion]) -> Self:
        """Return the same model with names for criteria, and leave this one as it is.

        Raises:
            ModelError: If a criterion was learned with another model.
        """
        # Pickling, which copy.copy goes through, would load the model again.
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        for name, criterion in criteria.items():
            twin.register(criterion, name=name)
        return twin

    def named(self, condition: Condition) -> str:
        """Return the name of a condition, by which it can be stored."""
        resolved = condition if isinstance(condition, Criterion) else self.resolved(condition)
        if not isinstance(resolved, Criterion):
            return str(condition)
        if self.criteria.get(resolved.name) is not resolved:
            self.register(resolved, name=resolved.name)
        return resolved.name

    def dimension_of(self, condition: Conditions | None, *, overall: float = 0.0) -> int:
        """Return the length of an embedding under a condition; see `encode`."""
        resolved = self.resolved(condition)
        if isinstance(resolved, Criterion):
            return resolved.dimension
        return self.dimension * (2 if overall and condition is not None else 1)

    def calibration_of(self, condition: Conditions | None) -> Calibration | None:
        """Return the calibration of scores under a condition; a criterion has its own."""
        resolved = self.resolved(condition)
        return resolved.calibration if isinstance(resolved, Criterion) else self.calibration

    def learn(
        self,
        texts: Sequence[str],
        values: Sequence[object],
        *,
        condition: str,
        pairs: tuple[Sequence[str], Sequence[str], Sequence[object]] | None = None,
    ) -> Criterion:
        """Learn a criterion from labeled texts.

        The model stays as it is: 25 labeled texts teach what the condition means to you in a
        second. Two texts are then as alike as the values they probably have, and as the condition
        alone says they are. How much of each, cross-validation decides.

        Args:
            texts: Texts, length n; 8 or more of them labeled, 20 or more are better.
            values: The value of each, such as ``"cannot log in"``; None, NaN or a blank for a text
                without a label. Two or more values, and one of them twice.
            condition: What the values are values of, such as ``"the problem"``.
            pairs: Labeled pairs as well: first texts, second texts and whether they are the same,
                as in `learn_pairs`. A text has the value of the texts that it is the same as.

        Returns:
            The criterion, which goes wherever a condition goes, and assigns values to new texts.

        Raises:
            InputError: If a text is empty or has two values, a pair contradicts the values, the
                labels are too few or all the same, or there are more values than a file holds,
                about 140.

        Example:
            >>> import condsim
            >>> model = condsim.load()
            >>> things = ["car", "bus", "van", "bike"]
            >>> texts = [f"a {color} {thing}" for color in ("red", "blue") for thing in things]
            >>> color = model.learn(texts, ["red"] * 4 + ["blue"] * 4, condition="the color")
            >>> model.score("a red boat", "a red lamp", color) > 0.5
            True
        """
        from condsim.model.learned_values import learn

        with collect_truncations(), collect_unread():
            return learn(self, texts, values, condition=condition, pairs=pairs)

    def learn_pairs(
        self, first: Sequence[str], second: Sequence[str], same: Sequence[object], *, condition: str
    ) -> Criterion:
        """Learn a criterion from labeled pairs.

        Labeled texts teach more than as many pairs; see `learn`.

        Args:
            first: First texts, length n; 8 or more pairs labeled, 50 or more are better.
            second: Second texts, length n.
            same: Whether both are the same under the condition: True or False, or None or NaN for a
                pair without a label. There must be some of each.
            condition: As in `learn`.

        Returns:
            The criterion, which has no values to assign.

        Raises:
            InputError: If a text is empty, a pair has both labels, or the labels are too few or all
                the same.
        """
        from condsim.model.learned_pairs import learn_pairs

        with collect_truncations(), collect_unread():
            return learn_pairs(self, first, second, same, condition=condition)

    def verdict(
        self,
        first: Texts,
        second: Texts,
        condition: Conditions | None = None,
        *,
        about: bool = False,
    ) -> list[Verdict] | Verdict:
        """Say what each second text is to the first; see `Judge.verdict`, which this asks."""
        # Slow to import.
        from condsim.model.judge import load_judge

        return load_judge().verdict(first, second, condition, about=about)

    def _score_blended(self, rows: Rows, scale: Scale, overall: float) -> FloatArray:
        plain = self._score_rows(replace(rows, conditions=None), "raw")
        raw = (1 - overall) * self._score_rows(rows, "raw") + overall * plain
        return rescaled(raw, self.calibration, scale)

    def _score_rows(self, rows: Rows, scale: Scale) -> FloatArray:
        raw = np.empty(len(rows), dtype=np.float32)
        for block in row_blocks(rows.sentences):
            has_unread = self._record_unread(rows, block)
            vectors, index = self._embed_rows(rows, block)
            raw[block] = np.einsum("nd,nd->n", vectors[index[0]], vectors[index[1]])
            if has_unread:
                # Also texts that are mostly read, but differ only in what is not.
                first, second = (column[block] for column in rows.sentences)
                same_tokens = raw[block] > MIN_COSINE_OF_SAME_TOKENS
                differ = np.flatnonzero(same_tokens & self._unread_differ(first, second))
                record_unread(column[row] for row in differ.tolist() for column in (first, second))
        # Rounding may leave a cosine of 1.0000001.
        np.clip(raw, -1, 1, out=raw)
        return rescaled(raw, self.calibration_of(rows.criterion), scale)

    def _occluded(
        self, first: Occlusion, second: Occlusion, condition: Condition | None, scale: Scale
    ) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        vectors1 = self.encode(first.texts, condition)
        vectors2 = self.encode(second.texts, condition)
        # Row 1 is the text with all its words.
        raw1, raw2 = vectors1 @ vectors2[1], vectors2 @ vectors1[1]
        calibration = self.calibration_of(condition)
        values1 = rescaled(np.clip(raw1, -1, 1), calibration, scale)
        values2 = rescaled(np.clip(raw2, -1, 1), calibration, scale)
        if isinstance(condition, Criterion):
            return values1, values2, None
        # A cosine is linear in each vector, so the shares of vectors give the shares of word pairs.
        pairs = first.shares(vectors1) @ second.shares(vectors2).T
        return values1, values2, pairs.astype(np.float32)

    def _embed_rows(self, rows: Rows, block: slice) -> tuple[FloatArray, IntArray]:
        """Embed each conditional sentence of a block once; see `deduplicate_inputs`."""
        if rows.criterion is not None:
            return self._embed_criterion(rows, rows.criterion, block)
        columns = [column[block] for column in rows.sentences]
        conditions = None if rows.conditions is None else rows.conditions[block]
        sentences, conditions, index = deduplicate_inputs(columns, conditions)
        if conditions is None:
            return self._embed_inputs(sentences), index
        vectors = embed_aspects(sentences, conditions, self._embed_inputs, order=self.order)
        return vectors, index

    def _embed_inputs(self, inputs: list[str] | list[list[str]]) -> FloatArray:
        cache = self._cache
        vectors = self._embed(inputs) if cache is None else cache.embed(inputs, self._embed)
        if not np.isfinite(vectors).all():
            raise ModelError(f"{self.name!r} is damaged: its embeddings are not finite numbers.")
        return vectors

    def _embed_criterion(
        self, rows: Rows, criterion: Criterion, block: slice
    ) -> tuple[FloatArray, IntArray]:
        sentences = tuple(column[block] for column in rows.sentences)
        plain = Rows(sentences, None, single=False)
        under = replace(plain, conditions=[criterion.condition] * len(plain))
        # One condition for all sorts the texts as none does.
        vectors, index = self._embed_rows(under, slice(None))
        overall, _ = self._embed_rows(plain, slice(None))
        return criterion.embed(joined(vectors, overall, overall=SHARE)), index
