"""Scoring with trained generators: everything encoded once, sorted by length and batched."""

# Scores are log-probabilities per target token, the 1/|s| log p of Eq. 3. The end token is counted
# as a token of the target: without it the probabilities of all sentences would not sum to one.

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from condsim.contexts.corpus.stored import Corpus
from condsim.contexts.corpus.vocabulary import Vocabulary
from condsim.contexts.generator.counts import FOLDER_KINDS, CountsGenerator
from condsim.contexts.generator.items import ItemBuilder
from condsim.contexts.generator.model import ContextGenerator, StateStore, saved_generator
from condsim.contexts.generator.translation import TranslationGenerator
from condsim.contexts.models import MODEL, REPORT, best_device, load_weights, open_finished
from condsim.contexts.settings import (
    GENERATOR_TASKS,
    GeneratorKind,
    GeneratorSettings,
    GeneratorTask,
)
from condsim.errors import ModelError
from condsim.model.precision import uses_bfloat16
from condsim.types import FloatArray, IntArray

AnyGenerator = ContextGenerator | CountsGenerator

_SLAB = 1 << 20  # width of the model times the pairs whose encoder states are held at a time

_KEPT = 1 << 18  # sentences of the corpus whose tokens are kept, about 80 MB


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
        """Makes a scorer of loaded models; see :meth:`open`.

        Args:
            models: The model of each task; one and the same, or three.
            memory_gb: Gigabytes of encoder states that are kept, of all models together.
        """
        self._models, self._vocabulary = models, vocabulary
        self._corpus, self._settings = corpus, settings
        self._texts: dict[int, IntArray] = {}
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
        """Opens trained generators.

        Args:
            corpus: The corpus they were trained on.
            kind: What they are, as their settings say.
            tasks: What will be scored; models of other tasks are not opened.
            memory_gb: See the constructor.

        Raises:
            ModelError: If the folder holds no finished generators.
            InputError: If the corpus is another one.
        """
        settings, vocabulary = open_finished(
            folder, FOLDER_KINDS[kind], GeneratorSettings, corpus=corpus.revision
        )
        settings = settings.replaced(kind=kind)  # the folder's record has a name in its place
        models: dict[GeneratorTask, AnyGenerator] = {}
        for name, of_one in settings.models_for(tasks).items():
            if not (folder / name / REPORT).is_file():
                raise ModelError(
                    f"The generators in {folder} were trained without '{name}', which the recipe's "
                    "weights ask for. Run 'condsim contexts run' with it again; the rest stays."
                )
            model: AnyGenerator
            if kind == "translation":
                model = TranslationGenerator.open(settings, vocabulary, corpus, folder / name)
            elif kind == "counts":
                model = CountsGenerator(settings, vocabulary)
                load_weights(model, folder / name / MODEL)
            else:
                model = saved_generator(settings, vocabulary, folder / name)
                load_weights(model, folder / name / MODEL)
                # About twice as fast where the processor has it; changes a score by thousandths.
                number = torch.bfloat16 if uses_bfloat16("auto") else torch.float32
                model.to(best_device(), number).eval()
            models.update(dict.fromkeys(of_one, model))
        return cls(models, vocabulary, corpus, settings, memory_gb=memory_gb)

    def scores(
        self, tasks: Sequence[GeneratorTask], sentences: Sequence[str], centres: Sequence[IntArray]
    ) -> dict[GeneratorTask, list[FloatArray]]:
        """Scores each sentence in its own contexts.

        Encoder states are shared where one model does several tasks. A sentence with a context that
        comes up again is not scored again.

        Args:
            tasks: ``centre`` for log p(s | context), ``left`` and ``right`` for that of a side of
                the context given the sentence and the other side.
            sentences: Sentences, length m.
            centres: The contexts of each, named by the sentence they surround; m arrays.

        Returns:
            By task, for each sentence the log-probability per target token in each of its contexts;
            NaN where the context has no sentence on the side to be generated.
        """
        numbers: dict[str, int] = {}
        rows = [numbers.setdefault(sentence, len(numbers)) for sentence in sentences]
        lengths = [len(of_one) for of_one in centres]
        if not sum(lengths):
            return {task: [np.empty(0, np.float32) for _ in sentences] for task in tasks}
        pairs = np.stack([np.concatenate(list(centres)), np.repeat(rows, lengths)], axis=1)
        pairs, back = np.unique(pairs, axis=0, return_inverse=True)  # contexts in corpus order
        found = {task: np.full(len(pairs), np.nan, dtype=np.float32) for task in tasks}
        tokens = self._tokens(list(numbers))
        model, every = next(iter(self._models.values())), np.arange(len(pairs))
        size = max(256, _SLAB // model.places.shape[1])
        orders = [(tasks, every)]
        if isinstance(model, CountsGenerator):  # equal targets together
            by_sentence = np.argsort(pairs[:, 1], kind="stable")
            orders = [([task], by_sentence if task == "centre" else every) for task in tasks]
        for some, order in orders:
            for first in range(0, len(pairs), size):
                part = order[first : first + size]
                for task, places, scores in self._score(some, pairs[part], tokens):
                    found[task][part[places]] = scores
        cuts = np.cumsum(lengths)[:-1]
        return {task: np.split(found[task][back.reshape(-1)], cuts) for task in tasks}

    def _score(
        self, tasks: Sequence[GeneratorTask], pairs: IntArray, tokens: Sequence[IntArray]
    ) -> Iterator[tuple[GeneratorTask, IntArray, FloatArray]]:
        """Scores pairs of centre and sentence: for each task the pairs that it has, and scores."""
        settings = self._settings
        around = self._corpus.neighbours(pairs[:, 0], left=settings.left, right=settings.right)
        ids = np.unique(around)
        ids = ids[ids >= 0]
        known = self._of_corpus(ids)
        # Sentences that are scored have numbers below those of the corpus: -2, -3 ...
        known |= {-2 - int(number): tokens[number] for number in np.unique(pairs[:, 1])}
        rows = list(zip((-2 - pairs[:, 1]).tolist(), around.tolist(), strict=True))
        for model, store in self._stores.items():
            builder = ItemBuilder(known, settings, self._vocabulary)
            scored = {
                task: np.flatnonzero([builder.add(task, number, near) for number, near in rows])
                for task in tasks
                if self._models[task] is model
            }
            if not len(builder.items):
                continue
            with torch.inference_mode():
                if isinstance(model, CountsGenerator):
                    found = model.log_probabilities(builder.units, builder.items)
                else:
                    memory = model.encode(builder.units, store)
                    found = model.log_probabilities(memory, builder.items)
                sums = found.cpu().numpy()
            targets = [len(target) for target in builder.items.targets]
            means = iter(np.split(sums / targets, np.cumsum([*map(len, scored.values())])[:-1]))
            for task, places in scored.items():
                yield task, places, next(means).astype(np.float32)

    def _of_corpus(self, ids: IntArray) -> dict[int, IntArray]:
        """Tokens by row of the corpus; contexts overlap, so those asked for last are kept."""
        if len(self._texts) > _KEPT:
            self._texts.clear()
        new = np.array([row for row in ids.tolist() if row not in self._texts], np.int64)
        texts = self._tokens(self._corpus.sentences(new))
        self._texts.update(zip(new.tolist(), texts, strict=True))
        return {row: self._texts[row] for row in ids.tolist()}

    def _tokens(self, sentences: Sequence[str]) -> list[IntArray]:
        most = self._settings.max_tokens - 1
        return [tokens[:most] for tokens in self._vocabulary.encode(sentences)]
