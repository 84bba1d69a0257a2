"""Similarity from contexts: from raw text to an encoder, with no labels.

Two sentences are alike when the same contexts generate both (Sun et al., 2022). From a pile of
documents to a similarity model:

1. ``corpus``: documents to sentences in order, on disk, and their tokenizer.
2. ``coherence``: which sentence fits between which neighbours (§3.2.1).
3. ``generator``: how probable a sentence is in a context, and the context given it (§3.2.2).
4. ``index``: the text chunks that share words with a sentence (§3.3).
5. ``scoring``: contexts of a sentence, and the similarity of two (Eq. 3 and 4).
6. ``harvest``, ``surrogate``: scored pairs, and the encoder that learns from them (§3.4).

``run`` makes these stages in the folders of a run, ``opened`` uses a finished run as a model.

Everything here needs ``pip install 'condsim[contexts]'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.contexts.coherence import (
        CoherenceReport as CoherenceReport,
        CoherenceScorer as CoherenceScorer,
    )
    from condsim.contexts.corpus import (
        Corpus as Corpus,
        CorpusTokens as CorpusTokens,
        find_inputs as find_inputs,
        learn_vocabulary as learn_vocabulary,
        prepare_corpus as prepare_corpus,
    )
    from condsim.contexts.generator import (
        GENERATOR_TASKS as GENERATOR_TASKS,
        GeneratorReport as GeneratorReport,
        GeneratorScorer as GeneratorScorer,
        GeneratorSettings as GeneratorSettings,
        new_generator as new_generator,
    )
    from condsim.contexts.harvest import FORMAT as FORMAT, Engine as Engine, RayEngine as RayEngine
    from condsim.contexts.index import TfidfIndex as TfidfIndex
    from condsim.contexts.opened import (
        COHERENCE as COHERENCE,
        CORPUS as CORPUS,
        GENERATORS as GENERATORS,
        HARVEST as HARVEST,
        INDEX as INDEX,
        RECIPE as RECIPE,
        SURROGATE as SURROGATE,
        VOCABULARY as VOCABULARY,
        OpenedRun as OpenedRun,
        open_pipeline as open_pipeline,
    )
    from condsim.contexts.recipe import (
        SPEED_KEYS as SPEED_KEYS,
        ContextsRecipe as ContextsRecipe,
        SurrogateSettings as SurrogateSettings,
        load_contexts_recipe as load_contexts_recipe,
        save_contexts_recipe as save_contexts_recipe,
    )
    from condsim.contexts.run import STAGES as STAGES, Pipeline as Pipeline, Stage as Stage
    from condsim.contexts.scoring import (
        TOKENS as TOKENS,
        Center as Center,
        ContextTerms as ContextTerms,
        Cost as Cost,
        OriginScorer as OriginScorer,
        PairTerms as PairTerms,
        Selection as Selection,
        Weights as Weights,
        cost_of as cost_of,
        expected_distinct as expected_distinct,
        similarity as similarity,
    )
    from condsim.contexts.surrogate import (
        MAX_TOKENS as MAX_TOKENS,
        new_backbone as new_backbone,
        surrogate_recipe as surrogate_recipe,
        token_vectors as token_vectors,
        write_training_pairs as write_training_pairs,
    )
    from condsim.contexts.weights import REPORT as REPORT

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "coherence": "CoherenceReport CoherenceScorer",
        "corpus": "Corpus CorpusTokens find_inputs learn_vocabulary prepare_corpus",
        "generator": (
            "GENERATOR_TASKS GeneratorReport GeneratorScorer GeneratorSettings new_generator"
        ),
        "harvest": "Engine FORMAT RayEngine",
        "index": "TfidfIndex",
        "opened": (
            "COHERENCE CORPUS GENERATORS HARVEST INDEX OpenedRun RECIPE SURROGATE VOCABULARY "
            "open_pipeline"
        ),
        "recipe": (
            "ContextsRecipe SPEED_KEYS SurrogateSettings load_contexts_recipe save_contexts_recipe"
        ),
        "run": "Pipeline STAGES Stage",
        "scoring": (
            "Center ContextTerms Cost OriginScorer PairTerms Selection TOKENS Weights cost_of "
            "expected_distinct similarity"
        ),
        "surrogate": "MAX_TOKENS new_backbone surrogate_recipe token_vectors write_training_pairs",
        "weights": "REPORT",
    },
    extra="contexts",
)
