"""Baselines of the papers' tables: averaged GloVe, BERTScore, and TF-IDF with the idf of a corpus.

"Avg. GloVe embeddings" of Reimers and Gurevych (2019, Table 1), which SSBC (Table 2) takes over:
the words are as in sentence-transformers' ``WhitespaceTokenizer``, its stop words left out, and
the vectors are averaged by its own modules. Only the file is read here: its reader skips bad lines
without an error, stores numbers in double precision, and downloads a missing file.

BERTScore (Zhang et al., 2020) is F1 of the greedy matching of token vectors by cosine, as the
package ``bert-score`` has it, without idf and rescaling, which change no order or hardly any.

Importing this module adds the prefixes ``glove:`` and ``bertscore:`` to `condsim.loading.PREFIXES`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from condsim.data.files import text_lines
from condsim.errors import InputError, ModelError, require
from condsim.loading import PREFIXES
from condsim.model.base import check_rows
from condsim.model.baselines import TfIdfCosineScorer, tokens_of
from condsim.model.torch import EncoderScorer
from condsim.types import FloatArray

if TYPE_CHECKING:
    from condsim_contexts import Corpus

_SENTENCES_PER_READ = 8192
# The tokenizer gives words their rows; row 0 pads.
_PADDING = "[PAD]"


class GloveScorer(EncoderScorer):
    """Cosine of the averaged word vectors of the two sentences; blind to the condition."""

    texts_per_batch = 256

    def __init__(self, path: Path | str) -> None:
        """Read the vectors, see `read_vectors`."""
        library = require("sentence_transformers", extra="train")
        from sentence_transformers.sentence_transformer.modules import Pooling, WordEmbeddings
        from sentence_transformers.sentence_transformer.modules.tokenizer import WhitespaceTokenizer

        path = Path(path)
        words, vectors = read_vectors(path)
        padded = np.concatenate([np.zeros((1, vectors.shape[1]), np.float32), vectors])
        embeddings = WordEmbeddings(WhitespaceTokenizer([_PADDING, *words]), padded)
        pooling = Pooling(vectors.shape[1], pooling_mode="mean")
        super().__init__(
            library.SentenceTransformer(modules=[embeddings, pooling], device="cpu"),
            name=f"glove:{path.name}",
        )

    def _embed(self, texts: list[str] | list[list[str]]) -> FloatArray:
        """Embed the sentences without conditions; a sentence without a known word is 0."""
        return super()._embed([text if isinstance(text, str) else text[1] for text in texts])


def read_vectors(path: Path) -> tuple[list[str], FloatArray]:
    """Read word vectors as text: the words, each once, and the vectors, ``(words, dimension)``."""
    dimension = 0
    vectors: dict[str, FloatArray] = {}
    for number, line in enumerate(text_lines(path), start=1):
        fields = line.rstrip("\r\n ").split(" ")
        is_header = number == 1 and len(fields) == 2 and all(field.isdigit() for field in fields)
        if is_header or fields == [""]:
            continue
        dimension = dimension or len(fields) - 1
        # Tokens of the largest GloVe file have spaces: the numbers are counted from the end.
        word = " ".join(fields[:-dimension]) if dimension > 0 else ""
        try:
            vector = np.array(fields[-dimension:], dtype=np.float32)
        except ValueError:
            vector = np.full(1, np.nan, np.float32)
        if not word or dimension < 2 or not np.isfinite(vector).all():
            raise InputError(
                f"{path}, line {number}: must be a word and the finite numbers of its vector, as "
                f"many as on the first line, separated by spaces; got {line[:40]!r}."
            )
        vectors.setdefault(word, vector)
    if not vectors:
        raise InputError(f"{path}: contains no word vectors.")
    return list(vectors), np.stack(list(vectors.values()))


# The package holds the vectors of all tokens of a call in memory.
_ROWS_PER_CALL = 2048
# Tokenizers without a limit give a number far above this.
_MAX_LIMIT = 100_000


class BertScoreScorer:
    """F1 of BERTScore; blind to the condition.

    By default it matches the vectors of the layer that agrees best with people according to the
    package, which knows it for common encoders.
    """

    def __init__(self, model: str, *, layer: int | None = None) -> None:
        """Load the encoder; layers are counted from 1."""
        package = require("bert_score", extra="train,bertscore")
        from condsim.model.builders import resolve_backbone, without_progress_bars

        layers = package.utils.model2layers
        layer = layer or layers.get(model, layers.get(Path(model).name))
        if layer is None:
            raise InputError(
                f"bert-score does not know which layer of {model!r} to use. Name one, as in "
                "MODEL@9; for an encoder of 12 layers the 9th is a fair choice."
            )
        self.name = f"bertscore:{Path(model).name}@{layer}"
        try:
            with without_progress_bars():
                self._scorer = package.BERTScorer(
                    model_type=resolve_backbone(model), num_layers=layer, idf=False, nthreads=0
                )
        # The package refuses a layer by an assertion.
        except (AssertionError, OSError, ValueError, RuntimeError, KeyError, TypeError) as error:
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise ModelError(f"BERTScore cannot load {model!r}, layer {layer}: {reason}") from error
        tokenizer = self._scorer._tokenizer
        # DeBERTa's tokenizer has no limit, which the package would pass on and crash.
        if tokenizer.model_max_length > _MAX_LIMIT:
            tokenizer.model_max_length = int(self._scorer._model.config.max_position_embeddings)

    def score(
        self,
        sentences1: Sequence[str],
        sentences2: Sequence[str],
        conditions: Sequence[str] | None = None,
    ) -> FloatArray:
        """Compute F1 of each pair, ``(n,)``, at most 1; it is symmetric."""
        first, second = check_rows(None, sentences1=sentences1, sentences2=sentences2).sentences
        scores = np.empty(len(first), dtype=np.float32)
        for start in range(0, len(first), _ROWS_PER_CALL):
            rows = slice(start, start + _ROWS_PER_CALL)
            _, _, f1 = self._scorer.score(list(first[rows]), list(second[rows]))
            scores[rows] = f1.numpy()
        return scores


def _bertscore(model: str) -> BertScoreScorer:
    if layered := re.fullmatch(r"(.+)@(\d+)", model):
        return BertScoreScorer(layered[1], layer=int(layered[2]))
    return BertScoreScorer(model)


class CorpusTfIdfScorer(TfIdfCosineScorer):
    """`TfIdfCosineScorer` with the idf of a corpus, of which each sentence is a document.

    A word that is in no sentence of the corpus counts as the rarest.
    """

    def __init__(self, corpus: Corpus) -> None:
        """Wrap an open corpus, whose words are counted when the first pairs are scored."""
        self.fitted_on = f"idf of {corpus.folder.name} {corpus.revision[:12]}"
        self._corpus = corpus

    def _fit(self, vectorizer: Any, sentences: list[str]) -> None:  # noqa: ANN401
        counts: Counter[str] = Counter()
        for start in range(0, len(self._corpus), _SENTENCES_PER_READ):
            stop = min(start + _SENTENCES_PER_READ, len(self._corpus))
            for sentence in self._corpus.sentences(np.arange(start, stop)):
                counts.update(set(tokens_of(sentence)))
        vectorizer.fit(sentences)
        frequency = np.array([counts[word] for word in vectorizer.get_feature_names_out()])
        vectorizer.idf_ = np.log((1 + len(self._corpus)) / (1 + frequency)) + 1


PREFIXES["glove"] = GloveScorer
PREFIXES["bertscore"] = _bertscore
