"""Baselines of the papers' tables: averaged GloVe, BERTScore, and TF-IDF with the idf of a corpus.

"Avg. GloVe embeddings" of Reimers and Gurevych (2019, Table 1), which SSBC (Table 2) takes over:
the words are those of sentence-transformers' ``WhitespaceTokenizer``, its stop words left out, and
the vectors are averaged by its own modules. Only the file is read here: its reader skips bad lines
without an error, stores numbers in double precision, and downloads a missing file.

BERTScore (Zhang et al., 2020) is F1 of the greedy matching of token vectors by cosine, as the
package ``bert-score`` has it, without idf and rescaling, which change no order or hardly any.

Importing this module adds the prefixes ``glove:`` and ``bertscore:`` to `condsim.loading.PREFIXES`.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from condsim.data.files import text_lines
from condsim.errors import InputError, ModelError, require
from condsim.loading import PREFIXES
from condsim.model.base import check_rows
from condsim.model.baselines import TfIdfCosineScorer, tokens_of
from condsim.model.chunking import collect_truncations, record_truncation
from condsim.model.torch import EncoderScorer
from condsim.types import FloatArray

if TYPE_CHECKING:
    from condsim.contexts import Corpus

_SENTENCES_PER_READ = 8192
# The tokenizer gives words their rows; row 0 pads.
_PADDING = "[PAD]"


class GloveScorer(EncoderScorer):
    """Cosine of the averaged word vectors of the two sentences; blind to the condition."""

    def __init__(self, path: Path | str, *, batch_size: int = 256) -> None:
        """Read the vectors, see `read_vectors`; ``batch_size`` sentences are averaged at once."""
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
            batch_size=batch_size,
        )

    def _embed(self, texts: list[str] | list[list[str]]) -> FloatArray:
        """Embed the sentences without conditions; a sentence without a known word is 0."""
        return super()._embed([text if isinstance(text, str) else text[1] for text in texts])


def read_vectors(path: Path) -> tuple[list[str], FloatArray]:
    """Read word vectors as text: the words, each once, and the vectors, ``(words, dimension)``."""
    dimension = 0
    words: dict[str, None] = {}
    values = array("f")
    for number, line in _lines(path):
        fields = line.split(" ")
        dimension = dimension or len(fields) - 1
        # Tokens of the largest GloVe file have spaces: the numbers are counted from the end.
        word = " ".join(fields[:-dimension]) if dimension > 0 else ""
        # A vector of one number is the header of word2vec.
        if dimension < 2 or not word:
            raise InputError(
                f"{path}, line {number}: must be a word and the {dimension or 'same number of'} "
                f"numbers of its vector, separated by spaces; got {line[:40]!r}."
            )
        try:
            vector = np.array(fields[-dimension:], dtype=np.float32)
        except ValueError:
            vector = np.full(1, np.nan, np.float32)
        if not np.isfinite(vector).all():
            raise InputError(
                f"{path}, line {number}: the vector of {word[:40]!r} must be {dimension} finite "
                "numbers, as on the first line; download the file again."
            )
        if word not in words:
            words[word] = None
            values.frombytes(vector.tobytes())
    if not words:
        raise InputError(f"{path}: contains no word vectors.")
    return list(words), np.frombuffer(values, dtype=np.float32).reshape(len(words), dimension)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines and their numbers from 1, without blank ones and the header of word2vec."""
    for number, line in enumerate(text_lines(path), start=1):
        line = line.rstrip("\r\n ")
        fields = line.split(" ")
        if number == 1 and len(fields) == 2 and all(field.isdigit() for field in fields):
            continue
        if line:
            yield number, line


# The package holds the vectors of all tokens of a call in memory.
_ROWS_PER_CALL = 2048
# Tokenizers without a limit give a number far above this.
_MAX_LIMIT = 100_000


