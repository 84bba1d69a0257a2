from __future__ import annotations

from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from condsim.errors import InputError
from condsim.model.builders import build_bi_encoder
from condsim.model.stored import StoredSentences
from condsim.model.tri_encoder import Fusion, build_tri_encoder

SENTENCES = ["A man throws a ball.", "A girl runs.", "Two dogs swim in a wide lake at noon."]
CONDITION = "the number of animals"


@pytest.fixture(params=get_args(Fusion))
def model(request: pytest.FixtureRequest, tiny_backbone: Path) -> SentenceTransformer:
    return build_tri_encoder(str(tiny_backbone), fusion=request.param, rank=5)


def encoded(model: SentenceTransformer, sentences: list[str]) -> np.ndarray:
    pairs = [[CONDITION, sentence] for sentence in sentences]
    return model.encode(pairs, normalize_embeddings=True)


def test_stored_sentences_under_a_condition_equal_encoding_them_with_it(model):
    stored = StoredSentences.encode(model, SENTENCES, batch_size=2)
    assert stored.under(CONDITION) == pytest.approx(encoded(model, SENTENCES), abs=1e-5)


def test_stored_sentences_similarities_equal_cosines(model):
    stored = StoredSentences.encode(model, SENTENCES)
    again = StoredSentences(model, stored.vectors)
    query = "A cat sleeps."
    expected = encoded(model, SENTENCES) @ encoded(model, [query])[0]
    assert again.similarities(query, CONDITION) == pytest.approx(expected, abs=1e-5)


def test_stored_sentences_of_a_bi_encoder_raises(tiny_backbone):
    with pytest.raises(InputError, match="need a tri-encoder"):
        StoredSentences.encode(build_bi_encoder(str(tiny_backbone)), SENTENCES)


def test_stored_sentences_of_another_dimension_raises(tiny_backbone):
    model = build_tri_encoder(str(tiny_backbone))
    with pytest.raises(InputError, match=r"have the shape \(n, \d+\); got \(3, 7\)"):
        StoredSentences(model, np.zeros((3, 7), np.float32))
