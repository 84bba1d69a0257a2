"""Scoring with generators: everything encoded once, sorted by length and batched.

Scores are log-probabilities per target token, the 1/|s| log p of Eq. 3. The end token is counted as
a token of the target: without it the probabilities of all sentences would not sum to one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from condsim.contexts.corpus import Corpus
from condsim.contexts.count_generators import CountsGenerator, TranslationGenerator, corpus_vectors
from condsim.contexts.generator import ContextGenerator, StateStore, saved_generator
from condsim.contexts.recipe import (
    GENERATOR_TASKS,
    MODEL,
    REPORT,
    GeneratorKind,
    GeneratorSettings,
    GeneratorTask,
)
from condsim.contexts.tokens import ItemBuilder, Vocabulary
from condsim.contexts.trainer import best_device, open_finished, restore_weights
from condsim.errors import ModelError
from condsim.model.precision import uses_bfloat16
from condsim.types import FloatArray, IntArray

AnyGenerator = ContextGenerator | CountsGenerator

FOLDER_KINDS: Mapping[GeneratorKind, str] = {
    "trained": "generators",
    "counts": "counts",
    "translation": "translation",
}
"""Names of the kinds of generators in the record of a folder."""

# Width of the model times the pairs whose encoder states are held at a time.
_VALUES_PER_SLAB = 1 << 20
# Sentences of the corpus whose tokens are cached, about 80 MB.
_CACHED_SENTENCES = 1 << 18


class GeneratorScorer:
    """Log-probability of sentences in contexts, and of contexts around sentences (Eq. 2)."""

    def __init__(
        self,
        models: Mapping[GeneratorTask, AnyGenerator],
        vocabulary: Vocabulary,
        corpus: Corpus,
        settings: GeneratorSettings,
        *,
        memory_gb: float = 2.0,
    ) -> None:
        """Take the model of each task, one and the same or three; see :meth:`open`."""
        self._models, self._vocabulary = models, vocabulary
        self._corpus, self._settings = corpus, settings
        self._corpus_tokens: dict[int, IntArray] = {}
        distinct = set(models.values())
        self._stores: dict[AnyGenerator, StateStore] = {
            model: StateStore(memory_gb / len(distinct)) for model in distinct
        }

    @classmethod
    def open(
        cls,
        folder: Path,
        corpus: Corpus,
        *,
        kind: GeneratorKind = "trained",
        tasks: Collection[str] = GENERATOR_TASKS,
        memory_gb: float = 2.0,
    ) -> GeneratorScorer:
        """Open the finished generators of some tasks, trained on the corpus."""
        settings, vocabulary = open_finished(
            folder, FOLDER_KINDS[kind], GeneratorSettings, corpus=corpus.revision
        )
        # The folder's record has a name in its place.
        settings = settings.replaced(kind=kind)
        models: dict[GeneratorTask, AnyGenerator] = {}
        for name, model_tasks in settings.models_for(tasks).items():
            if not (folder / name / REPORT).is_file():
                raise ModelError(
                    f"The generators in {folder} were trained without '{name}', which the recipe's "
                    "weights need. Run 'condsim contexts run' with it again to train it."
                )
            model = _open_model(folder / name, settings, vocabulary, corpus)
            models.update(dict.fromkeys(model_tasks, model))
        return cls(models, vocabulary, corpus, settings, memory_gb=memory_gb)

    def scores(
        self, tasks: Sequence[GeneratorTask], sentences: Sequence[str], centres: Sequence[IntArray]
    ) -> dict[GeneratorTask, list[FloatArray]]:
        """Score each of m sentences in its own contexts, m arrays of their centers.

        ``centre`` is log p(s | context), ``left`` and ``right`` that of a side of the context given
        the sentence and the other side. Returns by task, for each sentence, the log-probability per
        target token in each of its contexts; NaN where that side has no sentence.
        """
        numbers: dict[str, int] = {}
        rows = [numbers.setdefault(sentence, len(numbers)) for sentence in sentences]
        lengths = [len(contexts) for contexts in centres]
        if not sum(lengths):
            return {task: [np.empty(0, np.float32) for _ in sentences] for task in tasks}
        pairs = np.stack([np.concatenate(list(centres)), np.repeat(rows, lengths)], axis=1)
        # Contexts in the order of the corpus.
        pairs, back = np.unique(pairs, axis=0, return_inverse=True)
        values = {task: np.full(len(pairs), np.nan, dtype=np.float32) for task in tasks}
        tokens = self._tokens(list(numbers))
        model, by_context = next(iter(self._models.values())), np.arange(len(pairs))
        size = max(256, _VALUES_PER_SLAB // model.places.shape[1])
        orders = [(tasks, by_context)]
        if isinstance(model, CountsGenerator):
            # Equal targets together.
            by_sentence = np.argsort(pairs[:, 1], kind="stable")
            orders = [([task], by_sentence if task == "centre" else by_context) for task in tasks]
        for order_tasks, order in orders:
            for first in range(0, len(pairs), size):
                slab = order[first : first + size]
                for task, chosen, scores in self._score(order_tasks, pairs[slab], tokens):
                    values[task][slab[chosen]] = scores
        cuts = np.cumsum(lengths)[:-1]
        return {task: np.split(values[task][back.reshape(-1)], cuts) for task in tasks}

    def _score(
        self, tasks: Sequence[GeneratorTask], pairs: IntArray, tokens: Sequence[IntArray]
    ) -> Iterator[tuple[GeneratorTask, IntArray, FloatArray]]:
        """Score pairs of center and sentence: for each task the pairs that have it, and scores."""
        settings = self._settings
        around = self._corpus.neighbours(pairs[:, 0], left=settings.left, right=settings.right)
        ids = np.unique(around)
        by_number = self._tokens_of_corpus(ids[ids >= 0])
        # Sentences that are scored have numbers below those of the corpus: -2, -3 ...
        by_number |= {-2 - int(number): tokens[number] for number in np.unique(pairs[:, 1])}
        rows = list(zip((-2 - pairs[:, 1]).tolist(), around.tolist(), strict=True))
        for model, store in self._stores.items():
            builder = ItemBuilder(by_number, settings, self._vocabulary)
            chosen = {
                task: np.flatnonzero([builder.add(task, number, near) for number, near in rows])
                for task in tasks
                if self._models[task] is model
            }
            if not len(builder.items):
                continue
            with torch.inference_mode():
                memory = model.encode(builder.units, store)
                sums = model.log_probabilities(memory, builder.items)  # type: ignore[arg-type]
            lengths = [len(target) for target in builder.items.targets]
            means = (sums.cpu().numpy() / lengths).astype(np.float32)
            cuts = np.cumsum([*map(len, chosen.values())])[:-1]
            yield from zip(chosen, chosen.values(), np.split(means, cuts), strict=True)

    def _tokens_of_corpus(self, ids: IntArray) -> dict[int, IntArray]:
        """Read tokens by row of the corpus; contexts overlap, so the latest are cached."""
        if len(self._corpus_tokens) > _CACHED_SENTENCES:
            self._corpus_tokens.clear()
        new = np.array([row for row in ids.tolist() if row not in self._corpus_tokens], np.int64)
        tokens = self._tokens(self._corpus.sentences(new))
        self._corpus_tokens.update(zip(new.tolist(), tokens, strict=True))
        return {row: self._corpus_tokens[row] for row in ids.tolist()}

    def _tokens(self, sentences: Sequence[str]) -> list[IntArray]:
        most = self._settings.max_tokens - 1
        return [tokens[:most] for tokens in self._vocabulary.encode(sentences)]


def _open_model(
    folder: Path, settings: GeneratorSettings, vocabulary: Vocabulary, corpus: Corpus
) -> AnyGenerator:
    model: AnyGenerator
    if settings.kind == "translation":
        sentences = corpus_vectors(str(settings.backbone), corpus, folder)
        model = TranslationGenerator(settings, vocabulary, sentences)
    elif settings.kind == "counts":
        model = CountsGenerator(settings, vocabulary)
    else:
        model = saved_generator(settings, vocabulary, folder)
    restore_weights(model, folder / MODEL)
    if isinstance(model, ContextGenerator):
        # About twice as fast where the processor has it; changes a score by thousandths.
        model.to(best_device(), torch.bfloat16 if uses_bfloat16("auto") else torch.float32)
    return model.eval()
