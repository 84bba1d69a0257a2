"""The default model's rows, trainer and suite, on tiny models."""

from __future__ import annotations

import json
import random
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from papers.model import measured, natural, parts, rules  # noqa: E402
from papers.model.encoder import Encoder, EncoderConfig, load_weights, weights_of  # noqa: E402
from papers.model.groups import Group  # noqa: E402
from papers.model.pack import pack, save_packed  # noqa: E402
from papers.model.plain import PlainVectors  # noqa: E402
from papers.model.rows import SOURCES  # noqa: E402
from papers.model.teach import projection  # noqa: E402
from papers.model.train import Run, Settings  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from tests.papers.conftest import whole_word_tokenizer  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

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


def checkpoint(folder, kind="mpnet"):
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
    whole_word_tokenizer(WORDS).save(str(folder / "tokenizer.json"))
    return folder


@pytest.mark.parametrize("kind", ["bert", "mpnet"])
def test_encoder_equals_transformers(kind, tmp_path):
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


def test_parts_rebuild_within_half_a_step(tmp_path):
    folder = checkpoint(tmp_path / "model")
    parts.quantize(folder, tmp_path / "weights.npz")
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


def groups():
    texts = ["the food was good", "the food was bad", "the food was good the room dirty"]
    rows = [(0, 1, 0.0, 1.0), (0, 2, 1.0, 1.0), (1, 2, 0.0, 1.0)]
    labeled = Group([("the opinion about the food", text) for text in texts], rows)
    return [labeled, *(Group([(None, text)], plain=True) for text in texts)]


def packed_folder(tmp_path, model):
    folder = tmp_path / "packed"
    folder.mkdir()
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    plain = PlainVectors(model, tmp_path / "plain")
    for name, chosen in (("labeled", groups()[:1]), ("plain", groups()[1:])):
        packed = pack(chosen, tokenizer, plain, plain.of_inputs)
        save_packed(packed, folder / f"{name}.npz")
    return folder


def test_run_goes_on_as_if_never_stopped(tmp_path):
    model = checkpoint(tmp_path / "model")
    packed = packed_folder(tmp_path, model)
    settings = {"shares": {"labeled": 2, "plain": 1}, "inputs_per_step": 5, "learning_rate": 1e-3}
    whole = Run(Settings(**settings, steps=4), packed, model, tmp_path / "whole")
    facts = list(whole.train())
    list(Run(Settings(**settings, steps=2), packed, model, tmp_path / "parts").train())
    second = Run(Settings(**settings, steps=4), packed, model, tmp_path / "parts")
    assert second.step == 2
    again = list(second.train())
    for one, two in zip(facts[2:], again, strict=True):
        assert one["mse"] == pytest.approx(two["mse"], abs=1e-3)
    assert (tmp_path / "parts" / "model.safetensors").is_file()


def test_projection_keeps_the_plane_of_the_teacher_and_turns_it_to_the_student():
    plane = np.array([[3, 0], [0, 2], [1, 1]], np.float32)
    teacher = np.column_stack([plane, [0.1, 0, 0]]).astype(np.float32)
    # The student has the same two axes, turned by a quarter.
    student = np.column_stack([-plane[:, 1], plane[:, 0]])
    projected = teacher @ projection(teacher, student)
    np.testing.assert_allclose(projected, student, atol=0.05)
    np.testing.assert_allclose(projected @ projected.T, plane @ plane.T, atol=0.03)


def test_amount_label_falls_with_ratio():
    assert rules.amount_label(360, 360) == 1.0
    assert 0.5 > rules.amount_label(360, 300) > rules.amount_label(360, 6) > 0


@pytest.mark.parametrize("name", sorted(rules.RULES))
def test_rules_of_test_use_no_text_of_other_parts(name):
    generate, _ = rules.RULES[name]
    drawn = {}
    for part in ("train", "dev", "test"):
        groups = generate(random.Random(f"{name} {part}"), part, number=30)
        drawn[part] = {text for group in groups for _, text in group.inputs}
    assert not drawn["test"] & (drawn["train"] | drawn["dev"])


def test_rules_of_dev_use_no_form_of_train():
    drawn = {
        part: {text for g in rules.roles(random.Random(0), part, number=60) for _, text in g.inputs}
        for part in ("train", "dev")
    }
    assert not drawn["train"] & drawn["dev"]


def written_test(folder):
    """A suite of one test, whose pair ``a, b`` is alike."""
    cells = [("a", "b", 1), ("a", "c", 0)]
    rows = [{"text1": a, "text2": b, "condition": "x", "label": label} for a, b, label in cells]
    return natural.write_suite([natural.Test(TestSpec("graded", "t", "auroc", ""), rows)], folder)


def test_measure_of_a_written_suite_mixes_in_the_plain_vector(tmp_path):
    vectors = {"a": ([1, 0], [1, 0]), "b": ([1, 0], [0, 1]), "c": ([0, 1], [1, 0])}

    def embed(inputs):
        rows = [vectors[text][condition is not None] for condition, text in inputs]
        return np.array(rows, np.float32)

    sets = load_natural_sets(written_test(tmp_path))
    shares = {"with": 0, "half": 0.5, "without": 1}
    scores = partial(measured.share_scores, embed, shares=shares)
    tests, means = measured.measure(scores, sets, resamples=20)
    found = {name: figure[0] for name, figure in tests["graded: t"].items()}
    assert found == {"with": 0.0, "half": 50.0, "without": 100.0}
    assert means == tests["graded: t"]


def test_measured_command_adds_models_and_prints_the_file(tmp_path, monkeypatch, capsys):
    suite = written_test(tmp_path / "suite")
    out = tmp_path / "result.json"
    command = ["measured", str(suite), "--out", str(out), "--vectors", str(tmp_path / "vectors")]
    monkeypatch.setattr(sys, "argv", [*command, "--model", "default"])
    measured.main()
    table = capsys.readouterr().out
    results = json.loads(out.read_text())
    assert (results["suite"], results["tests"]) == ("suite", 1)
    assert list(results["models"]) == ["word-overlap", "condition-only", "default"]
    # All rows have one condition, from which nothing can be told.
    assert results["models"]["condition-only"]["tests"] == {"graded: t": {}}
    assert "| graded | 50.0 [" in table
    monkeypatch.setattr(sys, "argv", ["measured", "--out", str(out)])
    measured.main()
    assert capsys.readouterr().out == table


@pytest.mark.parametrize("path", sorted(SETTINGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_settings_name_sources_that_exist(path):
    settings = Settings.load(path)
    assert settings.steps > 0
    assert set(settings.shares) - {"taught"} <= set(SOURCES)
