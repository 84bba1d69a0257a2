"""Baselines on pre-trained vectors: averaged GloVe, and BERTScore."""

# "Avg. GloVe embeddings" of Reimers and Gurevych (2019, Table 1), which SSBC (Table 2) takes over:
# the words are those of sentence-transformers' ``WhitespaceTokenizer``, its stop words left out,
# and the vectors are averaged by its own modules. Only the file is read here: its reader leaves out
# bad lines without an error, holds numbers in double precision, and downloads what it does not
# find.
# BERTScore (Zhang et al., 2020) is F1 of the greedy matching of token vectors by cosine, as the
# package ``bert-score`` has it, without idf and rescaling, which change no order or hardly any.

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from condsim.data.reading import text_lines
from condsim.errors import InputError, ModelError, require
from condsim.model.base import check_rows
from condsim.model.torch import EncoderScorer
from condsim.model.truncation import count_cut, one_warning
from condsim.types import FloatArray

_PADDING = "[PAD]"  # the tokenizer gives words their rows; row 0 pads
_FEWEST = 2  # numbers of a vector; one is the header of word2vec


class GloveScorer(EncoderScorer):
    """Cosine of the averaged word vectors of the two sentences; blind to the condition."""

    def __init__(self, path: Path | str, *, batch_size: int = 256) -> None:
        """Reads the vectors.

        Args:
            path: See `read_vectors`.
            batch_size: Sentences averaged at once.

        Raises:
            InputError: If the file cannot be read or breaks a rule of its format.
            MissingExtraError: If sentence-transformers is not installed.
        """
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
        """Embeds the sentences, leaving out conditions; a sentence without a known word is 0."""
        return super()._embed([text if isinstance(text, str) else text[1] for text in texts])


