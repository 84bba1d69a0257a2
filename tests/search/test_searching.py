from __future__ import annotations

import math

import numpy as np
import pytest

from condsim.errors import InputError
from condsim.search import prefilter as first_stage
from condsim.search.index import Index
from condsim.search.prefilter import predict_scores


@pytest.fixture
def made(rows, scorer, tmp_path):
    return Index.build(rows, tmp_path / "made", key="id", model=scorer)


def test_search_scores_are_calibrated_scores_of_the_model(made, rows, scorer):
    hits = made.search("A red car", "d", overall=0)
    texts = {row["id"]: row["text"] for row in rows}
    for hit in hits:
        assert hit.score == pytest.approx(scorer.score("A red car", texts[hit.key], "d"), abs=1e-6)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert hits[0].key == "a"  # "road" counts as much as "red" in b


@pytest.mark.parametrize("options", [{}, {"overall": 0.4}])
@pytest.mark.parametrize("prepared", [False, True])
def test_search_overall_mixes_in_the_stored_vectors(made, rows, scorer, prepared, options):
    if prepared:
        made.prepare("d")
    texts = {row["id"]: row["text"] for row in rows}
    hits = made.search("A red car", "d", **options)
    assert len(hits) == len(rows)
    for hit in hits:
        # 0.3 by default.
        expected = scorer.score("A red car", texts[hit.key], "d", **({"overall": 0.3} | options))
        assert hit.score == pytest.approx(expected, abs=2e-3 if prepared else 1e-4)


@pytest.mark.parametrize("condition", ["d", {"d": 0.7, "r": 0.3}])
def test_search_prepared_with_overall_is_exact_of_many_rows(scorer, tmp_path, condition):
    draw = np.random.default_rng(0)
    words = [f"w{number}{end}" for number in range(40) for end in "drx"]
    texts = [" ".join(draw.choice(words, 5)) for _ in range(600)]
    index = Index.build(
        [{"text": text} for text in texts], tmp_path / "made", condition=["d", "r"], model=scorer
    )
    index.delete(["1", "2"])
    query = "w0d w1r w2x w3x"
    names = condition if isinstance(condition, dict) else {condition: 1.0}
    scores = sum(
        share * scorer.score(query, texts, name, overall=0.6) for name, share in names.items()
    )
    scores[:2] = 0
    encoded = scorer.encoded
    hits = index.search(query, condition, top=7, overall=0.6)
    # The query alone, under each condition and without.
    assert scorer.encoded - encoded == len(names) + 1
    best = np.argsort(-scores, kind="stable")
    np.testing.assert_allclose([hit.score for hit in hits], scores[best[:7]], atol=2e-3)


def test_search_in_rounds_encodes_the_query_once(scorer, tmp_path):
    rows = [{"text": f"word{number} red"} for number in range(200)]
    index = Index.build(rows, tmp_path / "made", model=scorer)
    index.search("warm up", "d", rescore=80)
    encoded = scorer.encoded
    index.search("blue water", "d", rescore=80)
    assert scorer.encoded - encoded == 80 + 2


def test_search_rescore_bounds_the_second_stage(made, scorer):
    made.search("warm up", "d", top=1, rescore=3)
    before = scorer.encoded
    hits = made.search("A red boat on blue water", "d", top=2, rescore=3)
    assert len(hits) == 2
    assert scorer.encoded - before == 5  # query, plain and under d; again as a text, and 2 others


def test_search_first_stage_learns_what_a_condition_is_about(scorer, tmp_path):
    draw = np.random.default_rng(0)
    words = [f"w{number}x" for number in range(12)]
    rows = [
        {"text": " ".join([*draw.choice(words, 4), str(draw.choice(["red", "gold", "wood"]))])}
        for _ in range(300)
    ]
    index = Index.build(rows, tmp_path / "learned", model=scorer)
    hits = index.search("w0x w1x w2x w3x red", "d", top=20, rescore=25)
    assert sum("red" in hit.text for hit in hits) == 20


def test_search_at_least_and_a_filter_leave_rows_out(made):
    scores = [hit.score for hit in made.search("A red car", "d")]
    assert len(made.search("A red car", "d", at_least=scores[1])) == 2
    assert made.search("A boat", "d", where="year > 3000") == []
    made.prepare("d")
    assert made.search("A boat", "d", where="year > 3000") == []


