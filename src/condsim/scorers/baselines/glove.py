"""Averages of word vectors such as GloVe, the oldest baseline. Needs the ``train`` extra.

"Avg. GloVe embeddings" of Reimers and Gurevych (2019, Table 1), which SSBC (Table 2) takes over:
the words are those of sentence-transformers' ``WhitespaceTokenizer``, its stop words left out, and
the vectors are averaged by its own modules. Only the file is read here: its reader leaves out bad
lines without an error, holds numbers in double precision, and downloads what it does not find.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from condsim.errors import InputError, require
from condsim.scorers.encoder import EncoderScorer
from condsim.tasks import text_lines
from condsim.types import FloatArray

_PADDING = "[PAD]"  # the tokenizer gives words their rows; row 0 pads
_FEWEST = 2  # numbers of a vector; one is the header of word2vec


class GloveScorer(EncoderScorer):
    """Cosine of the averaged word vectors of the two sentences; blind to the condition."""

    def __init__(self, path: Path | str, *, name: str | None = None, batch_size: int = 256) -> None:
        """Reads the vectors.

        Args:
            path: See `read_vectors`.
            name: Short name, shown in tables; made of the file's name by default.
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
            name=name or f"glove:{path.name}",
            batch_size=batch_size,
        )

    def _embed(self, texts: list[str] | list[list[str]]) -> FloatArray:
        """Embeds the sentences, leaving out conditions; a sentence without a known word is 0."""
        return super()._embed([text if isinstance(text, str) else text[1] for text in texts])


def read_vectors(path: Path) -> tuple[list[str], FloatArray]:
    """Reads word vectors as text.

    Returns:
        The words, a word that is there twice only once, and their vectors, ``(words, dimension)``.
    """
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
