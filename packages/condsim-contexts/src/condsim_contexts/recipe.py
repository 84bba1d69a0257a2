"""Recipe of a run from raw text to a surrogate: all settings, in one YAML file; needs no torch.

``docs/contexts-recipe.md`` has a table of each section; comments here say what it does not.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, model_validator

from condsim.config import Settings, override, read_mapping, validated, write_mapping
from condsim.errors import InputError
from condsim.model.settings import CONTEXTS_FILE

# Files and folders of a run; each stage has a folder.
RECIPE = CONTEXTS_FILE
CORPUS = "corpus"
VOCABULARY = "vocabulary"
INDEX = "index"
COHERENCE = "coherence"
GENERATORS = "generators"
HARVEST = "harvest"
SURROGATE = "surrogate"

# Files of a trained model; the report is written last.
MODEL = "model.safetensors"
REPORT = "report.json"

SPECIAL_TOKENS = ("<pad>", "<s>", "</s>", "<mask>", "<sep>")
"""Special tokens of a learned vocabulary, which come first in it."""

SPEED_KEYS = ("batch_size", "memory_gb")
"""Keys of the section ``scoring`` that decide memory and speed, not the scores."""

# The special tokens and one entry for each byte.
_MIN_VOCABULARY_SIZE = len(SPECIAL_TOKENS) + 256
_SCORED_BY = ("vocabulary", "index", "coherence", "generators", "selection", "scoring")

AtLeast0 = Annotated[int, Field(ge=0)]
AtLeast1 = Annotated[int, Field(ge=1)]
AtLeast2 = Annotated[int, Field(ge=2)]
Above0 = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(gt=0, lt=1)]
ShareBelow1 = Annotated[float, Field(ge=0, lt=1)]


class CorpusSettings(Settings):
    """Rules by which input files become sentences, documents and chunks."""

    subject = "corpus"
    language: Annotated[str, Field(pattern=r"^[a-z]{2,3}$")] = "en"
    chunk_sentences: AtLeast1 = 10
    min_words: AtLeast1 = 3
    max_words: AtLeast1 = 60
    max_words_total: AtLeast1 | None = None
    seed: AtLeast0 = 0
    documents: Literal["blank-line", "file"] = "blank-line"
    text_field: str = "text"
    caption_field: str = "caption"


class VocabularySettings(Settings):
    """The tokenizer of the corpus."""

    subject = "vocabulary"
    size: Annotated[int, Field(ge=_MIN_VOCABULARY_SIZE, le=1_000_000)] = 8_000
    lowercase: bool = True


class IndexSettings(Settings):
    """The TF-IDF index."""

    subject = "index"
    min_df: AtLeast1 = 2


class TrainingSettings(Settings):
    """Settings that the coherence model and the generators share."""

    left: AtLeast0 = 2
    right: AtLeast0 = 2
    max_tokens: AtLeast2 = 64
    dropout: ShareBelow1 = 0.1
    epochs: AtLeast1 = 3
    max_steps: AtLeast1 | None = None
    warmup: ShareBelow1 = 0.05
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    evaluations: AtLeast1 = 6
    patience: AtLeast1 = 3
    held_out: Share = 0.05
    seed: AtLeast0 = 0
    precision: Literal["auto", "float32", "bfloat16"] = "auto"


Head = Literal["linear", "mlp"]


class CoherenceSettings(TrainingSettings):
    """The coherence model and its training.

    The head ``linear`` is Eq. 1 as printed, a sum in which the sentence and the context never meet:
    it ranks contexts the same for every sentence. ``mlp`` has one hidden layer.
    """

    subject = "coherence"
    head: Head = "mlp"
    embedding: AtLeast1 = 300
    hidden: AtLeast1 = 300
    head_size: AtLeast1 = 300
    max_tokens: AtLeast1 = 64
    dropout: ShareBelow1 = 0.2
    run_sentences: AtLeast2 = 128
    batch_sentences: AtLeast2 = 512
    epochs: AtLeast1 = 4
    learning_rate: Above0 = 2e-3
    evaluations: AtLeast1 = 8
    held_out_sentences: AtLeast1 = 20_000


GeneratorTask = Literal["center", "left", "right"]
"""Target of a generator: the sentence at the center, or one side of its context."""
GENERATOR_TASKS: tuple[GeneratorTask, ...] = ("center", "left", "right")

ALL = "all"
"""Name of the one model of all tasks."""

GeneratorKind = Literal["trained", "counts", "translation"]
Size = Literal["tiny", "small", "base", "large"]


class Shape(NamedTuple):
    """Sizes of a Transformer, and the peak learning rate that suits it."""

    width: int
    layers: int
    inner: int
    heads: int
    learning_rate: float


# `large` is Transformer-large of Vaswani et al. (2017), Table 3.
SHAPES: dict[Size, Shape] = {
    "tiny": Shape(128, 2, 512, 2, 2e-3),
    "small": Shape(256, 4, 1024, 4, 1e-3),
    "base": Shape(512, 6, 2048, 8, 7e-4),
    "large": Shape(1024, 6, 4096, 16, 3e-4),
}
_PRETRAINED_LEARNING_RATE = 1e-4
_TRANSLATION_LEARNING_RATE = 0.05

# The key 'copy' of recipes hides a deprecated method of pydantic, which warns of that.
warnings.filterwarnings("ignore", 'Field name "copy" in "GeneratorSettings"', UserWarning)


class GeneratorSettings(TrainingSettings):
    """The generators and their training.

    `condsim_contexts.generator` explains ``encoder`` and ``copy``. The kinds ``counts`` and
    ``translation`` ignore the settings of the Transformer.
    """

    subject = "generators"
    kind: GeneratorKind = "trained"
    share: Share = 0.5
    size: Size = "tiny"
    # A pre-trained encoder-decoder to start from instead, which brings its own tokenizer; for the
    # kind `translation` the frozen encoder.
    backbone: str | None = None
    models: Literal["three", "one"] = "three"
    encoder: Literal["apart", "joint"] = "apart"
    copy: bool = True  # type: ignore[assignment]
    left: AtLeast1 = 2
    right: AtLeast1 = 2
    batch_tokens: AtLeast1 = 8_192
    learning_rate: Above0 | None = None
    held_out_examples: AtLeast1 = 1_000

    @property
    def peak(self) -> float:
        """Peak of the learning rate."""
        if self.learning_rate is not None:
            return self.learning_rate
        if self.kind == "translation":
            return _TRANSLATION_LEARNING_RATE
        return _PRETRAINED_LEARNING_RATE if self.backbone else SHAPES[self.size].learning_rate

    def models_for(
        self, tasks: Collection[str] = GENERATOR_TASKS
    ) -> dict[str, tuple[GeneratorTask, ...]]:
        """Tasks of each model that the given tasks need, by the name of the model's folder."""
        if self.models == "one" or self.kind != "trained":
            return {ALL: GENERATOR_TASKS}
        return {task: (task,) for task in GENERATOR_TASKS if task in tasks}

    @property
    def places(self) -> int:
        """Number of sentences of a context and its center."""
        return self.left + 1 + self.right

    @property
    def positions(self) -> int:
        """Longest input or target, in tokens."""
        sentences = self.places if self.encoder == "joint" else max(self.left, self.right)
        return sentences * self.max_tokens