def test_search_weights_are_normalized_and_combined(made):
    hits = made.search("A red car", {"d": 3, "r": 1})
    for hit in hits:
        assert hit.score == pytest.approx(0.75 * hit.scores["d"] + 0.25 * hit.scores["r"], abs=1e-6)
    same = made.search("A red car", ["d", "r"])
    assert same[0].score == pytest.approx(np.mean(list(same[0].scores.values())), abs=1e-6)


@pytest.mark.parametrize("condition", ["d", {"d": 0.7, "r": 0.3}])
@pytest.mark.parametrize("where", [None, "year >= 2020"])
def test_search_prepared_equals_the_two_stages_over_everything(made, condition, where):
    two = made.search("A red car", condition, where=where)
    for one in ("d", "r"):
        made.prepare(one)
    exact = made.search("A red car", condition, where=where)
    assert [hit.key for hit in exact] == [hit.key for hit in two]
    for first, second in zip(exact, two, strict=True):
        assert first.score == pytest.approx(second.score, abs=2e-3)  # float16


def test_search_no_condition_takes_the_only_prepared_one(made):
    with pytest.raises(InputError, match="A search needs a condition"):
        made.search("A boat")
    made.prepare("d")
    assert set(made.search("A boat")[0].scores) == {"d"}
    made.prepare("r")
    with pytest.raises(InputError, match="prepared for: d, r"):
        made.search("A boat")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"query": " ", "condition": "d"}, r"query must be a text that is not empty"),
        ({"condition": ""}, r"The condition must have text; got ''"),
        ({"condition": {}}, r"A search needs a condition"),
        ({"condition": {"d": 0}}, r"weight of 'd' must be a number above 0"),
        ({"condition": "d", "top": 0}, r"'top' must be 1 or more"),
        ({"condition": "d", "at_least": 2}, r"'at_least' must be a score from 0 to 1"),
        ({"condition": "d", "where": "yeer > 3"}, r"'yeer > 3' cannot be used: .*yeer.*SQL"),
        ({"condition": "d", "where": "year >"}, r"'year >' cannot be used: .*on the columns 'id'"),
    ],
)
def test_search_bad_argument_raises_one_line(arguments, message, made):
    with pytest.raises(InputError, match=message) as error:
        made.search(**{"query": "A boat"} | arguments)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("most", [1 << 30, 0])
def test_vectors_best_in_blocks_equals_one_product(most, exact, scorer, tmp_path, monkeypatch):
    monkeypatch.setattr(first_stage, "_VECTORS_PER_BLOCK", 7)
    monkeypatch.setattr(first_stage, "_MAX_CACHED_BYTES", most)
    texts = [f"word{n % 13} word{n % 7} word{n}" for n in range(40)]
    rows = [{"text": text} for text in texts]
    index = Index.build(rows, tmp_path / "made", model=scorer)
    vectors = first_stage.VectorTable(index._store, "rows", exact=exact)
    query = scorer.encode("word3 word5")
    expected = scorer.encode(texts) @ query
    for _ in range(2):
        numbers, scores = vectors.best(query, 12)
        near = 1e-3 if exact else 0.02
        np.testing.assert_allclose(scores, np.sort(expected)[::-1][:12], atol=near)
        np.testing.assert_allclose(scores, expected[numbers - 1], atol=near)
    allowed = np.array([2, 9, 31], np.int64)
    numbers, _ = vectors.best(query, 12, allowed=allowed)
    assert sorted(numbers) == allowed.tolist()


@pytest.mark.parametrize("exact", [True, False])
def test_vectors_after_changes_equal_those_read_anew(exact, scorer, tmp_path, monkeypatch):
    monkeypatch.setattr(first_stage, "_VECTORS_PER_BLOCK", 7)
    rows = [{"id": f"it's {n}", "text": f"word{n % 13} word{n}"} for n in range(20)]
    index = Index.build(rows, tmp_path / "made", key="id", model=scorer)
    cached = first_stage.VectorTable(index._store, "rows", exact=exact)
    query = scorer.encode("word3 word5")
    cached.best(query, 5)
    reads = []
    monkeypatch.setattr(cached, "read", lambda: reads.append(1))

    def add(*names):
        return index.add([{"id": f"it's {n}", "text": f"word3 new{n}"} for n in names])

    changes = [
        lambda: add(20, 21),
        # The number of the last row is given again.
        lambda: index.delete("it's 21"),
        lambda: add(22),
        lambda: index.update([{"id": "it's 3", "text": "word3 word5"}]),
        lambda: index.delete(["it's 4", "it's 20"]),
        lambda: add(*range(30, 39)),
        lambda: add(40),
    ]
    for change in changes:
        change()
        anew = first_stage.VectorTable(index._store, "rows", exact=True)
        numbers, scores = cached.best(query, 50)
        expected, cosines = anew.best(query, 50)
        assert sorted(numbers) == sorted(expected)
        np.testing.assert_allclose(scores, cosines, atol=1e-3 if exact else 0.02)
        allowed = expected[::2]
        assert set(cached.best(query, 50, allowed=allowed)[0]) == set(allowed)
    assert not reads
    assert add(40, 41).present == 1
    monkeypatch.undo()
    index.delete([f"it's {n}" for n in range(18)])
    assert len(cached.best(query, 50)[0]) == len(index)
    assert sum(len(block.ids) for block in cached._cached) == len(index)


