"""Settings of the corpus, the coherence model and the generators; none of it needs torch."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, model_validator

from condsim.config import Settings
from condsim.errors import InputError

REASONS = ("too_short", "too_long", "near_duplicate", "not_text")  # to drop a sentence
HOW_TO_SPLIT = (  # a text into documents, for errors
    "a blank line ends a document of a text file, a line '= Title =' begins one, and with "
    "'corpus.documents: file' each file is one"
)


class CorpusSettings(Settings):
    """What decides how a corpus comes out, beside its input files."""

    what = "corpus"

    language: str = "en"  # ISO 639 code, for the sentence splitter
    # Sentences in a chunk; the last chunk of a document may be shorter.
    chunk_sentences: Annotated[int, Field(ge=1)] = 10
    min_words: Annotated[int, Field(ge=1)] = 3  # of a sentence, as white space separates them
    max_words: Annotated[int, Field(ge=1)] = 60  # likewise
    # Take documents in an order shuffled by `seed` until they have this many words, as read; None
    # for all. A smaller corpus holds a part of a larger one's documents.
    max_words_total: Annotated[int, Field(ge=1)] | None = None
    seed: Annotated[int, Field(ge=0)] = 0
    # What a document of a text file is; `blank-line`: documents are separated by blank lines, or
    # begin at title lines `= Title =` alone where a file has some.
    documents: Literal["blank-line", "file"] = "blank-line"
    text_field: str = "text"  # name of the text in JSONL and Parquet
    caption_field: str = "caption"  # name of the column of TSV that holds one sentence a row

    @model_validator(mode="after")
    def _fits_together(self) -> CorpusSettings:
        if not re.fullmatch(r"[a-z]{2,3}", self.language):
            raise InputError(
                "The 'language' of a corpus must be a code of two or three letters, such as 'en'. "
                f"Got {self.language!r}."
            )
        if self.min_words > self.max_words:
            raise InputError(
                "'min_words' must be no more than 'max_words'. "
                f"Got {self.min_words} and {self.max_words}."
            )
        return self


@dataclass
class CorpusCounts:
    """What a corpus holds and what was left out of it."""

    documents: int = 0  # with at least one sentence
    chunks: int = 0
    sentences: int = 0
    words: int = 0
    single_sentence_documents: int = 0
    documents_read: int = 0  # taken of the input files
    documents_left: int = 0  # not taken because of max_words_total
    dropped: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REASONS, 0))

    def summary(self) -> str:
        """Says in one line what there is and how much was left out."""
        dropped = ", ".join(
            f"{number:,} {reason.replace('_', ' ')}" for reason, number in self.dropped.items()
        )
        return (
            f"corpus: {self.documents:,} documents, {self.sentences:,} sentences, {self.words:,} "
            f"words; dropped: {dropped}; {self.single_sentence_documents:,} documents of one "
            "sentence, whose contexts are empty"
        )


Head = Literal["linear", "mlp"]
AtLeast1 = Annotated[int, Field(ge=1)]
AtLeast2 = Annotated[int, Field(ge=2)]


class CoherenceSettings(Settings):
    """What the coherence model is and how it is trained.

    The head ``linear`` is Eq. 1 as printed, a sum in which the sentence and the context never meet:
    it ranks contexts the same for every sentence. ``mlp`` has one hidden layer.
    """

    what = "coherence"

    head: Head = "mlp"
    left: Annotated[int, Field(ge=0)] = 2  # sentences before the centre
    right: Annotated[int, Field(ge=0)] = 2  # sentences after it
    embedding: AtLeast1 = 300  # size of a token embedding
    hidden: AtLeast1 = 300  # LSTM units in each direction, as in the paper
    head_size: AtLeast1 = 300  # hidden units of the `mlp` head
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.2  # of token embeddings and sentence vectors
    max_tokens: AtLeast1 = 64  # read of a sentence
    run_sentences: AtLeast2 = 128  # consecutive ones trained on, and replaced, together
    batch_sentences: AtLeast2 = 512  # about
    epochs: AtLeast1 = 4
    max_steps: AtLeast1 | None = None
    learning_rate: Annotated[float, Field(gt=0)] = 2e-3  # its peak
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.05  # share of the steps over which it rises
    weight_decay: Annotated[float, Field(ge=0)] = 0.01  # AdamW's, on matrices only
    evaluations: AtLeast1 = 8  # of held-out accuracy, in all
    patience: AtLeast1 = 3  # evaluations without a better one before training ends
    held_out: Annotated[float, Field(gt=0, lt=1)] = 0.05  # share of documents not trained on
    held_out_sentences: AtLeast1 = 20_000  # of those, evaluated at most
    seed: Annotated[int, Field(ge=0)] = 0  # of everything drawn
    precision: Literal["auto", "float32", "bfloat16"] = "auto"  # of the products

    @model_validator(mode="after")
    def _has_context(self) -> CoherenceSettings:
        if self.left + self.right < 1:
            raise InputError(
                "A context needs a sentence on one side at least: 'left' and 'right' must not be "
                f"both 0. Got {self.left} and {self.right}."
            )
        return self


GeneratorTask = Literal["centre", "left", "right"]
"""What is generated: the sentence at the centre, or one side of its context."""
GENERATOR_TASKS: tuple[GeneratorTask, ...] = ("centre", "left", "right")

ALL = "all"
"""Name of the one model of all tasks."""

GeneratorKind = Literal["trained", "counts", "translation"]
Size = Literal["tiny", "small", "base", "large"]


class Shape(NamedTuple):
    """Sizes of a Transformer, and the peak learning rate that suits it."""

    width: int  # of embeddings and states
    layers: int  # of the encoder, and of the decoder
    inner: int  # units of a feed-forward layer
    heads: int  # of 64 units each
    learning_rate: float


SHAPES: dict[Size, Shape] = {
    "tiny": Shape(128, 2, 512, 2, 2e-3),
    "small": Shape(256, 4, 1024, 4, 1e-3),
    "base": Shape(512, 6, 2048, 8, 7e-4),
    "large": Shape(1024, 6, 4096, 16, 3e-4),  # Transformer-large of Vaswani et al. (2017), Table 3
}
_PRETRAINED_LEARNING_RATE = 1e-4
_NUMBERS_LEARNING_RATE = 0.05  # of eight numbers

# The key 'copy' of recipes hides a deprecated method of pydantic, which warns of that.
warnings.filterwarnings("ignore", 'Field name "copy" in "GeneratorSettings"', UserWarning)


class GeneratorSettings(Settings):
    """What the generators are and how they are trained.

    `condsim.contexts.generator.model` says what ``encoder`` and ``copy`` mean. Of the kinds
    ``counts`` and ``translation`` (the modules of these names) the Transformer's do not matter.
    """

    what = "generators"

    kind: GeneratorKind = "trained"  # counts: no training, the floor of any trained
    share: Annotated[float, Field(gt=0, lt=1)] = 0.5  # of the context in `counts`
    size: Size = "tiny"  # when trained from scratch
    # A pre-trained encoder-decoder to start from instead, which brings its own tokenizer; of the
    # kind `translation` the encoder that reads.
    backbone: str | None = None
    models: Literal["three", "one"] = "three"  # one a task, or one for all with a task marker
    encoder: Literal["apart", "joint"] = "apart"  # how given sentences are encoded
    copy: bool = True  # type: ignore[assignment]  # whether a target may copy given tokens
    left: AtLeast1 = 2  # sentences before the centre
    right: AtLeast1 = 2  # sentences after it
    max_tokens: Annotated[int, Field(ge=2)] = 64  # of a sentence, the end token too
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1  # of the Transformer from scratch
    batch_tokens: AtLeast1 = 8_192  # given and generated, about
    epochs: AtLeast1 = 3
    max_steps: AtLeast1 | None = None  # of each model
    learning_rate: Annotated[float, Field(gt=0)] | None = None  # its peak; None suits the size
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.05  # share of the steps over which it rises
    weight_decay: Annotated[float, Field(ge=0)] = 0.01  # AdamW's
    evaluations: AtLeast1 = 6  # of the held-out part, in all
    patience: AtLeast1 = 3  # evaluations without a better one before training ends
    held_out: Annotated[float, Field(gt=0, lt=1)] = 0.05  # share of documents not trained on
    held_out_examples: AtLeast1 = 1_000  # centres of those, evaluated
    seed: Annotated[int, Field(ge=0)] = 0  # of everything drawn
    precision: Literal["auto", "float32", "bfloat16"] = "auto"  # of the products

    @property
    def peak(self) -> float:
        """Peak of the learning rate."""
        if self.learning_rate is not None:
            return self.learning_rate
        if self.kind == "translation":
            return _NUMBERS_LEARNING_RATE
        return _PRETRAINED_LEARNING_RATE if self.backbone else SHAPES[self.size].learning_rate

    def models_for(
        self, tasks: Collection[str] = GENERATOR_TASKS
    ) -> dict[str, tuple[GeneratorTask, ...]]:
        """The tasks of each model that is needed for some, by the name of the model's folder."""
        if self.models == "one" or self.kind != "trained":
            return {ALL: GENERATOR_TASKS}
        return {task: (task,) for task in GENERATOR_TASKS if task in tasks}

    @property
    def places(self) -> int:
        """Sentences of a context and its centre."""
        return self.left + 1 + self.right

    @property
    def positions(self) -> int:
        """Longest input or target, in tokens."""
        sentences = self.places if self.encoder == "joint" else max(self.left, self.right)
        return sentences * self.max_tokens
