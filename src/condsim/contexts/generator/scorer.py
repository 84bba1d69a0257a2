"""Scoring with trained generators: everything encoded once, sorted by length and batched.

Scores are log-probabilities per target token, the 1/|s| log p of Eq. 3. The end token is counted
as a token of the target: without it the probabilities of all sentences would not sum to one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from condsim.contexts.corpus import Corpus, Vocabulary
from condsim.contexts.generator.backbone import saved_generator
from condsim.contexts.generator.items import TASKS, ItemBuilder, Task3
from condsim.contexts.generator.model import ContextGenerator
from condsim.contexts.generator.settings import GeneratorSettings
from condsim.contexts.generator.states import StateStore
from condsim.contexts.model_weights import (
    MODEL,
    REPORT,
    VOCABULARY,
    best_device,
    load_weights,
    open_finished,
    read_tensors,
)
from condsim.errors import ModelError
from condsim.precision import uses_bfloat16
from condsim.settings import validated
from condsim.types import FloatArray, IntArray

_SLAB = 1 << 20  # width of the model times the pairs whose encoder states are held at a time


class GeneratorScorer:
    """Log-probability of sentences in contexts, and of contexts around sentences (Eq. 2)."""

    def __init__(
        self,
        models: dict[Task3, ContextGenerator],
        vocabulary: Vocabulary,
        corpus: Corpus,
        settings: GeneratorSettings,
        *,
        memory_gb: float = 2.0,
    ) -> None:
        """Takes what :meth:`open` opened.

        Args:
            models: The model of each task; one and the same, or three.
            vocabulary: Their tokenizer.
            corpus: The corpus of the contexts.
            settings: What the models are.
            memory_gb: Memory for encoder states that are kept, of all models together.
        """
        self._models, self._vocabulary = models, vocabulary
        self._corpus, self._settings = corpus, settings
        distinct = {id(model) for model in models.values()}
        self._stores = {one: StateStore(memory_gb / len(distinct)) for one in distinct}

    @classmethod
    def open(
        cls,
        folder: Path,
        corpus: Corpus,
        *,
        tasks: Collection[str] = TASKS,
        precision: Literal["auto", "float32", "bfloat16"] = "auto",
        memory_gb: float = 2.0,
    ) -> GeneratorScorer:
        """Opens trained generators.

        Args:
            folder: As `condsim.contexts.generator.training.train_generators` wrote it.
            corpus: The corpus they were trained on.
            tasks: What will be scored; models of other tasks are not opened.
            precision: Number format; bfloat16 is about twice as fast where the processor has it,
                and changes a score by some thousandths.
            memory_gb: See the constructor.

        Returns:
            The scorer.

        Raises:
            ModelError: If the folder holds no finished generators.
            InputError: If the corpus is another one.
        """
        record = open_finished(folder, "generators", corpus=corpus.revision)
        own = ("kind", "corpus", "vocabulary")
        values = {key: value for key, value in record.items() if key not in own}
        settings = validated(GeneratorSettings, values, what="generator", source=str(folder))
        vocabulary = Vocabulary.open(folder / VOCABULARY)
        if record["vocabulary"] not in ("", vocabulary.revision):
            raise ModelError(
                f"The tokenizer in {folder / VOCABULARY} is not the one the generators were "
                "trained with. Train them anew."
            )
        models: dict[Task3, ContextGenerator] = {}
        for name, of_one in settings.models_for(tasks).items():
            if not (folder / name / REPORT).is_file():
                raise ModelError(
                    f"The generators in {folder} were trained without '{name}', which the recipe's "
                    "weights ask for. Run 'condsim contexts run' with it again; the rest stays."
                )
            model = saved_generator(settings, vocabulary, folder / name)
            tensors, _ = read_tensors(folder / name / MODEL)
            load_weights(model, tensors, source=folder / name / MODEL)
            kind = torch.bfloat16 if uses_bfloat16(precision) else torch.float32
            model.to(best_device(), kind).eval()
            models.update(dict.fromkeys(of_one, model))
        return cls(models, vocabulary, corpus, settings, memory_gb=memory_gb)

    def scores(
        self, task: Task3, sentences: Sequence[str], centres: Sequence[IntArray]
    ) -> list[FloatArray]:
        """Scores each sentence in its own contexts.

        Args:
            task: ``centre`` for log p(s | context), ``left`` and ``right`` for that of a side of
                the context given the sentence and the other side.
            sentences: Sentences, length m.
            centres: The contexts of each, named by the sentence they surround; m arrays.

        Returns:
            For each sentence the log-probability per target token in each of its contexts; NaN
            where the context has no sentence on the side to be generated.
        """
        return self.scores_of_tasks((task,), sentences, centres)[task]

    def scores_of_tasks(
        self, tasks: Sequence[Task3], sentences: Sequence[str], centres: Sequence[IntArray]
    ) -> dict[Task3, list[FloatArray]]:
        """Scores several tasks at once, which share encoder states where one model does them.

        A sentence with a context that comes up again is not scored again.

        Args:
            tasks: The tasks.
            sentences: Sentences, length m.
            centres: The contexts of each, m arrays.

        Returns:
            As :meth:`scores`, by task.
        """
        numbers, distinct = _distinct(sentences)
        lengths = [len(of_one) for of_one in centres]
        if not sum(lengths):
            return {task: [np.empty(0, np.float32) for _ in sentences] for task in tasks}
        pairs = np.stack([np.concatenate(list(centres)), np.repeat(numbers, lengths)], axis=1)
        pairs, back = np.unique(pairs, axis=0, return_inverse=True)  # contexts in corpus order
        found = {task: np.full(len(pairs), np.nan, dtype=np.float32) for task in tasks}
        tokens = self._cut(distinct)
        width = next(iter(self._models.values())).places.shape[1]
        size = max(256, _SLAB // width)
        for first in range(0, len(pairs), size):
            slab = pairs[first : first + size]
            texts = self._texts(slab, tokens)
            for group in self._groups(tasks):
                for task, rows, scores in self._score(group, slab, texts):
                    found[task][first + rows] = scores
        cuts = np.cumsum(lengths)[:-1]
        return {task: np.split(found[task][back.reshape(-1)], cuts) for task in tasks}

    def scores_one_by_one(
        self, task: Task3, sentences: Sequence[str], centres: Sequence[IntArray]
    ) -> list[FloatArray]:
        """Scores every sentence in every context by itself; the reference that tests compare with.

        Args:
            task: The task.
            sentences: Sentences, length m.
            centres: The contexts of each, m arrays.

        Returns:
            What :meth:`scores` returns.
        """
        model = self._models[task]
        found = []
        for text, of_one in zip(sentences, centres, strict=True):
            scores = np.full(len(of_one), np.nan, dtype=np.float32)
            for row, centre in enumerate(of_one):
                pair = np.array([[centre, 0]])
                builder = self._builder(self._texts(pair, self._cut([text])))
                around = self._neighbours(pair)[0]
                if not builder.add(task, -2, around):
                    continue
                with torch.inference_mode():
                    scores[row] = float(model.token_scores(builder.units, builder.items).mean())
            found.append(scores)
        return found

    def _score(
        self, tasks: Sequence[Task3], slab: IntArray, texts: dict[int, IntArray]
    ) -> list[tuple[Task3, IntArray, FloatArray]]:
        """Scores the pairs of a slab for tasks of one model."""
        model, builder = self._models[tasks[0]], self._builder(texts)
        around = self._neighbours(slab)
        scored: list[tuple[Task3, list[int]]] = []
        for task in tasks:
            rows = [
                row
                for row, (number, near) in enumerate(zip(slab[:, 1].tolist(), around, strict=True))
                if builder.add(task, -2 - number, near)
            ]
            scored.append((task, rows))
        items = builder.items
        if not len(items):
            return []
        with torch.inference_mode():
            memory = model.encode(builder.units, self._stores[id(model)])
            sums = model.log_probabilities(memory, items).cpu().numpy()
        means = (sums / [len(target) for target in items.targets]).astype(np.float32)
        parts = np.split(means, np.cumsum([len(rows) for _, rows in scored])[:-1])
        return [
            (task, np.array(rows, dtype=np.int64), part)
            for (task, rows), part in zip(scored, parts, strict=True)
        ]

    def _groups(self, tasks: Sequence[Task3]) -> list[list[Task3]]:
        """The tasks of each model."""
        groups: dict[int, list[Task3]] = {}
        for task in TASKS:
            if task in tasks:
                groups.setdefault(id(self._models[task]), []).append(task)
        return list(groups.values())

    def _cut(self, sentences: Sequence[str]) -> list[IntArray]:
        most = self._settings.max_tokens - 1
        return [tokens[:most] for tokens in self._vocabulary.encode(sentences)]

    def _neighbours(self, pairs: IntArray) -> list[list[int]]:
        left, right = self._settings.left, self._settings.right
        around: list[list[int]] = self._corpus.neighbours(
            pairs[:, 0], left=left, right=right
        ).tolist()
        return around

    def _texts(self, pairs: IntArray, tokens: Sequence[IntArray]) -> dict[int, IntArray]:
        """Tokens by number: rows of the corpus, and -2, -3 ... for the sentences scored."""
        ids = np.unique(np.array(self._neighbours(pairs), dtype=np.int64))
        ids = ids[ids >= 0]
        texts = dict(zip(ids.tolist(), self._cut(self._corpus.sentences(ids)), strict=True))
        return texts | {-2 - int(number): tokens[number] for number in np.unique(pairs[:, 1])}

    def _builder(self, texts: dict[int, IntArray]) -> ItemBuilder:
        settings, vocabulary = self._settings, self._vocabulary
        return ItemBuilder(
            texts,
            left=settings.left,
            joint=settings.encoder == "joint",
            end=vocabulary.end_id,
            separator=vocabulary.separator_id,
        )


def _distinct(sentences: Sequence[str]) -> tuple[IntArray, list[str]]:
    """The number of each sentence among the distinct ones, and those."""
    numbers: dict[str, int] = {}
    rows = [numbers.setdefault(sentence, len(numbers)) for sentence in sentences]
    return np.array(rows, dtype=np.int64), list(numbers)
