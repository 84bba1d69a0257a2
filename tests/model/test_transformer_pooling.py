from __future__ import annotations

import numpy as np
import pytest

from condsim.errors import InputError, ModelError

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from condsim.model.torch import transformer_scorer  # noqa: E402

TEXTS = ["a dog runs", "two red cats on the street", "a man"]


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_transformer_scorer_is_that_of_the_last_layer(tiny_backbone, pooling):
    scorer = transformer_scorer(str(tiny_backbone), pooling=pooling, device="cpu")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_backbone)
    model = transformers.AutoModel.from_pretrained(tiny_backbone).eval()
    expected = []
    for text in TEXTS:
        with torch.no_grad():
            states = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        vector = (states[0] if pooling == "cls" else states.mean(dim=0)).numpy()
        expected.append(vector / np.linalg.norm(vector))
    assert np.allclose(scorer.encode(TEXTS), expected, atol=1e-5)
    assert scorer.name == f"{pooling}:{tiny_backbone.name}"
    assert scorer.calibration is None
    again = transformer_scorer(str(tiny_backbone), pooling=pooling)  # no dropout
    assert np.array_equal(again.encode(TEXTS), scorer.encode(TEXTS))


def test_transformer_scorer_bad_model_or_pooling_is_one_line(tiny_backbone, tmp_path):
    with pytest.raises(ModelError, match="Could not load"):
        transformer_scorer(str(tmp_path))
    with pytest.raises(InputError, match="Unknown pooling 'max'"):
        transformer_scorer(str(tiny_backbone), pooling="max")
