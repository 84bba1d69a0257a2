"""Data of a recipe: the rows to train on, as a trainer takes them, and the dev data."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset
from transformers import PreTrainedTokenizerBase

from condsim.data.files import check_file, column_names
from condsim.data.load import load_task, parse_hub_name
from condsim.data.nli import NliTask, load_nli
from condsim.data.tasks import pair_rows
from condsim.data.triplets import Triplets, is_triplets, load_triplets
from condsim.errors import InputError
from condsim.io import sha256_of
from condsim.model.inputs import conditional_sentences, cross_encoder_inputs
from condsim.training.batches import TrainingSet
from condsim.training.recipe import Recipe
from condsim.types import IntArray, Task

TrainingData = Task | NliTask | Triplets
"""Data that can be trained on."""

DevData = Task | Triplets
"""Data that an epoch can be chosen on: by Spearman, or by the accuracy of triplets."""

logger = logging.getLogger("condsim")


def load_train(recipe: Recipe) -> TrainingData:
    """Load the training file of a recipe, of the kind that its objective takes."""
    if recipe.train_kind == "classes":
        return load_nli(recipe.train)
    if recipe.train_kind == "triplets":
        return load_triplets(recipe.train)
    return load_task(recipe.train, require_labels=True)


def load_dev(file: str) -> DevData:
    """Load a dev file, whose columns decide the kind, and check that it can choose an epoch."""
    path = Path(file)
    if is_triplets(column_names(path)):
        return load_triplets(path)
    task = load_task(path)
    if len(np.unique(task.labels[task.valid])) < 2:
        raise InputError(
            f"{path}: choosing the best epoch by Spearman takes rows of two different labels."
        )
    return task


def load_data(recipe: Recipe) -> tuple[TrainingData, DevData]:
    """Load the training and the dev file, once all files of the recipe exist."""
    for path in local_files(recipe):
        check_file(path)
    return load_train(recipe), load_dev(recipe.dev)


def local_files(recipe: Recipe) -> list[Path]:
    """List the files of a recipe, without data from the Hub at a revision."""
    names: list[str | None] = [recipe.train, recipe.dev]
    for source in recipe.sources.values():
        names += [*source.files, source.vectors]
    return [Path(name) for name in names if name is not None and parse_hub_name(name) is None]


def file_revisions(files: Iterable[Path]) -> dict[str, str]:
    """Identify the content of files: 12 hex digits of the SHA-256 by path."""
    return {str(path): sha256_of(path)[:12] for path in files}


def dev_pairs(dev: DevData) -> Task:
    """Dev data as pairs."""
    return dev.pairs() if isinstance(dev, Triplets) else dev


def sample_units(sizes: IntArray, most: int | None) -> IntArray:
    """Draw units of rows, at most ``most`` rows in all; return their sorted indices.

    The draw does not depend on the seed of the recipe, and a smaller one is a part of a larger.
    """
    if most is None:
        return np.arange(len(sizes))
    order = np.random.default_rng(0).permutation(len(sizes))
    return np.sort(order[np.cumsum(sizes[order]) <= most])


def sample_rows(train: TrainingData, most: int | None) -> TrainingData:
    """Take the labeled rows of a run, at most ``most`` of them.

    Of a task whole sentence pairs are drawn (C-STS Figure 3), so it is ``most`` rows or a few less.
    """
    rows = train.labelled() if isinstance(train, Task) else train
    if most is None or most >= len(rows):
        return rows
    pair_ids = np.arange(len(rows), dtype=np.int64)
    if isinstance(rows, Task):
        pair_ids = pair_rows(rows).pair_ids
    chosen = sample_units(np.bincount(pair_ids).astype(np.int64), most)
    if not len(chosen):
        raise InputError(
            f"Recipe key 'train_rows' is {most}, and the first pair of {rows.name} has more rows."
        )
    return rows.take(np.flatnonzero(np.isin(pair_ids, chosen)))


def supervised_set(rows: NliTask | Triplets) -> TrainingSet:
    """Turn NLI rows or triplets into a training set; each row is a separate pair."""
    columns: dict[str, Any]
    if isinstance(rows, NliTask):
        columns = {"sentence1": rows.premises, "sentence2": rows.hypotheses}
    else:
        columns = {"anchor": rows.anchors, "positive": rows.positives, "negative": rows.negatives}
    lengths = [max(map(len, row)) for row in zip(*columns.values(), strict=True)]
    if isinstance(rows, NliTask):
        columns["label"] = rows.classes
    return TrainingSet(Dataset.from_dict(columns), np.arange(len(rows)), np.array(lengths))


def similarity_set(rows: Task, recipe: Recipe, *, separator: str | None) -> TrainingSet:
    """Turn labeled rows into a training set; ``separator`` is that of a cross-encoder's texts."""
    pairing = pair_rows(rows)
    if recipe.pair_terms and (rows.conditions is None or not pairing.pairs):
        raise InputError(
            f"{rows.name} has no sentence pair with two conditions and different labels, which "
            f"{', '.join(map(repr, recipe.pair_terms))} needs."
        )
    if recipe.pair_terms and pairing.ties:
        logger.info("%s: %d pairs with equal labels are %s", rows.name, pairing.ties, recipe.ties)
    sentences1, sentences2, conditions = rows.sentences1, rows.sentences2, rows.conditions
    columns: dict[str, Sequence[Any]] = {"sentence1": sentences1, "sentence2": sentences2}
    if separator is not None:
        inputs = cross_encoder_inputs(
            sentences1,
            sentences2,
            conditions,
            separator=separator,
            order=recipe.order,
            layout=recipe.layout,
            inputs=recipe.inputs,
        )
        columns = {"input": inputs}
    elif conditions:
        columns = {
            name: conditional_sentences(texts, conditions, order=recipe.order)
            for name, texts in columns.items()
        }
    gold, pair_ids = rows.gold.tolist(), pairing.pair_ids.tolist()
    columns["label"] = list(map(list, zip(gold, pair_ids, strict=True))) if conditions else gold
    texts = zip(sentences1, sentences2, conditions or ("",) * len(rows), strict=True)
    lengths = np.array([max(len(a), len(b)) + len(c) for a, b, c in texts])
    return TrainingSet(Dataset.from_dict(columns), pairing.pair_ids, lengths)


def warn_of_cuts(
    inputs: Iterable[str | Sequence[str]], tokenizer: PreTrainedTokenizerBase, limit: int
) -> None:
    """Log how many different inputs, texts or pairs of texts, have more than ``limit`` tokens."""
    distinct = {text if isinstance(text, str) else tuple(text) for text in inputs}
    # A token has a byte or more, so few inputs have to be tokenized.
    extra = tokenizer.num_special_tokens_to_add(pair=True)
    long = [text for text in distinct if len("".join(text).encode()) > limit - extra]
    if not long:
        return
    tokenized = tokenizer([list(text) if isinstance(text, tuple) else text for text in long])
    cut = sum(len(ids) > limit for ids in tokenized["input_ids"])
    if cut:
        logger.warning(
            "%d of %d different inputs to train on have more than %d tokens; the rest of each is "
            "cut off (recipe key 'max_seq_length').",
            cut,
            len(distinct),
            limit,
        )
