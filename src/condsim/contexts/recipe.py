"""A recipe: all that decides a run from raw text to a surrogate, in one YAML file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from condsim.config import Settings, override, read_mapping, validated, write_mapping
from condsim.contexts.corpus.vocabulary import SPECIAL_TOKENS
from condsim.contexts.harvest.stored import HarvestSettings
from condsim.contexts.scoring.equations import ScoringSettings
from condsim.contexts.scoring.selection import Selection
from condsim.contexts.settings import CoherenceSettings, CorpusSettings, GeneratorSettings
from condsim.errors import InputError

_HEAD = 64  # units of an attention head
_SCORED_BY = ("vocabulary", "index", "coherence", "generators", "selection", "scoring")

SPEED_KEYS = ("batch_size", "memory_gb")
"""Keys of the section ``scoring`` that decide memory and speed, not the scores."""


class VocabularySettings(Settings):
    """The tokenizer of the corpus."""

    what = "vocabulary"

    # Entries: at least the special tokens and one for each byte.
    size: Annotated[int, Field(ge=len(SPECIAL_TOKENS) + 256, le=1_000_000)] = 8_000
    lowercase: bool = True  # whether case is ignored


class IndexSettings(Settings):
    """The TF-IDF index."""

    what = "index"

    min_df: Annotated[int, Field(ge=1)] = 2  # fewest chunks of a term


class SurrogateSettings(Settings):
    """The encoder that learns the harvested scores (SSBC §3.4, §5.6)."""

    what = "surrogate"

    encoder: Literal["bi-encoder", "cross-encoder"] = "bi-encoder"  # Siamese, or BERT-style
    # Hub name or folder to start from; None for a small Transformer from scratch with the tokenizer
    # of the corpus.
    backbone: str | None = None
    width: Annotated[int, Field(ge=1)] = 256  # of the states when from scratch
    layers: Annotated[int, Field(ge=1)] = 4  # when from scratch
    # What token embeddings start as when from scratch; of the corpus, tokens of similar company
    # have similar vectors.
    embeddings: Literal["corpus", "random"] = "corpus"
    # Keys of the training recipe to set (`condsim.training.recipe.Recipe`), such as `epochs`.
    train: dict[str, Any] = Field(default_factory=dict)

    @property
    def heads(self) -> int:
        """Attention heads when from scratch: of 64 units, or of more where the width needs it."""
        most = max(1, self.width // _HEAD)
        return next(heads for heads in range(most, 0, -1) if self.width % heads == 0)


class ContextsRecipe(Settings):
    """One run of the whole pipeline; the keys of a recipe file."""

    what = "contexts recipe"

    name: str  # name of the models, shown in tables
    inputs: list[str]  # files and folders of text, relative to the working directory
    corpus: CorpusSettings = CorpusSettings()  # how text becomes sentences
    vocabulary: VocabularySettings = VocabularySettings()
    index: IndexSettings = IndexSettings()
    coherence: CoherenceSettings = CoherenceSettings()
    generators: GeneratorSettings = GeneratorSettings()
    selection: Selection = Selection()  # how context sets are made
    scoring: ScoringSettings = ScoringSettings()  # the origin score
    harvest: HarvestSettings = HarvestSettings()  # the scored pairs
    surrogate: SurrogateSettings = SurrogateSettings()  # the encoder that learns from them

    @model_validator(mode="after")
    def _fits_together(self) -> ContextsRecipe:
        if not self.inputs:
            raise InputError("A recipe of contexts needs 'inputs': one file of text or more.")
        if self.generators.kind == "counts" and self.generators.backbone is not None:
            raise InputError(
                "Generators of the kind 'counts' are not trained and take no 'backbone'. Got "
                f"{self.generators.backbone!r}; leave it out, or set 'kind: trained'."
            )
        if self.generators.kind == "translation" and self.generators.backbone is None:
            raise InputError(
                "Generators of the kind 'translation' need a 'backbone': the encoder that reads, "
                "such as sentence-transformers/all-MiniLM-L6-v2."
            )
        coherence = (self.coherence.left, self.coherence.right)
        generators = (self.generators.left, self.generators.right)
        if coherence != generators:
            raise InputError(
                "The coherence model and the generators must see contexts of the same width. Got "
                f"{coherence} and {generators} sentences to the left and right."
            )
        return self

    @property
    def scored_by(self) -> dict[str, Any]:
        """All that decides an origin score, apart from the corpus, as plain values by section."""
        plain = self.model_dump(include=set(_SCORED_BY))
        for key in SPEED_KEYS:
            del plain["scoring"][key]
        return plain


def load_contexts_recipe(path: Path, *, overrides: Sequence[str] = ()) -> ContextsRecipe:
    """Reads a recipe and changes single keys of it.

    Args:
        path: A YAML file: the fields of :class:`ContextsRecipe`, sections as mappings.
        overrides: Texts such as ``"selection.size=100"``; values are YAML.

    Raises:
        InputError: If the file cannot be read, a key is unknown or missing, or a value is wrong.
    """
    values = read_mapping(path, what="contexts recipe")
    for text in overrides:
        override(values, text)
    return validated(ContextsRecipe, values, what="contexts recipe", source=str(path))


def save_contexts_recipe(recipe: ContextsRecipe, path: Path) -> None:
    """Writes a recipe so that :func:`load_contexts_recipe` gives an equal one."""
    write_mapping(recipe.model_dump(), path)
