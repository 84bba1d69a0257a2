"""The BERTopic backend, with the real BERTopic."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("bertopic")

import bertopic
from bertopic.dimensionality import BaseDimensionalityReduction
from bertopic.representation import KeyBERTInspired
from sklearn.cluster import KMeans

from condsim_integrations.bertopic import BertopicBackend

pytestmark = pytest.mark.filterwarnings("ignore")  # of BERTopic and the libraries it loads

ANIMALS = ("dog", "cat", "bird", "fish")
COLORS = ("red", "blue", "green", "yellow")
TEXTS = [
    f"A {color} {animal} {where}."
    for animal in ANIMALS
    for color in COLORS
    for where in ("on a table", "in a box", "near a tree")
]


def topics_of(condition):
    model = bertopic.BERTopic(
        embedding_model=BertopicBackend(condition),
        umap_model=BaseDimensionalityReduction(),
        hdbscan_model=KMeans(4, n_init=10, random_state=0),
        representation_model=KeyBERTInspired(),
        top_n_words=5,
    )
    topics, _ = model.fit_transform(TEXTS)
    return model, topics


def agreement(topics, words):
    """The share of texts whose topic is most often that of their word."""
    found = np.array([[word in text for word in words] for text in TEXTS])
    return sum(found[np.array(topics) == topic].sum(axis=0).max() for topic in set(topics)) / len(
        TEXTS
    )


def test_bertopic_topics_follow_the_condition():
    for condition, same, other in (
        ("the animal", ANIMALS, COLORS),
        ("the color", COLORS, ANIMALS),
    ):
        model, topics = topics_of(condition)
        assert agreement(topics, same) > agreement(topics, other)
        assert len(model.get_topic_info()) == 4


def test_backend_of_empty_words_gives_zeros():
    found = BertopicBackend("the animal").embed_words(np.array(["", "dog"]))
    assert found.dtype == np.float32
    assert np.linalg.norm(found, axis=1) == pytest.approx([0, 1], abs=1e-5)


def test_topic_model_is_saved_and_loaded_with_the_backend(tmp_path):
    model, topics = topics_of("the animal")
    model.save(tmp_path / "pickled", serialization="pickle")
    again = bertopic.BERTopic.load(tmp_path / "pickled")
    assert again.embedding_model.condition == "the animal"
    assert again.transform(TEXTS[:5])[0] == topics[:5]
    model.save(tmp_path / "folder", serialization="safetensors")
    again = bertopic.BERTopic.load(tmp_path / "folder", BertopicBackend("the animal"))
    assert len(again.transform(TEXTS[:5])[0]) == 5
