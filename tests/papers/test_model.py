"""The default model's rows, trainer and suite, on tiny models."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from papers.model import natural, parts, rules  # noqa: E402
from papers.model.encoder import Encoder, EncoderConfig, load_weights, weights_of  # noqa: E402
from papers.model.groups import Group, read_groups, write_groups  # noqa: E402
from papers.model.pack import bare, pack, save_packed  # noqa: E402
from papers.model.plain import PlainVectors, embed_ids  # noqa: E402
from papers.model.rows import SOURCES  # noqa: E402
from papers.model.train import Run, Settings  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from tokenizers import (  # noqa: E402
    Tokenizer,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

from condsim.data.held_out import HeldOutTexts, text_digest  # noqa: E402
from condsim.evaluation.suite_data import TestSpec, load_natural_sets  # noqa: E402

SETTINGS = Path(natural.__file__).parent / "settings"
WORDS = "the food was good bad room clean dirty opinion about service slow fast".split()
SIZES = {
    "vocab_size": 30,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 40,
}


def checkpoint(folder: Path, kind: str = "mpnet") -> Path:
    """Writes a tiny random model and a tokenizer of whole words."""
    torch.manual_seed(0)
    config, network = {
        "bert": (transformers.BertConfig(**SIZES), transformers.BertModel),
        "mpnet": (transformers.MPNetConfig(**SIZES), transformers.MPNetModel),
    }[kind]
    model = network(config, add_pooling_layer=False)
    folder.mkdir(parents=True, exist_ok=True)
    state = {name: value.contiguous() for name, value in model.state_dict().items()}
    save_file(state, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config.to_dict() | {"model_type": kind}))
    vocabulary = {"<s>": 0, "<pad>": 1, "</s>": 2, "[UNK]": 3} | {
        word: place for place, word in enumerate(WORDS, 4)
    }
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.mark.parametrize("kind", ["bert", "mpnet"])
def test_encoder_equals_transformers(kind: str, tmp_path: Path) -> None:
    folder = checkpoint(tmp_path, kind)
    config = EncoderConfig.from_transformers(json.loads((folder / "config.json").read_text()))
    encoder = Encoder(config).eval()
    state = load_file(folder / "model.safetensors")
    load_weights(encoder, state)
    ids = torch.tensor([[5, 6, 7, 8, 9], [5, 6, 7, config.ids[2], config.ids[2]]])
    mask = ids != config.ids[2]
    second = torch.tensor([[0, 0, 1, 1, 1], [0, 1, 1, 0, 0]])
    network = {"bert": transformers.BertModel, "mpnet": transformers.MPNetModel}[kind]
    options = transformers.AutoConfig.for_model(kind, **SIZES)
    reference = network(options, add_pooling_layer=False).eval()
    reference.load_state_dict(state)
    extra = {"token_type_ids": second} if kind == "bert" else {}
    with torch.no_grad():
        states = reference(input_ids=ids, attention_mask=mask.long(), **extra).last_hidden_state
        weights = mask.unsqueeze(-1).float()
        mean = (states * weights).sum(1) / weights.sum(1)
        expected = torch.nn.functional.normalize(mean, dim=-1)
        assert torch.allclose(encoder(ids, mask, second), expected, atol=1e-5)
    saved = weights_of(encoder)
    assert all(torch.equal(saved[name], state[name]) for name in saved)


def test_embed_ids_keeps_order_of_rows(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path)
    config = EncoderConfig.from_transformers(json.loads((folder / "config.json").read_text()))
    encoder = Encoder(config).eval()
    rows = [([5, 6, 7], [0, 0, 0]), ([5], [0]), ([9, 8], [0, 1])]
    together = embed_ids(encoder, rows)
    apart = np.concatenate([embed_ids(encoder, [row]) for row in rows])
    # bfloat16 sums in another order where there is padding.
    assert np.abs(together - apart).max() < 0.02


def test_parts_rebuild_within_half_a_step(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "model")
    parts.quantise(folder, tmp_path / "weights.npz")
    parts.restore(tmp_path / "weights.npz", tmp_path / "again")
    former, again = (
        load_file(where / "model.safetensors") for where in (folder, tmp_path / "again")
    )
    assert set(again) <= set(former)
    for name, value in again.items():
        step = former[name].abs().max() / 127
        assert (value.float() - former[name]).abs().max() <= step * 0.51 + 1e-3
    for name in ("config.json", "tokenizer.json"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes()


def groups() -> list[Group]:
    texts = ["the food was good", "the food was bad", "the food was good the room dirty"]
    rows = [(0, 1, 0.0, 1.0), (0, 2, 1.0, 1.0), (1, 2, 0.0, 1.0)]
    labelled = Group([("the opinion about the food", text) for text in texts], rows)
    return [labelled, *(Group([(None, text)], plain=True) for text in texts)]


def test_write_groups_leaves_out_held_out_texts(tmp_path: Path) -> None:
    exclude = HeldOutTexts(frozenset({text_digest("The food was bad.")}))
    number = write_groups(groups(), tmp_path / "rows.jsonl.gz", exclude=exclude)
    kept = list(read_groups(tmp_path / "rows.jsonl.gz"))
    assert number == len(kept) == 2
    assert kept[0] == groups()[1]


def packed_folder(tmp_path: Path, model: Path) -> Path:
    folder = tmp_path / "packed"
    folder.mkdir()
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    plain = PlainVectors(model, tmp_path / "plain")
    for name, chosen in (("labelled", groups()[:1]), ("plain", groups()[1:])):
        packed = pack(chosen, tokenizer, plain, plain.of_inputs)
        save_packed(packed, folder / f"{name}.npz")
    return folder


def test_run_goes_on_as_if_never_stopped(tmp_path: Path) -> None:
    model = checkpoint(tmp_path / "model")
    packed = packed_folder(tmp_path, model)
    settings = {"shares": {"labelled": 2, "plain": 1}, "inputs_per_step": 5, "learning_rate": 1e-3}
    whole = Run(Settings(**settings, steps=4), packed, model, tmp_path / "whole")
    facts = list(whole.train())
    list(Run(Settings(**settings, steps=2), packed, model, tmp_path / "parts").train())
    second = Run(Settings(**settings, steps=4), packed, model, tmp_path / "parts")
    assert second.step == 2
    again = list(second.train())
    for one, two in zip(facts[2:], again, strict=True):
        assert one["mse"] == pytest.approx(two["mse"], abs=1e-3)
    assert (tmp_path / "parts" / "model.safetensors").is_file()


def test_run_freezes_embeddings_and_lower_layers(tmp_path: Path) -> None:
    model = checkpoint(tmp_path / "model")
    packed = packed_folder(tmp_path, model)
    settings = Settings(shares={"labelled": 1}, steps=2, frozen_layers=1, inputs_per_step=3)
    list(Run(settings, packed, model, tmp_path / "run").train())
    before, after = (
        load_file(folder / "model.safetensors") for folder in (model, tmp_path / "run")
    )
    moved = {name for name in after if not torch.equal(after[name], before[name].half())}
    assert moved
    assert all("layer.1." in name for name in moved)


def test_bare_condition_loses_marks_at_its_end() -> None:
    assert bare("the place?") == "the place"
    assert bare("?") == "?"
    assert bare(None) is None


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (7, "seven"),
        (42, "forty-two"),
        (105, "one hundred and five"),
        (1500, "one thousand five hundred"),
    ],
)
def test_in_words(number: int, words: str) -> None:
    assert rules.in_words(number) == words


def test_amount_label_falls_with_ratio() -> None:
    assert rules.amount_label(360, 360) == 1.0
    assert 0.5 > rules.amount_label(360, 300) > rules.amount_label(360, 6) > 0


def test_rules_of_dev_use_no_form_of_train() -> None:
    drawn = {
        part: {text for g in rules.roles(random.Random(0), part, number=60) for _, text in g.inputs}
        for part in ("train", "dev")
    }
    assert not drawn["train"] & drawn["dev"]


def test_labelled_group_of_a_silent_text_is_neither_alike_nor_different() -> None:
    group = rules.labelled_group(
        "the food", [("good food", True), ("bad food", False), ("ok", None)]
    )
    assert [row[2] for row in group.rows] == [0.0, 0.25, 0.25]


def test_measure_of_a_written_suite_mixes_in_the_plain_vector(tmp_path: Path) -> None:
    vectors = {"a": ([1, 0], [1, 0]), "b": ([1, 0], [0, 1]), "c": ([0, 1], [1, 0])}

    def embed(inputs: Sequence[tuple[str | None, str]]) -> np.ndarray:
        rows = [vectors[text][condition is not None] for condition, text in inputs]
        return np.array(rows, np.float32)

    cells = [("a", "b", 1), ("a", "c", 0)]
    rows = [{"text1": a, "text2": b, "condition": "x", "label": label} for a, b, label in cells]
    test = natural.Test(TestSpec("graded", "t", "auroc", ""), rows)
    sets = load_natural_sets(natural.write_suite([test], tmp_path))
    figures = natural.measure(embed, sets, shares={"with": 0, "half": 0.5, "without": 1})
    assert figures["graded: t"] == {"with": 0.0, "half": 50.0, "without": 100.0}


def test_run_embeds_plain_texts_that_were_packed_without_vectors(tmp_path: Path) -> None:
    model = checkpoint(tmp_path / "model")
    packed = packed_folder(tmp_path, model)
    settings = Settings(shares={"plain": 1}, steps=1)
    stored = Run(settings, packed, model, tmp_path / "one").mixture.sources["plain"].arrays
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    plain = PlainVectors(model, tmp_path / "plain")
    save_packed(pack(groups()[1:], tokenizer, plain, None), packed / "plain.npz")
    again = Run(settings, packed, model, tmp_path / "two").mixture.sources["plain"].arrays
    assert np.abs(stored["vectors"] - again["vectors"]).max() < 0.02


def test_parts_of_upper_layers_join_onto_a_base(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "model")
    parts.quantise(folder, tmp_path / "weights.npz", from_layer=1)
    parts.restore(tmp_path / "weights.npz", tmp_path / "again", base=folder)
    former, again = (
        load_file(where / "model.safetensors") for where in (folder, tmp_path / "again")
    )
    lower = [name for name in again if ".layer.1." not in name]
    assert all(torch.equal(again[name], former[name].half()) for name in lower)
    with np.load(tmp_path / "weights.npz") as stored:
        assert all(".layer.1." in name or name in parts.TEXT_FILES for name in stored.files)


@pytest.mark.parametrize("path", sorted(SETTINGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_settings_name_sources_that_exist(path: Path) -> None:
    settings = Settings.load(path)
    assert settings.steps > 0
    assert set(settings.shares) - {"taught"} <= set(SOURCES)
