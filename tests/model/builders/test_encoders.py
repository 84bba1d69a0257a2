from __future__ import annotations

import json
import subprocess
import sys
from typing import get_args

import numpy as np
import pytest
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer

from condsim.errors import InputError
from condsim.model.builders import Pooling, build_bi_encoder, build_cross_encoder, separator_of
from condsim.model.inputs import conditional_sentences, cross_encoder_inputs

POOLINGS = get_args(Pooling)


@pytest.fixture(params=["bert", "roberta"])
def folder(request):
    name = "tiny_backbone" if request.param == "bert" else "tiny_roberta_backbone"
    return str(request.getfixturevalue(name))


@pytest.mark.parametrize("pooling", POOLINGS)
def test_bi_encoder_embedding_equals_naive_pooling(pooling, folder, pairs):
    model = build_bi_encoder(folder, pooling=pooling)
    backbone = model[0].model.eval()
    embeddings = model.encode(pairs)
    for pair, embedding in zip(pairs, embeddings, strict=True):
        tokens = model.tokenizer([pair[0]], [pair[1]], return_tensors="pt")
        with torch.no_grad():
            layers = backbone(**tokens, output_hidden_states=True).hidden_states  # 0: embeddings
        expected = {
            "cls": layers[-1][0, 0],
            "mean": layers[-1][0].mean(0),
            "mean_top2": (layers[-1][0].mean(0) + layers[-2][0].mean(0)) / 2,
            "mean_first_last": (layers[-1][0].mean(0) + layers[0][0].mean(0)) / 2,
        }[pooling]
        np.testing.assert_allclose(embedding, expected.numpy(), atol=1e-5)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_bi_encoder_saved_and_loaded_is_equal(pooling, folder, pairs, tmp_path):
    model = build_bi_encoder(
        folder, pooling=pooling, transform=True, dropout=0.3, max_seq_length=20
    )
    model.save(str(tmp_path), create_model_card=False)
    loaded = SentenceTransformer(str(tmp_path))
    assert loaded.max_seq_length == 20
    assert loaded[0].config.hidden_dropout_prob == 0.3
    np.testing.assert_array_equal(loaded.encode(pairs), model.encode(pairs))


@pytest.mark.slow
def test_bi_encoder_saved_loads_where_condsim_is_absent(tiny_backbone, pairs, tmp_path):
    model = build_bi_encoder(str(tiny_backbone), pooling="mean_first_last", transform=True)
    model.save(str(tmp_path), create_model_card=False)
    code = (
        "import json, sys\nsys.modules['condsim'] = None\n"
        "from sentence_transformers import SentenceTransformer\n"
        "pairs = json.loads(sys.argv[2])\n"
        "print(json.dumps(SentenceTransformer(sys.argv[1], device='cpu').encode(pairs).tolist()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), json.dumps(pairs)],
        capture_output=True,
        text=True,
        check=True,
    )
    np.testing.assert_allclose(json.loads(done.stdout), model.encode(pairs), atol=1e-5)


ONE, TWO, CONDITION = "a man throws a ball.", "two dogs run.", "the sport"


@pytest.mark.parametrize(
    ("fixture", "tokens"),
    [
        ("tiny_backbone", "[CLS] a ball [SEP] a dog [SEP] the sport [SEP]"),
        ("tiny_roberta_backbone", "<s> a Ġ </s> Ġ a Ġ </s> Ġth e </s>"),
    ],
)
def test_separator_of_released_gives_the_tokens_of_the_released_code(fixture, tokens, request):
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
def test_separator_of_pair_gives_the_tokens_of_a_pair(fixture, separator, request):
    tokenizer = build_cross_encoder(str(request.getfixturevalue(fixture))).tokenizer
    assert separator_of(tokenizer, "pair") == separator
    [pair] = cross_encoder_inputs([ONE], [TWO], [CONDITION], separator=separator, layout="pair")
    assert pair == [f"{ONE}{separator}{TWO}", CONDITION]
    assert tokenizer(pair[0])["input_ids"] == tokenizer(ONE, TWO)["input_ids"]


@pytest.mark.parametrize("transform", [True, False])
@pytest.mark.parametrize("pooling", get_args(Pooling))
def test_cross_encoder_saved_and_loaded_is_equal(pooling, transform, tiny_backbone, tmp_path):
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


def test_cross_encoder_score_is_the_bare_logit(tiny_backbone, tmp_path):
    model = build_cross_encoder(str(tiny_backbone))
    torch.nn.init.constant_(model[-1].linear.bias, 7.0)
    model.save(str(tmp_path), create_model_card=False)
    assert CrossEncoder(str(tmp_path)).predict([(ONE, CONDITION)])[0] > 1


def test_conditional_sentences_bare_conditions_end_in_no_mark():
    conditions = ["the place?", "the place. ", "place?!…", "??", "C++", "what (if any)"]
    pairs = conditional_sentences(["A?"] * 6, conditions, order="bare-condition-first")
    assert [first for first, _ in pairs] == [
        *("the place", "the place", "place"),
        *("??", "C++", "what (if any)"),
    ]
    assert {second for _, second in pairs} == {"A?"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "A. | B. | x?"),
        ({"order": "condition-first"}, "x? | A. | B."),
        ({"inputs": "sentences"}, "A. | B."),
        ({"inputs": "condition"}, "x?"),
        ({"inputs": "condition", "order": "bare-condition-first"}, "x"),
        ({"order": "bare-condition-first"}, "x | A. | B."),
        ({"layout": "pair"}, ["A. | B.", "x?"]),
        ({"layout": "pair", "order": "condition-first"}, ["x?", "A. | B."]),
        ({"layout": "pair", "inputs": "sentences"}, ["A.", "B."]),
    ],
)
def test_cross_encoder_inputs_holds_what_is_read_and_nothing_else(options, expected):
    given = cross_encoder_inputs(["A."], ["B."], ["x?"], separator=" | ", **options)
    assert given == [expected]


def test_cross_encoder_inputs_without_conditions_are_the_sentences():
    assert cross_encoder_inputs(["A."], ["B."], None, separator=" | ") == ["A. | B."]
    with pytest.raises(InputError, match="reads only conditions"):
        cross_encoder_inputs(["A."], ["B."], None, separator=" | ", inputs="condition")
