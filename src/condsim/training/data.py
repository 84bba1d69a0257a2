"""Data of a recipe: the dev data, and the rows to train on in batches of whole pairs."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset
from sentence_transformers.base.sampler import DefaultBatchSampler
from transformers import PreTrainedTokenizerBase

from condsim.data.files import check_file, column_names
from condsim.data.load import load_task, parse_hub_name
from condsim.data.nli_triplets import NliTask, Triplets, is_triplets, load_nli, load_triplets
from condsim.data.tasks import pair_rows
from condsim.errors import InputError
from condsim.model.inputs import conditional_sentences, cross_encoder_inputs
from condsim.paths import sha256_of
from condsim.training.recipe import Recipe
from condsim.types import IntArray, Task

TrainingData = Task | NliTask | Triplets
"""Data that can be trained on."""

DevData = Task | Triplets
"""Data that an epoch can be chosen on: by Spearman, or by the accuracy of triplets."""

# Batches sorted together: enough to find rows of similar length, few enough to stay random.
BATCHES_PER_WINDOW = 32

logger = logging.getLogger("condsim")


@dataclass(frozen=True)
class TrainingSet:
    """Rows as a sentence-transformers trainer and `PairBatchSampler` take them.

    ``pair_ids`` has the sentence pair of each row, ``(n,)``, whose rows share a batch, and
    ``lengths`` the characters of its longest text.
    """

    dataset: Dataset
    pair_ids: IntArray
    lengths: IntArray


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
    rows = train.labeled() if isinstance(train, Task) else train
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
    """Turn labeled rows into a training set; ``separator`` is for a cross-encoder."""
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


def group_rows(pair_ids: IntArray, *, batch_size: int) -> list[IntArray]:
    """Group row indices by sentence pair, in the order of the first row; split large groups."""
    order = np.argsort(pair_ids, kind="stable")
    starts = np.flatnonzero(np.diff(pair_ids[order], prepend=-2))
    groups = np.split(order, starts[1:])
    pieces = [g[i : i + batch_size] for g in groups for i in range(0, len(g), batch_size)]
    return sorted(pieces, key=lambda group: int(group[0]))


class PairBatchSampler(DefaultBatchSampler):
    """Sampler of whole sentence pairs (C-STS §4.1: Quad needs both conditions of a pair).

    An epoch shuffles the pairs, sorts each window of 32 batches by length, cuts batches and
    shuffles them, so padding is small and the order stays random. The order follows from seed and
    epoch alone, which is what lets an interrupted run be resumed exactly.
    """

    def __init__(
        self,
        rows: TrainingSet,
        *_: object,
        batch_size: int,
        drop_last: bool = False,
        seed: int,
        **__: object,
    ) -> None:
        """Group the rows by pair and fix the sizes of the batches; a trainer gives more.

        With ``drop_last``, each of several processes gets as many batches; else they would wait
        for each other.
        """
        indices = range(len(rows.pair_ids))
        super().__init__(indices, batch_size=batch_size, drop_last=drop_last, seed=seed)
        # accelerate would leave out every batch that is not of exactly this size.
        self.batch_size = None  # type: ignore[assignment]
        self._groups = group_rows(rows.pair_ids, batch_size=batch_size)
        self._sizes = np.array([len(group) for group in self._groups])
        self._lengths = np.array([int(rows.lengths[group].max()) for group in self._groups])
        self._window = BATCHES_PER_WINDOW * batch_size
        self._slots = self._plan(batch_size)

    def __len__(self) -> int:
        return len(self._slots)

    def __iter__(self) -> Iterator[list[int]]:
        generator = np.random.default_rng((self.seed, self.epoch))
        order = self._order(generator)
        queues = {size: iter(order[self._sizes[order] == size]) for size in set(self._sizes)}
        batches = []
        for slot in self._slots:
            groups = [self._groups[next(queues[size])] for size in slot]
            batches.append(np.concatenate(groups).tolist())
        for index in generator.permutation(len(batches)):
            yield batches[index]

    def _plan(self, batch_size: int) -> list[list[int]]:
        """Fix the group sizes of each batch, so that every epoch has as many batches."""
        slots: list[list[int]] = [[]]
        for size in np.random.default_rng(self.seed).permutation(self._sizes).tolist():
            if sum(slots[-1]) + size > batch_size:
                slots.append([])
            slots[-1].append(size)
        return slots

    def _order(self, generator: np.random.Generator) -> IntArray:
        """Order of the groups in an epoch: random, within each window by length."""
        order = generator.permutation(len(self._groups))
        windows = np.split(order, range(self._window, len(order), self._window))
        return np.concatenate([w[np.argsort(self._lengths[w], kind="stable")] for w in windows])
