"""The scorer class for `ray.data`."""

from __future__ import annotations

import numpy as np
import pytest

import condsim
from condsim.errors import InputError
from condsim_integrations.ray import RayScorer

FIRST = ["A dog runs.", "Two men sit.", "A cat sleeps."]
SECOND = ["A dog sleeps.", "A man sits.", "A bird flies."]
CONDITIONS = ["the animal", "the number of people", "the animal"]


@pytest.fixture(scope="module")
def model():
    return condsim.load()


def test_batch_keeps_its_columns_and_gets_scores(model):
    columns = {"id": [7, 8, 9], "sentence1": FIRST, "sentence2": SECOND, "condition": CONDITIONS}
    batch = {name: np.array(values) for name, values in columns.items()}
    scored = RayScorer(overall=0.3)(batch)
    assert list(scored) == [*batch, "score"]
    np.testing.assert_allclose(
        scored["score"], model.score(FIRST, SECOND, CONDITIONS, overall=0.3), atol=1e-5
    )


def test_one_condition_stands_for_the_column_and_without_both_texts_are_compared_as_a_whole(model):
    batch = {"left": FIRST, "right": SECOND, "condition": CONDITIONS}
    columns = {"text1": "left", "text2": "right"}
    scored = RayScorer(condition="the action", scale="raw", **columns)(batch)
    expected = model.score(FIRST, SECOND, "the action", scale="raw")
    np.testing.assert_allclose(scored["score"], expected, atol=1e-5)
    plain = RayScorer(condition_column="none", **columns)(batch)
    np.testing.assert_allclose(plain["score"], model.score(FIRST, SECOND, None), atol=1e-5)


def test_missing_column_names_those_there_are():
    with pytest.raises(InputError, match="column 'sentence1' is missing; found 'left'"):
        RayScorer()({"left": FIRST})


@pytest.mark.slow
# Ray warns of its own settings.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_data_set_of_ray_is_scored(model, tmp_path):
    ray = pytest.importorskip("ray")
    pytest.importorskip("ray.data")
    rows = [
        {"sentence1": first, "sentence2": second, "condition": condition}
        for first, second, condition in zip(FIRST, SECOND, CONDITIONS, strict=True)
    ]
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=80 * 2**20,
    )
    try:
        scored = ray.data.from_items(rows).map_batches(RayScorer, concurrency=1)
        scores = {row["sentence1"]: row["score"] for row in scored.take_all()}
    finally:
        ray.shutdown()
    expected = model.score(FIRST, SECOND, CONDITIONS)
    np.testing.assert_allclose([scores[text] for text in FIRST], expected, atol=1e-5)