class Selection(Settings):
    """Rules by which the context set of a sentence is made."""

    subject = "selection"
    strategy: Literal["two-step", "random", "no-diversity"] = "two-step"
    size: AtLeast1 = 500
    chunks: AtLeast1 = 20_000
    # A multiple of `size`, spread evenly over the chunks because one of a chunk is chosen; 1 leaves
    # the choice to coherence.
    candidates: Annotated[float, Field(ge=1)] = 4.0
    likeness: Annotated[float, Field(gt=0, le=1)] = 0.5
    seed: AtLeast0 = 0


TERMS = ("coherence", "center", "left", "right")
"""The terms in the order of Eq. 3: log p(y=1 | s, c), and the log-probability per token of the
sentence given the context, of its left side given the rest, and of its right side given the rest.
"""


class Weights(Settings):
    """λ1 to λ4 of Eq. 3; the paper does not give them, so all are 1 unless they are tuned."""

    subject = "weights"
    coherence: float = 1.0
    center: float = 1.0
    left: float = 1.0
    right: float = 1.0

    @model_validator(mode="after")
    def _check_values(self) -> Weights:
        if min(self.values) < 0 or max(self.values) == 0:
            raise InputError(
                "The weights of Eq. 3 must be at least 0 and one of them above 0; got "
                f"{', '.join(f'{value:g}' for value in self.values)}."
            )
        return self

    @property
    def values(self) -> list[float]:
        """The weights in the order of `TERMS`."""
        return list(dict(self).values())

    @property
    def used(self) -> tuple[str, ...]:
        """The terms whose weight is not 0; the others are not computed."""
        return tuple(name for name, weight in self if weight > 0)


Center = Literal["none", "context", "pmi"]
"""Means that are subtracted from the scores of Eq. 3 before their cosine.

``none``: nothing, as Eq. 4 is printed. Log-probabilities are all negative, so cosines crowd near 1,
and a sentence that scores the same in every context is near all others. ``context``: each context's
mean over reference sentences. ``pmi``: each term minus its value without the other side:
log p(s | c) minus the sentence's mean over reference contexts, log p(c< | s, c>) minus the
context's mean over reference sentences. The rest is near the pointwise mutual information of
sentence and context, which is 0 where they are unrelated.
"""


