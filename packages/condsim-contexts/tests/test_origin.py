"""The origin scorer and its cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from condsim.errors import InputError
from condsim.model.base import SCORER_LOG
from condsim.types import Scorer
from condsim_contexts.equations import similarity
from condsim_contexts.origin import OriginScorer, ScoreCache
from condsim_contexts.recipe import ScoringSettings, Selection, Weights

ROWS = 40


class Index:
    """Chunks by the first letter: a to d have ten chunks each."""

    def search(self, sentences: Sequence[str], *, top_n: int = 20_000) -> list[Any]:
        starts = [10 * "abcd".index(text[0]) if text[0] in "abcd" else 0 for text in sentences]
        found = [np.arange(start, start + 10) for start in starts]
        return [(chunks, np.ones(10, np.float32)) for chunks in found]


class Terms:
    """A sentence has a vector of its letters; a context too: the term is their product, less 20."""

    def __init__(self) -> None:
        self.calls = 0
        self.scored = 0

    def terms(self, sentences: Any, centers: Any, names: Any) -> list[dict[str, Any]]:
        self.calls += 1
        self.scored += sum(map(len, centers))
        random = np.random.default_rng(0)
        contexts = random.normal(size=(ROWS, 26))
        found = []
        for text, one in zip(sentences, centers, strict=True):
            letters = np.array([text.count(chr(97 + place)) for place in range(26)], float)
            values = (contexts[one] @ letters - 20 + contexts[one, 0] * 5).astype(np.float32)
            found.append({name: values for name in names})
        return found


@pytest.fixture
def origin(numbered_corpus) -> Callable[..., OriginScorer]:
    def make(**options: Any) -> OriginScorer:
        corpus = numbered_corpus(ROWS, chunk=1, document=ROWS, text="reference {}")
        if "texts" in options:
            corpus.sentences = options.pop("texts")
        scoring = {key: options.pop(key) for key in options.keys() & ScoringSettings.model_fields}
        size = options.pop("size", 6)
        terms = options.pop("terms", Terms())
        return OriginScorer(
            corpus,
            Index(),
            terms,
            scoring=ScoringSettings(**scoring),
            selection=Selection(size=size),
            **options,
        )

    return make


def test_pair_terms_leave_out_contexts_near_a_sentence(origin, monkeypatch):
    def texts(ids: Any) -> list[str]:
        return ["b in the corpus" if row == 12 else f"reference {row}" for row in ids]

    monkeypatch.setattr("condsim_contexts.equations.SENTENCES_APART", 2)
    scorer = origin(texts=texts, size=10)
    (pair,) = scorer.pair_terms(["b in the corpus"], ["bb of another place"])
    # Of the contexts 10 to 19 the first sentence chose from 15 to 19; in those that the second one
    # chose it is not judged by 10 to 14.
    missing = {name: np.isnan(values) for name, values in pair.first.items()}
    assert {len(values) for values in missing.values()} == {15}
    assert {int(values[5:].sum()) for values in missing.values()} == {5}
    assert not any(values[:5].any() for values in missing.values())
    assert not any(np.isnan(values).any() for values in pair.second.values())
    assert np.isfinite(similarity(pair, weights=Weights(), center="pmi"))


@pytest.mark.parametrize("center", ["none", "context", "pmi"])
def test_origin_scorer_equals_a_naive_loop(origin, center: Any):
    pairs = [("apple", "bat"), ("bat", "cow"), ("apple", "apple"), ("cow", "bat")]
    scores = origin(center=center, references=5).score(*zip(*pairs, strict=True), scale="raw")
    drawn = np.sort(np.random.default_rng(0).choice(ROWS, size=5, replace=False))
    for (first, second), score in zip(pairs, scores, strict=True):
        contexts = np.concatenate([_best(first), _best(second)])
        vectors = [_term(text, contexts) for text in (first, second)]
        means = np.mean([_term(f"reference {row}", contexts) for row in drawn], axis=0)
        alone = [_term(text, drawn).mean() for text in (first, second)]
        if center == "context":
            vectors = [vector - means for vector in vectors]
        elif center == "pmi":  # two terms are those of the sentence, two those of the context
            vectors = [
                vector - (mean + means) / 2 for vector, mean in zip(vectors, alone, strict=True)
            ]
        one, other = vectors
        expected = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
        assert score == pytest.approx(expected, abs=1e-4)


def _term(text: str, contexts: Any) -> Any:
    return Terms().terms([text], [contexts], ["center"])[0]["center"].astype(float)


def _best(text: str) -> Any:
    pool = Index().search([text])[0][0]
    return pool[np.argsort(-_term(text, pool), kind="stable")][:6]


def test_origin_scorer_is_symmetric_and_a_sentence_is_like_itself(origin):
    scorer = origin()
    assert isinstance(scorer, Scorer)
    there = scorer.score(["apple", "bat"], ["bat", "apple"])
    assert there[0] == pytest.approx(there[1], abs=1e-6)
    assert scorer.score(["apple"], ["apple"])[0] == pytest.approx(1.0)


def test_origin_scorer_does_not_depend_on_batches(origin):
    left, right = ["apple", "bat", "cow", "dab"], ["bat", "cow", "dab", "apple"]
    np.testing.assert_allclose(
        origin(batch_size=1).score(left, right), origin(batch_size=64).score(left, right), atol=1e-6
    )


def test_origin_scorer_computes_nothing_twice(origin):
    terms = Terms()
    scorer = origin(terms=terms, center="none")
    scorer.score(["apple", "bat", "apple"], ["bat", "apple", "bat"])
    # Sets: 2 sentences x 10 contexts for coherence and again for Eq. 3; crosswise 2 x 6.
    assert terms.scored == 2 * 10 + 2 * 10 + 2 * 6


def test_origin_scorer_goes_on_where_it_was_stopped(origin, tmp_path, caplog):
    class Failing(Terms):
        def terms(self, sentences: Any, centers: Any, names: Any) -> list[dict[str, Any]]:
            if "d5" in sentences:
                raise KeyboardInterrupt
            return super().terms(sentences, centers, names)

    def of(terms: Terms) -> OriginScorer:
        return origin(terms=terms, batch_size=2, cache=ScoreCache(tmp_path / "r0.txt"))

    pairs = [f"a{row}" for row in range(7)], [f"d{row}" for row in range(7)]
    expected = origin(batch_size=2).score(*pairs, scale="raw")
    with pytest.raises(KeyboardInterrupt):
        of(Failing()).score(*pairs)
    caplog.clear()
    with caplog.at_level("INFO", logger=SCORER_LOG):
        found = of(Terms()).score(*pairs, scale="raw")
    assert caplog.records[0].getMessage() == "origin: 4 pairs were scored before"
    assert caplog.records[1].getMessage().startswith("origin: 3 pairs x 12 contexts")
    np.testing.assert_allclose(found, expected, atol=1e-6)
    terms = Terms()
    again = of(terms).score(*pairs, scale="raw")
    assert (again.tolist(), terms.calls) == (found.tolist(), 0)


def test_origin_scorer_condition_raises(origin):
    with pytest.raises(InputError, match=r"takes no condition"):
        origin().score(["a"], ["b"], ["c"])


@pytest.mark.parametrize(
    ("selection", "scoring", "corpus", "sequences"),
    [
        # 10 sentences x 60 candidates, 6 pairs x 2 x 20 crosswise, 10 x 20 contexts x 4 references
        ({}, {}, 1_000, 3 * (600 + 240 + 800)),
        # No candidates
        ({"strategy": "random"}, {"center": "none"}, 1_000, 3 * (200 + 240)),
        # 10 sentences x 4 references for the center, 10 x 20 contexts x 4 for each side
        ({}, {"center": "pmi"}, 1_000, 3 * (600 + 240) + 40 + 2 * 800),
        ({}, {"center": "pmi", "weights": Weights(left=0, right=0)}, 1_000, 600 + 240 + 40),
        # The corpus is smaller than a set of contexts.
        ({}, {}, 15, 3 * (10 * 15 + 2 * 6 * 15 + 15 * 4)),
    ],
)
def test_cost_counts_choice_crosswise_and_means(
    numbered_corpus, selection, scoring, corpus, sequences
):
    scorer = OriginScorer(
        numbered_corpus(corpus, chunk=1, document=corpus),
        Index(),
        Terms(),
        selection=Selection(**{"size": 20, "candidates": 3, **selection}),
        scoring=ScoringSettings(**{"center": "context", "references": 4, **scoring}),
    )
    found = scorer.cost(sentences=10, pairs=6)
    assert found.sequences == sequences
    assert found.contexts == 2 * min(20, corpus)


def test_score_cache_line_that_was_cut_off_does_not_count(tmp_path):
    path = tmp_path / "c0.txt"
    cache = ScoreCache(path)
    cache.add(["a", "b"], ["b", "a"], [0.25, -0.125])
    content = path.read_bytes()
    for cut in range(1, len(content)):
        path.write_bytes(content[:cut])
        cache.add(["c"], ["d"], [0.75])
        found = cache.find(["a", "b", "c"], ["b", "a", "d"])
        assert found[2] == 0.75
        for value, expected in zip(found, (0.25, -0.125), strict=False):
            assert np.isnan(value) or value == expected


def test_score_cache_that_cannot_be_written_is_warned_of_once(tmp_path, caplog):
    (tmp_path / "scored").write_text("a file where the folder would be")
    cache = ScoreCache(tmp_path / "scored" / "c0.txt")
    cache.add(["a"], ["b"], [0.5])
    cache.add(["b"], ["a"], [0.5])
    (record,) = caplog.records
    assert "Cannot cache scores" in record.getMessage()