@pytest.mark.slow
def test_approximate_index_finds_the_nearest(scorer, tmp_path, monkeypatch):
    random = np.random.default_rng(0)
    texts = [" ".join(f"w{n}" for n in row) for row in random.integers(200, size=(2000, 5))]
    index = Index.build([{"text": text} for text in texts], tmp_path / "made", model=scorer)
    exact = index.search(texts[7], "x", top=5)
    with pytest.raises(InputError, match=r"at least 10,000 rows; .* has 2,000"):
        index.approximate()
    monkeypatch.setattr("condsim.search.index._MIN_APPROXIMATE_ROWS", 1000)
    index.approximate()
    assert index.is_approximate
    assert index.search(texts[7], "x", top=1) == exact[:1]
    assert index.search(texts[7], "x", where="text = 'none'") == []


def test_scores_are_expected_from_those_of_near_texts():
    # Without a slope: mean 1/2, what is left is +1/2 and -1/2. The kernel of two texts at right
    # angles is exp(-2), so both weights are 1/2 / (1.1 - exp(-2)); the third is like the first.
    vectors = np.array([[1, 0], [0, 1], [1, 0]], np.float32)
    near, known = np.zeros(3, np.float32), np.array([0, 1])
    found = predict_scores(near, vectors, known, np.array([1, 0], np.float32))
    assert found[2] == pytest.approx(0.5 + 0.5 * (1 - math.exp(-2)) / (1.1 - math.exp(-2)))
    assert found.mean() == pytest.approx((2 * found[0] + found[1]) / 3)


def test_scores_are_expected_on_the_line_of_the_first_stage():
    vectors = np.eye(4, dtype=np.float32)
    near = np.array([1, 2, 3, 5], np.float32)
    found = predict_scores(near, vectors, np.arange(3), np.array([0.1, 0.2, 0.3], np.float32))
    assert found == pytest.approx([0.1, 0.2, 0.3, 0.5], abs=1e-5)


def test_search_keeps_what_it_learned_with_the_index(scorer, tmp_path, monkeypatch):
    rows = [{"text": f"word{number % 30} thing{number} end"} for number in range(400)]
    index = Index.build(rows, tmp_path / "made", model=scorer)
    first = index.search("word7 thing7", "d", rescore=20)
    monkeypatch.setattr(first_stage.Prefilter, "_learn", lambda *_: pytest.fail("it is learned"))
    again = Index.open(tmp_path / "made", model=scorer)
    assert again.search("word7 thing7", "d", rescore=20) == first


def test_search_learns_again_when_the_index_has_grown(scorer, tmp_path):
    rows = [{"text": f"word{number % 30} thing{number} end"} for number in range(400)]
    index = Index.build(rows[:150], tmp_path / "made", model=scorer)
    index.search("word7 thing7", "d", rescore=20)
    assert index._store.find_map("d") is not None
    index.add(rows[150:])
    assert index._store.find_map("d") is None


def test_search_plain_compares_texts_as_a_whole(scorer, rows, tmp_path):
    index = Index.build(rows, tmp_path / "made", key="id", model=scorer)
    hits = index.search("A red boat on blue water", plain=True, top=2, where="year > 2000")
    assert [hit.key for hit in hits] == ["a", "b"]
    assert (hits[0].score, hits[0].scores) == (pytest.approx(1, abs=1e-3), {})
    with pytest.raises(InputError, match="either a condition, or 'plain'"):
        index.search("A boat", "r", plain=True)
