"""Small data sets in the forms they are released in, and a scorer that counts what it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from papers.data.sts import STS_COUNTS

from condsim.model.embedding import EmbeddingScorer
from condsim.types import FloatArray

WORDS = ("dog", "cat", "bird", "child", "man", "girl")


def pairs() -> list[tuple[str, str, int]]:
    """Six pairs with scores from 0 to 5."""
    return [
        (f"A {word} plays on the street.", f"A {WORDS[row // 2]} plays {row * 'well '}.", row)
        for row, word in enumerate(WORDS)
    ]


class DataSets:
    """Writes data sets below a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, name: str) -> Path:
        made = self.root / name
        made.mkdir(parents=True, exist_ok=True)
        return made

    def sts(self, year: int, name: str = "sts", *, semeval: bool = False, skip: str = "") -> Path:
        folder = self.folder(name)
        for subset in STS_COUNTS[year]:
            if subset == skip:
                continue
            if semeval:
                texts = "".join(f"{one}\t{two}\n" for one, two, _ in pairs())
                (folder / f"STS.input.{subset}.txt").write_text(texts)
                gold = "".join(f"{score}\n" for *_, score in pairs())
                (folder / f"STS.gs.{subset}.txt").write_text(gold)
            else:
                rows = "".join(f"{score}\t{one}\t{two}\n" for one, two, score in pairs())
                path = folder / f"sts{year % 100}.{subset}.test.tsv"
                path.write_text("score\tsentence1\tsentence2\n" + rows)
        return folder

    def stsb(self, split: str = "test") -> Path:
        path = self.folder("sts-b") / f"sts-{split}.csv"
        path.write_text("".join(f"g\tf\t2012\t1\t{s}\t{a}\t{b}\n" for a, b, s in pairs()))
        return path

    def sick(self) -> Path:
        path = self.folder("sick") / "SICK_test_annotated.txt"
        rows = "".join(f"{a}\t{b}\t{1 + s * 0.8:.1f}\n" for a, b, s in pairs())
        path.write_text("sentence_A\tsentence_B\trelatedness_score\n" + rows)
        return path

    def csts(self, *, train: bool = True) -> Path:
        folder = self.folder("my-csts")
        rows = "".join(
            f"{a},{b},the street,{5 - s % 2}\n{a},{b},how well,{1 + s % 3}\n" for a, b, s in pairs()
        )
        for name in ("dev.csv", "train.csv") if train else ("dev.csv",):
            (folder / name).write_text("sentence1,sentence2,condition,label\n" + rows)
        return folder

    def afs(self) -> Path:
        folder = self.folder("afs")
        rows = "".join(f"{s},{a},{b}\n" for a, b, s in pairs())
        for topic in ("DP", "GC", "GM"):
            path = folder / f"ArgPairs_{topic}.csv"
            path.write_text("regression_label,sentence_1,sentence_2\n" + rows)
        return folder

    def triplets(self) -> Path:
        path = self.folder("wikipedia-sections") / "test.csv"
        rows = "".join(f"The {w} runs.,The {w} runs far.,A tree stands.\n" for w in WORDS)
        path.write_text("Sentence1,Sentence2,Sentence3\n" + rows)
        return path

    def everything(self) -> Path:
        for year in STS_COUNTS:
            self.sts(year)
        self.stsb()
        self.sick()
        self.csts()
        return self.root


@pytest.fixture
def data_sets(tmp_path: Path) -> DataSets:
    return DataSets(tmp_path / "data")


class LetterScorer(EmbeddingScorer):
    """Embeds a text as the counts of its letters, and counts what it embeds."""

    def __init__(self, *, name: str = "letters", revision: str | None = None) -> None:
        super().__init__(name=name, order="condition-first", dimension=26, calibration=None)
        self.revision = revision
        self.embedded: list[str] = []

    def _embed(self, texts: list[str] | list[list[str]]) -> FloatArray:
        joined = [text if isinstance(text, str) else " | ".join(text) for text in texts]
        self.embedded += joined
        counts = np.array(
            [[1 + text.lower().count(chr(97 + k)) for k in range(26)] for text in joined]
        )
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def letters() -> Callable[..., LetterScorer]:
    return LetterScorer


class OverlapScorer:
    """Scores row by row: shared words."""

    name = "shared-words"

    def score(
        self, sentences1: Sequence[str], sentences2: Sequence[str], conditions: Sequence[str] | None
    ) -> FloatArray:
        pairs_ = zip(sentences1, sentences2, strict=True)
        return np.array([len(set(a.split()) & set(b.split())) for a, b in pairs_], np.float32)


@pytest.fixture
def overlap() -> OverlapScorer:
    return OverlapScorer()