def read_vectors(path: Path) -> tuple[list[str], FloatArray]:
    """Reads word vectors as text: the words, each once, and the vectors, ``(words, dimension)``."""
    dimension = 0
    words: dict[str, None] = {}
    values = array("f")
    for number, line in _lines(path):
        fields = line.split(" ")
        dimension = dimension or len(fields) - 1
        # Tokens of the largest GloVe file have spaces: the numbers are counted from behind.
        word = " ".join(fields[:-dimension]) if dimension > 0 else ""
        if dimension < _FEWEST or not word:
            raise InputError(
                f"{path}, line {number}: must be a word and the {dimension or 'same number of'} "
                f"numbers of its vector, separated by spaces. Got {line[:40]!r}; give a file of "
                "vectors as text, such as glove.6B.300d.txt, unpacked."
            )
        try:
            vector = np.array(fields[-dimension:], dtype=np.float32)
        except ValueError:
            vector = np.full(1, np.nan, np.float32)
        if not np.isfinite(vector).all():
            raise InputError(
                f"{path}, line {number}: the vector of {word[:40]!r} must be {dimension} finite "
                "numbers, as on the first line. The line is damaged or cut off; get the file anew."
            )
        if word not in words:
            words[word] = None
            values.frombytes(vector.tobytes())
    if not words:
        raise InputError(f"{path}: holds no word vectors. Give a file such as glove.6B.300d.txt.")
    return list(words), np.frombuffer(values, dtype=np.float32).reshape(len(words), dimension)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines with their numbers from 1, without blank ones and the header of word2vec."""
    for number, line in enumerate(text_lines(path), start=1):
        line = line.rstrip("\r\n ")
        fields = line.split(" ")
        if number == 1 and len(fields) == 2 and all(field.isdigit() for field in fields):
            continue
        if line:
            yield number, line


_ROWS = 2048  # scored at a time: the package holds the vectors of all tokens of a call
_NO_LIMIT = 100_000  # tokens; tokenizers that know no limit give a number far above


class BertScoreScorer:
    """F1 of BERTScore; blind to the condition.

    Attributes:
        name: Short name, shown in tables.
        layer: The layer whose token vectors are matched, from 1.
    """

    def __init__(
        self,
        model: str,
        *,
        layer: int | None = None,
        device: str | None = None,
        batch_size: int = 64,
    ) -> None:
        """Loads the encoder.

        Args:
            model: A local folder or a Hub name of an encoder.
            layer: The layer to use, from 1. By default the one that agrees best with people
                according to the package, which knows it for common encoders.
            device: Where torch runs; the package chooses if None.
            batch_size: Sentences encoded at once.

        Raises:
            InputError: If the package knows no layer for the model and none is given, or the model
                has no such layer.
            ModelError: If the model cannot be loaded.
            MissingExtraError: If ``bert-score`` or the ``train`` extra is not installed.
        """
        package = require("bert_score", extra="train,bertscore")
        from condsim.model.backbone import resolve_backbone

        self.layer = _layer(model, layer)
        self.name = f"bertscore:{Path(model).name}@{self.layer}"
        self._batch_size = batch_size
        self._scorer = _load(package, resolve_backbone(model), self.layer, device=device)

    def score(
        self,
        sentences1: Sequence[str],
        sentences2: Sequence[str],
        conditions: Sequence[str] | None = None,
    ) -> FloatArray:
        """Gives F1 of each pair, ``(n,)``, at most 1; the two sentences may change places.

        Raises:
            InputError: If a text is empty or no str, or the lengths differ.
        """
        first, second = check_rows(None, sentences1=sentences1, sentences2=sentences2).sentences
        scores = np.empty(len(first), dtype=np.float32)
        with one_warning():
            count_cut(self.name, self._limit, self._longer(first) + self._longer(second))
        for start in range(0, len(first), _ROWS):
            part = slice(start, start + _ROWS)
            found = self._scorer.score(
                list(first[part]), list(second[part]), batch_size=self._batch_size
            )
            scores[part] = found[2].numpy()  # precision, recall, F1
        return scores

    @property
    def _limit(self) -> int:
        return int(self._scorer._tokenizer.model_max_length)

    def _longer(self, texts: Sequence[str]) -> int:
        """How many texts the package cuts."""
        tokenizer, limit = self._scorer._tokenizer, self._limit
        long = [text for text in texts if len(text.encode()) > limit // 2]  # a token has a byte
        found = tokenizer(long, verbose=False)["input_ids"] if long else ()
        return sum(len(ids) > limit for ids in found)


def _layer(model: str, layer: int | None) -> int:
    """The layer asked for, or the package's own choice."""
    if layer is None:
        known = require("bert_score.utils", extra="train,bertscore").model2layers
        layer = known.get(model, known.get(Path(model).name))
    if layer is None:
        raise InputError(
            f"bert-score does not know which layer of {model!r} to use. Say which, from 1; for an "
            "encoder of 12 layers the 9th is a fair choice."
        )
    if layer < 1:
        raise InputError(f"The 'layer' of BERTScore must be 1 or more. Got {layer} instead.")
    return int(layer)


def _load(package: Any, model: str, layer: int, *, device: str | None) -> Any:  # noqa: ANN401
    """Loads the package's scorer, of which no types are known."""
    from condsim.model.backbone import without_progress_bars

    try:
        with without_progress_bars():
            scorer = package.BERTScorer(
                model_type=model, num_layers=layer, idf=False, device=device, nthreads=0
            )
    except AssertionError as error:  # the package's way to say that there is no such layer
        raise InputError(f"BERTScore of {model!r} with layer {layer}: {error}.") from error
    except (OSError, ValueError, RuntimeError, KeyError, TypeError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ModelError(f"BERTScore cannot load {model!r}: {reason}") from error
    tokenizer = scorer._tokenizer
    if tokenizer.model_max_length > _NO_LIMIT:  # DeBERTa: the package would pass it on and crash
        tokenizer.model_max_length = int(scorer._model.config.max_position_embeddings)
    return scorer
