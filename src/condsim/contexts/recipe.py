"""A recipe: everything that decides a run from raw text to a surrogate, typed, in one YAML file."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from condsim.contexts.coherence import CoherenceSettings
from condsim.contexts.corpus import SPECIAL_TOKENS, CorpusSettings
from condsim.contexts.generator import GeneratorSettings
from condsim.contexts.harvest import HarvestSettings
from condsim.contexts.ranges import at_least, check_ranges
from condsim.contexts.scoring import Selection, Weights
from condsim.errors import InputError
from condsim.settings import override, read_mapping, typed, write_mapping

_LEAST_SIZE = len(SPECIAL_TOKENS) + 256  # as `learn_vocabulary` has it
_HEAD = 64  # units of an attention head


@dataclass(frozen=True)
class VocabularySettings:
    """The tokenizer of the corpus.

    Attributes:
        size: Entries.
        lowercase: Whether capitals do not count.
    """

    size: int = 8_000
    lowercase: bool = True

    def __post_init__(self) -> None:
        """Checks the size."""
        check_ranges("vocabulary", self, size=at_least(_LEAST_SIZE))


@dataclass(frozen=True)
class IndexSettings:
    """The TF-IDF index.

    Attributes:
        min_df: Fewest chunks of a term.
    """

    min_df: int = 2

    def __post_init__(self) -> None:
        """Checks the number."""
        check_ranges("index", self, min_df=at_least(1))


@dataclass(frozen=True)
class ScoringSettings:
    """The origin score.

    Attributes:
        center: What is taken off the scores (`condsim.contexts.scoring.equations.Center`).
        references: Contexts that a sentence's mean is taken over, or sentences that a context's is.
        weights: λ1 to λ4 of Eq. 3.
        batch_size: Pairs scored together; decides memory and speed, not the scores.
        memory_gb: Gigabytes of encoder states that are kept for contexts that come up again;
            likewise.
    """

    center: Literal["none", "context", "pmi"] = "pmi"
    references: int = 8
    weights: Weights = field(default_factory=Weights)
    batch_size: int = 64
    memory_gb: float = 2.0

    def __post_init__(self) -> None:
        """Checks the numbers."""
        least = {"references": 1, "batch_size": 1, "memory_gb": 0}
        check_ranges("scoring", self, **{key: at_least(low) for key, low in least.items()})


@dataclass(frozen=True)
class SurrogateSettings:
    """The encoder that learns the harvested scores (SSBC §3.4, §5.6).

    Attributes:
        encoder: ``bi-encoder``: the Siamese structure; ``cross-encoder``: the BERT-style one.
        backbone: Hub name or folder to start from; None for a small Transformer from scratch with
            the tokenizer of the corpus.
        width: Size of the states when from scratch.
        layers: Layers when from scratch.
        embeddings: What token embeddings start as when from scratch: ``corpus``, which tokens of
            like company share (`condsim.contexts.surrogate`), or ``random``.
        train: Keys of the training recipe to set (`condsim.training.recipe`), such as ``epochs``.
    """

    encoder: Literal["bi-encoder", "cross-encoder"] = "bi-encoder"
    backbone: str | None = None
    width: int = 256
    layers: int = 4
    embeddings: Literal["corpus", "random"] = "corpus"
    train: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Checks the numbers."""
        check_ranges("surrogate", self, width=at_least(1), layers=at_least(1))

    @property
    def heads(self) -> int:
        """Attention heads when from scratch: of 64 units, or of more where the width needs it."""
        most = max(1, self.width // _HEAD)
        return next(heads for heads in range(most, 0, -1) if self.width % heads == 0)


@dataclass(frozen=True)
class ContextsRecipe:
    """One run of the whole pipeline.

    Attributes:
        name: Name of the models, shown in tables.
        inputs: Files and folders of text, relative to the working directory.
        corpus: How text becomes sentences.
        vocabulary: The tokenizer.
        index: The index.
        coherence: The coherence model.
        generators: The three generators.
        selection: How context sets are made.
        scoring: The origin score.
        harvest: The scored pairs.
        surrogate: The encoder that learns from them.
    """

    name: str
    inputs: list[str]
    corpus: CorpusSettings = field(default_factory=CorpusSettings)
    vocabulary: VocabularySettings = field(default_factory=VocabularySettings)
    index: IndexSettings = field(default_factory=IndexSettings)
    coherence: CoherenceSettings = field(default_factory=CoherenceSettings)
    generators: GeneratorSettings = field(default_factory=GeneratorSettings)
    selection: Selection = field(default_factory=Selection)
    scoring: ScoringSettings = field(default_factory=ScoringSettings)
    harvest: HarvestSettings = field(default_factory=HarvestSettings)
    surrogate: SurrogateSettings = field(default_factory=SurrogateSettings)

    def __post_init__(self) -> None:
        """Checks what goes together."""
        if not self.inputs:
            raise InputError("A recipe of contexts needs 'inputs': one file of text or more.")
        coherence = (self.coherence.left, self.coherence.right)
        generators = (self.generators.left, self.generators.right)
        if coherence != generators:
            raise InputError(
                "The coherence model and the generators must see contexts of the same width. Got "
                f"{coherence} and {generators} sentences to the left and right."
            )


def load_contexts_recipe(path: Path, *, overrides: Sequence[str] = ()) -> ContextsRecipe:
    """Reads a recipe and changes single keys of it.

    Args:
        path: A YAML file: the fields of :class:`ContextsRecipe`, sections as mappings.
        overrides: Texts such as ``"selection.size=100"``; values are YAML.

    Returns:
        The checked recipe.

    Raises:
        InputError: If the file cannot be read, a key is unknown or missing, or a value is wrong.
    """
    values = read_mapping(path, what="contexts recipe")
    for text in overrides:
        override(values, text)
    return typed(ContextsRecipe, values, what="contexts recipe", source=str(path))


def save_contexts_recipe(recipe: ContextsRecipe, path: Path) -> None:
    """Writes a recipe so that :func:`load_contexts_recipe` gives an equal one.

    Args:
        recipe: The recipe.
        path: The YAML file to write.
    """
    write_mapping(dataclasses.asdict(recipe), path)