class ScoringSettings(Settings):
    """The origin score (SSBC §3.3), and the speed at which it is computed."""

    subject = "scoring"
    center: Center = "pmi"
    references: AtLeast1 = 8
    weights: Weights = Weights()
    batch_size: AtLeast1 = 64
    memory_gb: Annotated[float, Field(ge=0)] = 2.0


PAIR_KINDS = ("tfidf", "document", "random")


class PairMix(Settings):
    """Shares of the three kinds of pairs, which add up to 1."""

    subject = "mix"
    tfidf: float = 0.4
    document: float = 0.3
    random: float = 0.3

    @model_validator(mode="after")
    def _check_sum(self) -> PairMix:
        if min(self.values) < 0 or abs(sum(self.values) - 1) > 1e-6:
            raise InputError(
                "The shares of pairs (tfidf, document, random) must be at least 0 and add up to "
                f"1; got {', '.join(f'{share:g}' for share in self.values)}."
            )
        return self

    @property
    def values(self) -> list[float]:
        """The shares in the order of `PAIR_KINDS`."""
        return list(dict(self).values())


class HarvestSettings(Settings):
    """Number and mix of the pairs that are scored."""

    subject = "harvest"
    pairs: AtLeast1 = 100_000
    shard_pairs: AtLeast1 = 1_000
    mix: PairMix = PairMix()
    seed: AtLeast0 = 0

    @property
    def shards(self) -> int:
        """Number of shards."""
        return -(-self.pairs // self.shard_pairs)

    def pairs_of(self, shard: int) -> int:
        """Number of pairs to draw for a shard."""
        return min(self.shard_pairs, self.pairs - shard * self.shard_pairs)


class SurrogateSettings(Settings):
    """The encoder that learns the harvested scores (SSBC §3.4, §5.6)."""

    subject = "surrogate"
    encoder: Literal["bi-encoder", "cross-encoder"] = "bi-encoder"
    backbone: str | None = None
    width: AtLeast1 = 256
    layers: AtLeast1 = 4
    embeddings: Literal["corpus", "random"] = "corpus"
    # Keys of the training recipe to set (`condsim.training.recipe.Recipe`), such as `epochs`.
    train: dict[str, Any] = Field(default_factory=dict)


class ContextsRecipe(Settings):
    """One run of the whole pipeline; the keys of a recipe file."""

    subject = "contexts recipe"
    name: str
    inputs: Annotated[list[str], Field(min_length=1)]
    corpus: CorpusSettings = CorpusSettings()
    vocabulary: VocabularySettings = VocabularySettings()
    index: IndexSettings = IndexSettings()
    coherence: CoherenceSettings = CoherenceSettings()
    generators: GeneratorSettings = GeneratorSettings()
    selection: Selection = Selection()
    scoring: ScoringSettings = ScoringSettings()
    harvest: HarvestSettings = HarvestSettings()
    surrogate: SurrogateSettings = SurrogateSettings()

    @model_validator(mode="after")
    def _check_sections(self) -> ContextsRecipe:
        kind = self.generators.kind
        has_backbone = self.generators.backbone is not None
        if kind != "trained" and has_backbone != (kind == "translation"):
            raise InputError(
                "Generators of the kind 'translation' need a 'backbone', an encoder such as "
                "sentence-transformers/all-MiniLM-L6-v2, and of the kind 'counts' none."
            )
        coherence = (self.coherence.left, self.coherence.right)
        generators = (self.generators.left, self.generators.right)
        if coherence != generators:
            raise InputError(
                "The coherence model and the generators must see contexts of the same width; got "
                f"{coherence} and {generators} sentences to the left and right."
            )
        return self

    @property
    def uses_coherence(self) -> bool:
        """True if the coherence model has a weight above 0."""
        return "coherence" in self.scoring.weights.used

    @property
    def uses_generators(self) -> bool:
        """True if a generator has a weight above 0."""
        return bool(set(self.scoring.weights.used) - {"coherence"})

    @property
    def scored_by(self) -> dict[str, Any]:
        """All settings that decide an origin score, except the corpus, as plain values."""
        plain = self.model_dump(include=set(_SCORED_BY))
        for key in SPEED_KEYS:
            del plain["scoring"][key]
        return plain


def load_contexts_recipe(path: Path, *, overrides: Sequence[str] = ()) -> ContextsRecipe:
    """Read a recipe, with single keys changed by texts such as ``"selection.size=100"``."""
    values = read_mapping(path, subject="contexts recipe")
    for text in overrides:
        override(values, text)
    return validated(ContextsRecipe, values, subject="contexts recipe", source=str(path))


def save_contexts_recipe(recipe: ContextsRecipe, path: Path) -> None:
    """Write a recipe that :func:`load_contexts_recipe` reads back as an equal one."""
    write_mapping(recipe.model_dump(), path)
