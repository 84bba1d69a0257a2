"""The data of a recipe: what is trained on, as the trainer takes it, and the dev data."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from datasets import Dataset
from transformers import PreTrainedTokenizerBase

from condsim.encoders import conditional_sentences, cross_encoder_pairs
from condsim.errors import InputError
from condsim.scorers import Scale
from condsim.tasks import (
    NliTask,
    Triplets,
    column_names,
    is_triplets,
    load_nli,
    load_task,
    load_triplets,
    pair_rows,
)
from condsim.training.recipe import Recipe
from condsim.types import FloatArray, IntArray, Scorer, Task

TrainingData = Task | NliTask | Triplets
"""What can be trained on."""

DevData = Task | Triplets
"""What an epoch can be chosen on: by Spearman, or by the accuracy of triplets."""

_LOGGER = logging.getLogger("condsim")

Inputs = Literal["both", "condition", "sentences"]
_HIDDEN = "-"  # stands where a text is kept from the model; scorers refuse an empty one


def load_train(recipe: Recipe) -> TrainingData:
    """Loads the training file as the objective needs it.

    Returns:
        Classes for ``softmax``, triplets for ``triplet``, else similarities.

    Raises:
        InputError: If the file cannot be read or holds something else.
    """
    if recipe.data_objective == "softmax":
        return load_nli(recipe.train)
    if recipe.data_objective == "triplet":
        return load_triplets(recipe.train)
    return load_task(recipe.train)


def load_dev(recipe: Recipe) -> DevData:
    """Loads the dev file; its columns decide the kind."""
    path = Path(recipe.dev)
    return load_triplets(path) if is_triplets(column_names(path)) else load_task(path)


def dev_pairs(dev: DevData) -> Task:
    """The dev data as pairs."""
    return dev.pairs() if isinstance(dev, Triplets) else dev


def used_rows(train: TrainingData, recipe: Recipe) -> TrainingData:
    """The rows that a run trains on: all that have a label, or ``train_rows`` of them.

    The draw does not depend on the seed of the recipe, and a smaller one is a part of a larger. Of
    a task whole sentence pairs are drawn (C-STS Figure 3), and the last pair that would be too many
    is left out, so it is ``train_rows`` rows or a few less.
    """
    rows = train.labelled() if isinstance(train, Task) else train
    wanted = recipe.train_rows
    if wanted is None or wanted >= len(rows):
        return rows
    generator = np.random.default_rng(0)
    if not isinstance(rows, Task):
        return rows.take(np.sort(generator.permutation(len(rows))[:wanted]))
    pair_ids = pair_rows(rows).pair_ids
    order = generator.permutation(int(pair_ids.max()) + 1)  # (pairs,)
    sizes = np.bincount(pair_ids)[order]
    chosen = order[np.cumsum(sizes) <= wanted]
    return rows.take(np.flatnonzero(np.isin(pair_ids, chosen)))


class MaskedScorer:
    """A scorer that hides a part of each row from the scorer inside.

    Attributes:
        name: Name of the scorer inside.
        calibration: Its calibration, if it has one.
        revision: Its version, if it has one.
    """

    def __init__(self, scorer: Scorer, inputs: Inputs) -> None:
        """Wraps a scorer.

        Args:
            scorer: A scorer with the option ``scale``; not copied.
        """
        self.name = scorer.name
        self.calibration = getattr(scorer, "calibration", None)
        self.revision: str | None = getattr(scorer, "revision", None)
        self._score: Any = scorer.score
        self._inputs = inputs

    def score(
        self,
        sentences1: Sequence[str],
        sentences2: Sequence[str],
        conditions: Sequence[str] | None,
        *,
        scale: Scale = "unit",
    ) -> FloatArray:
        """Scores pairs of which a part is hidden.

        Args:
            sentences1: First sentences, length n.
            sentences2: Second sentences, length n.
            conditions: Conditions, length n, or None.
            scale: ``raw`` or ``unit``, as for the scorer inside.

        Returns:
            ``(n,)`` float32; higher is more similar.
        """
        hidden = [_HIDDEN] * len(sentences1)
        if self._inputs == "condition":
            sentences1 = sentences2 = hidden
        elif self._inputs == "sentences":
            conditions = hidden
        scores: FloatArray = self._score(sentences1, sentences2, conditions, scale=scale)
        return scores


@dataclass(frozen=True)
class TrainingSet:
    """Rows as a sentence-transformers trainer and our sampler take them."""

    dataset: Dataset  # the columns of text and label
    pair_ids: IntArray  # sentence pair of each row, ``(n,)``; rows of one pair share a batch
    lengths: IntArray  # characters of the longest text of each row, ``(n,)``


def training_set(rows: TrainingData, recipe: Recipe, *, separator: str) -> TrainingSet:
    """Turns the rows of a run, from `used_rows`, into what is trained on.

    Args:
        separator: What stands between the sentences, for cross-encoders.

    Raises:
        InputError: If the rows do not fit the recipe.
    """
    if isinstance(rows, Task):
        return _of_task(rows, recipe, separator=separator)
    texts: dict[str, Sequence[str]]
    if isinstance(rows, NliTask):
        texts = {"sentence1": rows.premises, "sentence2": rows.hypotheses}
        columns: dict[str, Any] = {**texts, "label": rows.classes}
    else:
        texts = {"anchor": rows.anchors, "positive": rows.positives, "negative": rows.negatives}
        columns = dict(texts)
    lengths = [max(map(len, row)) for row in zip(*texts.values(), strict=True)]
    return TrainingSet(
        dataset=Dataset.from_dict(columns),
        pair_ids=np.arange(len(rows), dtype=np.int64),  # each row is its own
        lengths=np.array(lengths, dtype=np.int64),
    )


def _of_task(rows: Task, recipe: Recipe, *, separator: str) -> TrainingSet:
    pairing = pair_rows(rows)
    if rows.conditions is None and recipe.encoder == "tri-encoder":
        raise InputError(f"{rows.name} has no conditions, which a tri-encoder needs.")
    if recipe.pair_terms and (rows.conditions is None or not pairing.pairs):
        terms = "', '".join(recipe.pair_terms)
        raise InputError(
            f"{rows.name} has no sentence pair with two conditions and different labels, which "
            f"the objective needs for '{terms}'. Give such data, or use 'mse' or 'correlation'."
        )
    conditions = rows.conditions or ("",) * len(rows)
    texts = zip(rows.sentences1, rows.sentences2, conditions, strict=True)
    return TrainingSet(
        dataset=_columns(rows, pairing.pair_ids, recipe, separator=separator),
        pair_ids=pairing.pair_ids,
        lengths=np.array([max(len(a), len(b)) + len(c) for a, b, c in texts], dtype=np.int64),
    )


def _masked(task: Task, inputs: Inputs) -> Task:
    """Hides the sentences or the conditions of every row."""
    hidden = (_HIDDEN,) * len(task)
    if inputs == "condition":
        return replace(task, sentences1=hidden, sentences2=hidden)
    return replace(task, conditions=hidden) if inputs == "sentences" else task


def _columns(rows: Task, pair_ids: IntArray, recipe: Recipe, *, separator: str) -> Dataset:
    """Turns labelled rows into training columns."""
    rows = _masked(rows, recipe.inputs)
    sentences1, sentences2, conditions = rows.sentences1, rows.sentences2, rows.conditions
    gold = rows.gold.tolist()
    one, two = ("first", "second")
    if recipe.encoder != "cross-encoder":
        one, two = ("sentence1", "sentence2")
    if not conditions:
        return Dataset.from_dict({one: sentences1, two: sentences2, "label": gold})
    if recipe.encoder == "cross-encoder":
        pairs = cross_encoder_pairs(
            sentences1, sentences2, conditions, separator=separator, order=recipe.order
        )
        first, second = zip(*pairs, strict=True)
        return Dataset.from_dict({one: first, two: second, "label": gold})
    return Dataset.from_dict(
        {
            one: conditional_sentences(sentences1, conditions, order=recipe.order),
            two: conditional_sentences(sentences2, conditions, order=recipe.order),
            "label": [list(pair) for pair in zip(gold, pair_ids.tolist(), strict=True)],
        }
    )


def warn_of_cuts(
    inputs: Iterable[str | Sequence[str]], tokenizer: PreTrainedTokenizerBase, limit: int | None
) -> None:
    """Warns if inputs have more tokens than are trained on (logger ``condsim``), with their number.

    Args:
        inputs: Texts, or pairs of texts that are read as one input; equal ones count once.
        tokenizer: That of the encoder.
        limit: Most tokens of an input; None for no limit.
    """
    if limit is None:
        return
    distinct = {one if isinstance(one, str) else tuple(one) for one in inputs}
    # A token has a character or more, so few inputs have to be counted.
    extra = tokenizer.num_special_tokens_to_add(pair=True)
    long = [one for one in distinct if sum(map(len, one)) > limit - extra]
    if not long:
        return
    tokenised = tokenizer([list(one) if isinstance(one, tuple) else one for one in long])
    cut = sum(len(ids) > limit for ids in tokenised["input_ids"])
    if cut:
        _LOGGER.warning(
            "%d of %d different inputs to train on have more than %d tokens; the rest of each is "
            "cut off (recipe key 'max_seq_length').",
            cut,
            len(distinct),
            limit,
        )
