"""The data of a recipe: what is trained on, as the trainer takes it, and the dev data."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset
from transformers import PreTrainedTokenizerBase

from condsim.data.load import load_task, parse_hub_name
from condsim.data.nli import NliTask, load_nli
from condsim.data.reading import check_file, column_names
from condsim.data.statistics import pair_rows
from condsim.data.triplets import Triplets, is_triplets, load_triplets
from condsim.errors import InputError
from condsim.io import sha256_of
from condsim.model.conditions import conditional_sentences, cross_encoder_inputs
from condsim.training.recipe import Recipe
from condsim.types import IntArray, Task

TrainingData = Task | NliTask | Triplets
"""What can be trained on."""

DevData = Task | Triplets
"""What an epoch can be chosen on: by Spearman, or by the accuracy of triplets."""

_LOGGER = logging.getLogger("condsim")


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
    return load_task(recipe.train, require_labels=True)


def load_dev(recipe: Recipe) -> DevData:
    """Loads the dev file, whose columns decide the kind, and checks that it can choose an epoch."""
    path = Path(recipe.dev)
    if is_triplets(column_names(path)):
        return load_triplets(path)
    task = load_task(path)
    if len(np.unique(task.labels[task.valid])) < 2:
        raise InputError(
            f"{path}: the best epoch is chosen by Spearman, which needs rows of two different "
            "labels. Give more rows."
        )
    return task


def load_data(recipe: Recipe) -> tuple[TrainingData, DevData]:
    """Loads the training and the dev file, once all files of the recipe are there."""
    for file in _files(recipe):
        check_file(file)
    return load_train(recipe), load_dev(recipe)


def revisions_of(recipe: Recipe) -> dict[str, str]:
    """Identifies the content of each file of a recipe: 12 hex digits of its SHA-256."""
    return {str(file): sha256_of(file)[:12] for file in _files(recipe)}


def _files(recipe: Recipe) -> list[Path]:
    """The files of a recipe, without what comes from the Hub at a revision."""
    mixed = [file for one in recipe.sources.values() for file in (*one.files, one.vectors)]
    files = (recipe.train, recipe.dev, *mixed)
    return [Path(file) for file in files if file is not None and parse_hub_name(file) is None]


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
    if not len(chosen):
        raise InputError(
            f"The recipe key 'train_rows' is {wanted}, and the first pair drawn of {rows.name} has "
            f"more rows, {sizes[0]}. Whole pairs are drawn; ask for more."
        )
    return rows.take(np.flatnonzero(np.isin(pair_ids, chosen)))


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
    if recipe.pair_terms and pairing.ties:
        _LOGGER.info("%s: %d pairs with equal labels are %s", rows.name, pairing.ties, recipe.ties)
    sentences1, sentences2, conditions = rows.sentences1, rows.sentences2, rows.conditions
    columns: dict[str, Sequence[Any]] = {"sentence1": sentences1, "sentence2": sentences2}
    if recipe.encoder == "cross-encoder":
        given = cross_encoder_inputs(
            sentences1,
            sentences2,
            conditions,
            separator=separator,
            order=recipe.order,
            layout=recipe.layout,
            inputs=recipe.inputs,
        )
        columns = {"input": given}
    elif conditions:
        columns = {
            name: conditional_sentences(texts, conditions, order=recipe.order)
            for name, texts in columns.items()
        }
    gold, ids = rows.gold.tolist(), pairing.pair_ids.tolist()
    columns["label"] = list(map(list, zip(gold, ids, strict=True))) if conditions else gold
    texts = zip(sentences1, sentences2, conditions or ("",) * len(rows), strict=True)
    return TrainingSet(
        dataset=Dataset.from_dict(columns),
        pair_ids=pairing.pair_ids,
        lengths=np.array([max(len(a), len(b)) + len(c) for a, b, c in texts], dtype=np.int64),
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
    # A token has a byte or more, so few inputs have to be counted.
    extra = tokenizer.num_special_tokens_to_add(pair=True)
    long = [one for one in distinct if len("".join(one).encode()) > limit - extra]
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