class BertScoreScorer:
    """F1 of BERTScore; blind to the condition."""

    def __init__(
        self,
        model: str,
        *,
        layer: int | None = None,
        device: str | None = None,
        batch_size: int = 64,
    ) -> None:
        """Load the encoder."""
        package = require("bert_score", extra="train,bertscore")
        from condsim.model.backbone import resolve_backbone

        self.layer = _checked_layer(model, layer)
        self.name = f"bertscore:{Path(model).name}@{self.layer}"
        self._batch_size = batch_size
        self._scorer = _load_scorer(package, resolve_backbone(model), self.layer, device)

    def score(
        self,
        sentences1: Sequence[str],
        sentences2: Sequence[str],
        conditions: Sequence[str] | None = None,
    ) -> FloatArray:
        """Compute F1 of each pair, ``(n,)``, at most 1; it is symmetric."""
        first, second = check_rows(None, sentences1=sentences1, sentences2=sentences2).sentences
        scores = np.empty(len(first), dtype=np.float32)
        with collect_truncations():
            longer = self._count_longer(first) + self._count_longer(second)
            record_truncation(self.name, self._limit, longer)
        for start in range(0, len(first), _ROWS_PER_CALL):
            rows = slice(start, start + _ROWS_PER_CALL)
            _, _, f1 = self._scorer.score(
                list(first[rows]), list(second[rows]), batch_size=self._batch_size
            )
            scores[rows] = f1.numpy()
        return scores

    @property
    def _limit(self) -> int:
        return int(self._scorer._tokenizer.model_max_length)

    def _count_longer(self, texts: Sequence[str]) -> int:
        """Count the texts that the package truncates."""
        # A token has at least one byte.
        long = [text for text in texts if len(text.encode()) > self._limit // 2]
        ids = self._scorer._tokenizer(long, verbose=False)["input_ids"] if long else ()
        return sum(len(item) > self._limit for item in ids)


def _checked_layer(model: str, layer: int | None) -> int:
    if layer is None:
        layers = require("bert_score.utils", extra="train,bertscore").model2layers
        layer = layers.get(model, layers.get(Path(model).name))
    if layer is None:
        raise InputError(
            f"bert-score does not know which layer of {model!r} to use. Name one, from 1; for an "
            "encoder of 12 layers the 9th is a fair choice."
        )
    if layer < 1:
        raise InputError(f"The 'layer' of BERTScore must be 1 or more; got {layer}.")
    return int(layer)


def _load_scorer(package: Any, model: str, layer: int, device: str | None) -> Any:  # noqa: ANN401
    """Load the package's scorer, which is not typed."""
    from condsim.model.backbone import without_progress_bars

    try:
        with without_progress_bars():
            scorer = package.BERTScorer(
                model_type=model, num_layers=layer, idf=False, device=device, nthreads=0
            )
    except AssertionError as error:
        # This is how the package refuses a layer.
        raise InputError(f"BERTScore of {model!r} with layer {layer}: {error}.") from error
    except (OSError, ValueError, RuntimeError, KeyError, TypeError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ModelError(f"BERTScore cannot load {model!r}: {reason}") from error
    tokenizer = scorer._tokenizer
    # DeBERTa's tokenizer has no limit, which the package would pass on and crash.
    if tokenizer.model_max_length > _MAX_LIMIT:
        tokenizer.model_max_length = int(scorer._model.config.max_position_embeddings)
    return scorer


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
        self._counts: Counter[str] | None = None

    def _fit(self, vectorizer: Any, sentences: list[str]) -> None:  # noqa: ANN401
        if self._counts is None:
            counts: Counter[str] = Counter()
            for start in range(0, len(self._corpus), _SENTENCES_PER_READ):
                stop = min(start + _SENTENCES_PER_READ, len(self._corpus))
                for sentence in self._corpus.sentences(np.arange(start, stop)):
                    counts.update(set(tokens_of(sentence)))
            self._counts = counts
        vectorizer.fit(sentences)
        frequency = np.array([self._counts[word] for word in vectorizer.get_feature_names_out()])
        vectorizer.idf_ = np.log((1 + len(self._corpus)) / (1 + frequency)) + 1


PREFIXES["glove"] = GloveScorer
PREFIXES["bertscore"] = _bertscore
