from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from sentence_transformers import CrossEncoder

from condsim.errors import ModelError
from condsim.model.builders import Pooling, build_cross_encoder, separator_of
from condsim.model.inputs import cross_encoder_inputs

ONE, TWO, CONDITION = "a man throws a ball.", "two dogs run.", "the sport"


@pytest.mark.parametrize(
    ("fixture", "tokens"),
    [
        ("tiny_backbone", "[CLS] a ball [SEP] a dog [SEP] the sport [SEP]"),
        ("tiny_roberta_backbone", "<s> a Ġ </s> Ġ a Ġ </s> Ġth e </s>"),
    ],
)
def test_separator_of_released_gives_the_tokens_of_the_released_code(
    fixture: str, tokens: str, request: pytest.FixtureRequest
) -> None:
    tokenizer = build_cross_encoder(str(request.getfixturevalue(fixture))).tokenizer
    texts = ("a ball", "a dog", "the sport") if fixture == "tiny_backbone" else ("a", "a", "the")
    separator = separator_of(tokenizer, "released")
    text = cross_encoder_inputs(*([one] for one in texts), separator=separator)
    encoding = tokenizer(text, return_token_type_ids=True)
    assert tokenizer.convert_ids_to_tokens(encoding["input_ids"][0]) == tokens.split()
    assert set(encoding["token_type_ids"][0]) == {0}


@pytest.mark.parametrize(
    ("fixture", "separator"), [("tiny_backbone", "[SEP]"), ("tiny_roberta_backbone", "</s></s>")]
)
def test_separator_of_pair_gives_the_tokens_of_a_pair(
    fixture: str, separator: str, request: pytest.FixtureRequest
) -> None:
    tokenizer = build_cross_encoder(str(request.getfixturevalue(fixture))).tokenizer
    assert separator_of(tokenizer, "pair") == separator
    [pair] = cross_encoder_inputs([ONE], [TWO], [CONDITION], separator=separator, layout="pair")
    assert pair == [f"{ONE}{separator}{TWO}", CONDITION]
    assert tokenizer(pair[0])["input_ids"] == tokenizer(ONE, TWO)["input_ids"]


@pytest.mark.parametrize("layout", ["released", "pair"])
def test_separator_of_none_raises(layout: Any) -> None:
    class Bare:
        sep_token = None
        all_special_tokens: list[str] = []  # noqa: RUF012

        def __call__(self, *_: str) -> Any:
            class Encoding(dict):  # type: ignore[type-arg]
                def sequence_ids(self) -> list[int]:
                    return [0, 1]

            return Encoding(input_ids=[5, 6])

        def convert_ids_to_tokens(self, ids: list[int]) -> list[str]:
            return [str(number) for number in ids]

    with pytest.raises(ModelError, match="has no separator"):
        separator_of(Bare(), layout)  # type: ignore[arg-type]


@pytest.mark.parametrize("transform", [True, False])
@pytest.mark.parametrize("pooling", get_args(Pooling))
def test_cross_encoder_saved_and_loaded_is_equal(
    pooling: Any, transform: bool, tiny_backbone: Path, tmp_path: Path
) -> None:
    model = build_cross_encoder(
        str(tiny_backbone), pooling=pooling, transform=transform, max_seq_length=24
    )
    pairs = [[f"{ONE}[SEP]{TWO}", CONDITION], [f"{TWO}[SEP]{ONE}", CONDITION]]
    scores = model.predict(pairs)
    model.save(str(tmp_path), create_model_card=False)
    loaded = CrossEncoder(str(tmp_path))
    assert (loaded.num_labels, loaded.max_seq_length) == (1, 24)
    assert scores.shape == (2,)
    np.testing.assert_array_equal(loaded.predict(pairs), scores)


def test_cross_encoder_score_is_the_bare_logit(tiny_backbone: Path, tmp_path: Path) -> None:
    model = build_cross_encoder(str(tiny_backbone))
    torch.nn.init.constant_(model[-1].linear.bias, 7.0)
    model.save(str(tmp_path), create_model_card=False)
    assert CrossEncoder(str(tmp_path)).predict([(ONE, CONDITION)])[0] > 1


def test_cross_encoder_transform_adds_one_dense_layer(tiny_backbone: Path) -> None:
    with_transform = build_cross_encoder(str(tiny_backbone), transform=True, dropout=0.2)
    without = build_cross_encoder(str(tiny_backbone), transform=False, dropout=0.2)
    names = [type(module).__name__ for module in with_transform]
    assert names == ["Transformer", "Pooling", "Dense", "Dropout", "Dense"]
    names = [type(module).__name__ for module in without]
    assert names == ["Transformer", "Pooling", "Dropout", "Dense"]
    assert without[2].dropout == 0.2
