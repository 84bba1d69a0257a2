from __future__ import annotations

import math
from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.console import Console

from condsim.errors import InputError
from condsim.loading import load_scorer
from condsim.model.base import PairScorer
from condsim.model.explanation import Occlusion
from condsim.model.onnx import OnnxScorer

ONE = "A man in a white cap serves a tennis ball."
TWO = "A girl in a red dress swings her racket."


class SharedWords(PairScorer):
    """Scores by the number of words that both sentences have, of at most 10."""

    name = "shared"

    def _score_rows(self, rows, scale):
        words = [[set(text.rstrip(".").split()) for text in column] for column in rows.sentences]
        return np.array([len(a & b) / 10 for a, b in zip(*words, strict=True)], np.float32)


@pytest.fixture(scope="module")
def tiny(exported):
    return OnnxScorer(exported, threads=1)


@pytest.fixture(scope="module")
def found(tiny):
    return tiny.explain(ONE, TWO, "the sport")


def total(explanation):
    words = [word for one in explanation.texts for word in one.words]
    return explanation.remainder + math.fsum(word.contribution for word in words)


def naive_shapley(value, size):
    """By the definition: the mean gain over all subsets of the others, weighted."""
    shares = []
    for word in range(size):
        others = [one for one in range(size) if one != word]
        share = 0.0
        for number in range(size):
            weight = math.factorial(number) * math.factorial(size - number - 1)
            for some in combinations(others, number):
                share += weight * (value({*some, word}) - value(set(some)))
        shares.append(share / math.factorial(size))
    return shares


@pytest.mark.parametrize(("scale", "samples"), [("unit", 1), ("likert", 17), ("raw", 400)])
def test_explain_contributions_add_up_to_the_score(tiny, scale, samples):
    explanation = tiny.explain(ONE, TWO, "the sport", scale=scale, samples=samples)
    assert total(explanation) == pytest.approx(explanation.score, abs=1e-6)
    assert explanation.score == pytest.approx(
        tiny.score(ONE, TWO, "the sport", scale=scale), abs=1e-5
    )


def test_explain_counts_shared_words_by_hand():
    # 2 of the words of each text are shared, 0.1 each; half of that from either side.
    explanation = SharedWords().explain("the red ball", "the blue ball.", "color")
    contributions = [[word.contribution for word in one.words] for one in explanation.texts]
    np.testing.assert_allclose(contributions, [[0.05, 0, 0.05], [0.05, 0, 0.05]], atol=1e-7)
    assert explanation.score == pytest.approx(0.2)
    assert explanation.remainder == 0
    assert explanation.pairs is None


def test_occlusion_shares_are_shapley_values_where_all_subsets_are_scored():
    occlusion = Occlusion("a b c d e", samples=100, seed=0)
    generator = np.random.default_rng(3)
    known = {text: generator.random() for text in dict.fromkeys(occlusion.texts)}
    assert len(known) == 2**5

    def value(subset):
        kept = np.isin(np.arange(5), list(subset))
        return known[occlusion.keeping(kept)]

    shares = occlusion.shares(np.array([known[text] for text in occlusion.texts]))
    np.testing.assert_allclose(shares, naive_shapley(value, 5), atol=1e-12)


def test_occlusion_shares_of_a_sum_are_its_terms_however_few_the_samples():
    occlusion = Occlusion(" ".join("abcdefghijkl"), samples=30, seed=0)
    terms = np.arange(12) - 4.0
    values = [sum(terms["abcdefghijkl".index(c)] for c in t if c != "." and c.strip())
              for t in occlusion.texts]  # fmt: skip
    np.testing.assert_allclose(occlusion.shares(np.array(values)), terms, atol=1e-9)


def test_explain_pairs_add_up_to_the_product_of_the_changes(tiny, found):
    ends1, ends2 = (tiny.encode([".", text], "the sport") for text in (ONE, TWO))
    # Removing all words leaves the full stop, which is what "." is, too.
    expected = (ends1[1] - ends1[0]) @ (ends2[1] - ends2[0])
    assert found.pairs.shape == tuple(len(one.words) for one in found.texts)
    assert found.pairs.sum() == pytest.approx(expected, abs=1e-4)


