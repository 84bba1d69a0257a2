"""TF-IDF cosine: the words two sentences share, the rare ones counting more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from condsim.errors import InputError, require
from condsim.files import sha256_of
from condsim.types import FloatArray

if TYPE_CHECKING:
    from condsim.contexts.corpus import Corpus

__all__ = ["TfIdfCosineScorer"]

_BLOCK = 8192  # sentences of a corpus read at once


class TfIdfCosineScorer:
    """Cosine of the TF-IDF vectors of the two sentences; blind to the condition.

    The vectors are those of scikit-learn's ``TfidfVectorizer`` at its defaults: lower-cased words
    of two letters or digits and more, smoothed idf, ``ln((1 + n) / (1 + df)) + 1``. A word that is
    in no document of the text the idf is from counts as the rarest.
    """

    name = "tfidf-cosine"

    def __init__(self, *, idf_from: Path | str | None = None) -> None:
        """Sets the scorer up; the idf is counted when the first pairs are scored.

        Args:
            idf_from: What the idf is counted on: a text file (perhaps gzipped), of which each line
                that is not blank is a document, or the folder of a corpus (`condsim contexts
                corpus`), of which each sentence is. By default the distinct sentences that are
                scored, so that the score of a pair depends on what is scored with it.

        Raises:
            InputError: If there is no such file or corpus.
        """
        self.fitted_on: str | None = None
        self._documents: Iterable[str] | None = None
        self._counted: tuple[int, Counter[str]] | None = None
        if idf_from is None:
            return
        path = Path(idf_from)
        if path.is_dir():
            from condsim.contexts.corpus import Corpus

            corpus = Corpus.open(path)
            revision, self._documents = corpus.revision, _sentences(corpus)
        else:
            from condsim.tasks.files import check_file

            check_file(path)
            revision, self._documents = sha256_of(path), _text_lines(path)
        self.fitted_on = f"idf of {path.name} {revision[:12]}"

    def score(
        self,
        sentences1: Sequence[str],
        sentences2: Sequence[str],
        conditions: Sequence[str] | None,
    ) -> FloatArray:
        """Scores each pair.

        Args:
            sentences1: First sentences, length n.
            sentences2: Second sentences, length n.
            conditions: Not looked at.

        Returns:
            Cosines in [0, 1], ``(n,)``; 0 if a sentence has no word.

        Raises:
            InputError: If what the idf is from has no text.
            MissingExtraError: If scikit-learn is not installed.
        """
        text = require("sklearn.feature_extraction.text", extra="train")
        distinct = list(dict.fromkeys([*sentences1, *sentences2]))
        vectorizer = text.TfidfVectorizer()
        analyze: Callable[[str], list[str]] = vectorizer.build_analyzer()
        if self._documents is not None and self._counted is None:
            self._counted = _count(self._documents, self.fitted_on, analyze)
        if not any(analyze(sentence) for sentence in distinct):
            return np.zeros(len(sentences1), dtype=np.float32)
        vectorizer.fit(distinct)
        if self._counted is not None:
            documents, frequencies = self._counted
            known = np.array([frequencies[word] for word in vectorizer.get_feature_names_out()])
            vectorizer.idf_ = np.log((1 + documents) / (1 + known)) + 1
        vectors = vectorizer.transform(distinct)  # (distinct, words), rows of length 1
        place = {sentence: row for row, sentence in enumerate(distinct)}
        first = vectors[[place[sentence] for sentence in sentences1]]
        second = vectors[[place[sentence] for sentence in sentences2]]
        cosines = np.asarray(first.multiply(second).sum(axis=1), dtype=np.float32).ravel()
        return np.clip(cosines, 0, 1)


def _count(
    documents: Iterable[str], what: str | None, analyze: Callable[[str], list[str]]
) -> tuple[int, Counter[str]]:
    """Counts documents, and for each word those that have it."""
    number = 0
    frequencies: Counter[str] = Counter()
    for document in documents:
        number += 1
        frequencies.update(set(analyze(document)))
    if not number:
        raise InputError(f"{what}: there is no text to count an idf on. Give another file.")
    return number, frequencies


def _sentences(corpus: Corpus) -> Iterator[str]:
    for start in range(0, len(corpus), _BLOCK):
        yield from corpus.sentences(np.arange(start, min(start + _BLOCK, len(corpus))))


def _text_lines(path: Path) -> Iterator[str]:
    from condsim.tasks.lines import decoded_lines, open_bytes

    with open_bytes(path) as stream:
        yield from (line for line in decoded_lines(path, stream) if line.strip())
