"""Origin scores of SSBC: states shared and batched, against each (sentence, context) by itself."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from benchmarks.contexts_text import sentences
from benchmarks.machine import usable_cores, version_of
from benchmarks.result import Result
from condsim.model.precision import uses_bfloat16
from condsim.types import FloatArray, IntArray
from condsim_contexts.corpus import Corpus, prepare_corpus
from condsim_contexts.equations import ContextTerms, PairTerms
from condsim_contexts.generator import ContextGenerator, Copies, new_generator
from condsim_contexts.generators import GeneratorScorer
from condsim_contexts.index import TfidfIndex
from condsim_contexts.origin import OriginScorer
from condsim_contexts.recipe import (
    GENERATOR_TASKS,
    GeneratorSettings,
    GeneratorTask,
    ScoringSettings,
    Selection,
    Weights,
)
from condsim_contexts.tokens import EncoderUnits, ItemBuilder, Items, Vocabulary, learn_vocabulary

__all__ = ["BAR", "OneByOne", "run"]

BAR = 20.0

# Sentences.
_DOCUMENT = 50
# The sentence that is scored has this number; sentences of the corpus have their rows'.
_SCORED = -2
# The tolerance suits a log-probability of about 9, in bfloat16 if supported.
_TOLERANCE = 0.02


class OneByOne(ContextTerms):
    """Terms of Eq. 3 by the same generators, one forward for each sentence and context."""

    def __init__(
        self,
        models: Mapping[GeneratorTask, ContextGenerator],
        vocabulary: Vocabulary,
        corpus: Corpus,
        settings: GeneratorSettings,
    ) -> None:
        """Take what a `GeneratorScorer` takes.

        Args:
            models: The model of each task.
            vocabulary: Their tokenizer.
            corpus: The corpus of the contexts.
            settings: What the models are.
        """
        self._models, self._vocabulary = models, vocabulary
        self._corpus, self._settings = corpus, settings

    def terms(
        self, sentences: Sequence[str], centers: Sequence[IntArray], names: Sequence[str]
    ) -> list[dict[str, FloatArray]]:
        """Compute terms; see `condsim_contexts.equations.ContextTerms.terms`.

        Args:
            sentences: Sentences, length m.
            centers: The contexts of each, m arrays.
            names: Which terms.

        Returns:
            For each sentence the terms by name.
        """
        return [
            {
                task: np.array(
                    [self._term(task, sentence, center) for center in of_one], np.float32
                )
                for task in GENERATOR_TASKS
                if task in names
            }
            for sentence, of_one in zip(sentences, centers, strict=True)
        ]

    def _term(self, task: GeneratorTask, sentence: str, center: int) -> float:
        """One forward of the backbone; NaN where there is nothing to generate."""
        settings = self._settings
        ids = np.array([center])
        around = self._corpus.neighbors(ids, left=settings.left, right=settings.right)[0]
        known = around[around >= 0]
        texts = self._vocabulary.encode([*self._corpus.sentences(known), sentence])
        tokens = [one[: settings.max_tokens - 1] for one in texts]
        numbered = dict(zip([*known.tolist(), _SCORED], tokens, strict=True))
        builder = ItemBuilder(numbered, settings, self._vocabulary)
        if not builder.add(task, _SCORED, around.tolist()):
            return float("nan")
        with torch.inference_mode():
            return float(token_scores(self._models[task], builder.units, builder.items).mean())


def token_scores(model: ContextGenerator, units: EncoderUnits, items: Items) -> torch.Tensor:
    """Score the first item's target tokens by the backbone's own forward pass.

    Args:
        model: The generator.
        units: The units of the items.
        items: Items, of which the first is scored.

    Returns:
        Log-probabilities, ``(t,)``.
    """
    backbone, target = model.backbone, torch.from_numpy(items.targets[0])
    embed, encoder = backbone.get_input_embeddings(), backbone.get_encoder()
    states = []
    for unit in items.units[0]:
        places = model.places[torch.from_numpy(units.places[unit])]
        inputs = embed(torch.from_numpy(units.tokens[unit])) + places
        states.append(encoder(inputs_embeds=inputs[None]).last_hidden_state)
    start = torch.tensor([model._start])
    embedded = embed(torch.cat([start, target[:-1]]))
    embedded = torch.cat([embedded[:1] + model.tasks[items.tasks[0]], embedded[1:]])
    memory = torch.cat(states, dim=1)
    out = backbone(
        encoder_outputs=(memory,),
        decoder_inputs_embeds=embedded[None],
        use_cache=False,
        output_hidden_states=True,
    )
    scores: torch.Tensor = out.logits[0].float().log_softmax(dim=-1)
    scores = scores.gather(1, target[:, None])[:, 0]
    if model.copy is not None:
        tokens = torch.from_numpy(np.concatenate([units.tokens[u] for u in items.units[0]]))
        copies = model.copy(
            out.decoder_hidden_states[-1],
            model.copy.key(memory),
            tokens[None],
            torch.ones_like(tokens[None], dtype=torch.bool),
            target[None],
        )
        scores = Copies(copies.own[0], copies.copied[0]).mixed(scores)
    return scores


def run(*, quick: bool) -> list[Result]:
    """Score pairs with untrained generators, which take as long as trained ones.

    Args:
        quick: Whether to take 20 contexts of a sentence rather than 100, and few pairs.

    Returns:
        One result.

    Raises:
        AssertionError: If the two sides do not give the same scores.
    """
    torch.set_num_threads(usable_cores())
    selection = Selection(size=20 if quick else 100, chunks=1_000, candidates=2)
    count, compared = (8, 1) if quick else (32, 1)
    settings = GeneratorSettings(size="tiny")
    with tempfile.TemporaryDirectory(prefix="condsim-bench-") as name:
        corpus, origin = _corpus(Path(name), rows=2_000 if quick else 20_000)
        index = TfidfIndex.build(
            corpus.chunk_texts(), Path(name, "index"), revision=corpus.revision
        )
        models, vocabulary = _generators(corpus, Path(name), settings)
        pairs = _pairs(corpus, count)
        generators = GeneratorScorer(models, vocabulary, corpus, settings)
        ours = _origin(corpus, index, ContextTerms(None, generators), selection)
        one_by_one = OneByOne(models, vocabulary, corpus, settings)
        theirs = _origin(corpus, index, one_by_one, selection)
        # The first run warms up.
        _timed(ours, pairs[:1])
        our_terms, our_seconds = _timed(ours, pairs)
        their_terms, their_seconds = _timed(theirs, pairs[:compared])
    apart = _apart(our_terms[:compared], their_terms)
    assert apart < _TOLERANCE, f"log-probabilities differ by {apart}"
    rates = count / our_seconds, compared / their_seconds
    return [
        Result(
            benchmark="contexts_origin",
            measured=f"origin scores, |C_s| = {selection.size}, three tiny generators",
            peer=f"each (sentence, context) by itself, {version_of('torch')}",
            unit="pairs/s",
            ours=rates[0],
            theirs=rates[1],
            ratio=rates[0] / rates[1],
            bar=BAR,
            notes=(
                f"{len(corpus):,} of {origin}; ours the mean of {count} pairs, theirs of "
                f"{compared} of them; the same contexts and models on both sides, no term of "
                f"coherence, no centering; log-probabilities are {apart:.4f} apart",
            ),
        )
    ]


def _corpus(folder: Path, *, rows: int) -> tuple[Corpus, str]:
    """The first sentences there are, as documents of 50."""
    texts, origin = sentences()
    blocks = [texts[first : first + _DOCUMENT] for first in range(0, rows, _DOCUMENT)]
    text = folder / "text.txt"
    text.write_text("\n\n".join("\n".join(block) for block in blocks) + "\n", encoding="utf-8")
    return prepare_corpus([text], folder / "corpus"), origin


def _generators(
    corpus: Corpus, folder: Path, settings: GeneratorSettings
) -> tuple[dict[GeneratorTask, ContextGenerator], Vocabulary]:
    """Three generators of random weights, in the number format that trained ones score in."""
    vocabulary = learn_vocabulary(corpus, folder / "vocabulary")
    kind = torch.bfloat16 if uses_bfloat16("auto") else torch.float32
    models = {task: new_generator(settings, vocabulary).to(kind).eval() for task in GENERATOR_TASKS}
    return models, vocabulary


def _pairs(corpus: Corpus, count: int) -> list[tuple[str, str]]:
    drawn = np.random.default_rng(0).choice(len(corpus), size=2 * count, replace=False)
    texts = corpus.sentences(drawn)
    return list(zip(texts[:count], texts[count:], strict=True))


def _origin(
    corpus: Corpus, index: TfidfIndex, terms: ContextTerms | OneByOne, selection: Selection
) -> OriginScorer:
    scoring = ScoringSettings(weights=Weights(coherence=0), center="none")
    return OriginScorer(corpus, index, terms, scoring=scoring, selection=selection)


def _timed(origin: OriginScorer, pairs: Sequence[tuple[str, str]]) -> tuple[list[PairTerms], float]:
    """The terms of the pairs, which a score is the cosine of, and the seconds they took."""
    first, second = zip(*pairs, strict=True)
    started = time.perf_counter()
    terms = list(origin.pair_terms(first, second))
    return terms, time.perf_counter() - started


def _apart(ours: Sequence[PairTerms], theirs: Sequence[PairTerms]) -> float:
    """The mean difference of the terms, sorted: rounding may change the order of contexts."""
    return float(
        np.mean(
            [
                np.nanmean(np.abs(np.sort(one[name]) - np.sort(other[name])))
                for pair, peer in zip(ours, theirs, strict=True)
                for one, other in ((pair.first, peer.first), (pair.second, peer.second))
                for name in one
            ]
        )
    )