def test_explain_repeats_with_a_seed(tiny, found):
    again = tiny.explain(ONE, TWO, "the sport")
    assert again.to_dict() == found.to_dict()
    other = tiny.explain(ONE, TWO, "the sport", seed=1)
    assert other.to_dict() != found.to_dict()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("He paid $3.50, e.g. for C++ - don't!", ["He", "paid", "$3.50", "e.g", "for", "C++", "-",
                                                 "don't"]),
        ("三人。Yes", ["三", "人", "Yes"]),
        ("!!!", ["!!!"]),
        (" hi 👍\n", ["hi", "👍"]),
    ],
)  # fmt: skip
def test_occlusion_words_are_parts_of_the_text(text, words):
    occlusion = Occlusion(text, samples=1, seed=0)
    assert [text[start:stop] for start, stop in occlusion.spans] == words
    assert occlusion.texts[1] == text
    assert all(one.strip() for one in occlusion.texts)


def test_occlusion_long_text_is_explained_by_groups_of_words():
    text = " ".join(f"w{number}" for number in range(100))
    spans = Occlusion(text, samples=1, seed=0).spans
    assert len(spans) == 34  # three words each
    assert text[slice(*spans[0])] == "w0 w1 w2"


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        (("", TWO, "c"), {}, "must have text"),
        ((ONE, TWO, " "), {}, "must have text"),
        (([ONE], TWO, "c"), {}, "must be a str; got list"),
        ((ONE, "a " * 10_001, "c"), {}, "at most 20,000 characters.* got 20,002"),
        ((ONE, TWO, "c"), {"samples": 0}, "'samples' must be 1 or more"),
        ((ONE, TWO, "c"), {"scale": "percent"}, "Unknown scale"),
    ],
)
def test_explain_bad_input_is_refused(tiny, texts, options, message):
    with pytest.raises(InputError, match=message):
        tiny.explain(*texts, **options)


def test_explanation_html_escapes_texts_and_marks_words():
    explanation = SharedWords().explain("<b>x</b> the ball", "the ball & more", "a < b")
    html = explanation._repr_html_()
    assert "<b>x" not in html
    assert "a &lt; b" in html
    assert 'title="+0.050" style="background:rgba(66,133,208,0.75)">ball</span>' in html
    assert "&amp;" in html


def test_explanation_prints_texts_colors_and_the_sum(tiny):
    explanation = tiny.explain(ONE, TWO, "the sport")
    console = Console(force_terminal=True, color_system="truecolor", width=200, record=True)
    with console.capture() as captured:
        console.print(explanation)
    assert captured.get().count("48;2;") > 2
    table = explanation.table(top=3, ascii_only=True)
    assert len(table.splitlines()) == 6
    assert table.isascii()
    values = [float(line[24:].split()[0]) for line in table.splitlines()]
    assert sum(values[:-1]) == pytest.approx(values[-1], abs=0.004)
    with pytest.raises(InputError, match="must be 0 or more"):
        explanation.top(-1)


def test_explanation_plot_without_pairs_and_bad_suffix(tmp_path):
    explanation = SharedWords().explain("the $x$ ball", "a ball", "$c$")
    explanation.plot(tmp_path / "why.pdf")
    with pytest.raises(InputError, match=r"why\.gif: the suffix must be"):
        explanation.plot(tmp_path / "why.gif")


def test_explain_default_model_names_the_words_of_the_condition():
    model = load_scorer()
    one, two = "A man in a white cap plays tennis.", "A girl in a white dress swings a racket."
    color = model.explain(one, two, "color of the clothes")
    assert {word.text for _, word in color.top(2)} == {"white"}
    sport = model.explain(one, two, "the sport being played")
    assert sport.top(1)[0][1].text in ("tennis", "racket", "swings", "plays")


def test_plot_svg_holds_no_markup_of_the_texts(tmp_path):
    pytest.importorskip("matplotlib")
    texts = ('A <script>dog</script> "onmouseover=x" --> runs.', "A <b>cat</b> runs.")
    explanation = load_scorer(None).explain(*texts, 'the "onmouseover=" <i>animal</i>', samples=4)
    explanation.plot(tmp_path / "why.svg")
    content = (tmp_path / "why.svg").read_text("utf-8")
    ElementTree.fromstring(content)
    assert not any(mark in content for mark in ("onmouseover", "script", "<b>", "<i>"))
