from __future__ import annotations

import shutil
from types import SimpleNamespace

import huggingface_hub.constants
import pytest
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModel

from condsim.errors import InputError, ModelError
from condsim.model import builders as backbone_module
from condsim.model.builders import dropout_of, load_backbone, resolve_backbone
from condsim.paths import sha256_of

MINILM = "sentence-transformers/all-MiniLM-L6-v2"


@pytest.fixture
def minilm_package(tmp_path, monkeypatch):
    """A stand-in for the package that carries MiniLM, with other weights."""
    weights = tmp_path / "model" / "model.safetensors"
    weights.parent.mkdir()
    weights.write_bytes(b"weights")
    package = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr("importlib.util.find_spec", lambda _: package)
    return weights


def test_resolve_backbone_folder_is_found_and_hub_name_unchanged(tmp_path, monkeypatch):
    assert resolve_backbone(str(tmp_path)) == str(tmp_path)
    assert resolve_backbone("someone/some-model") == "someone/some-model"
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "models").mkdir()
    assert resolve_backbone("~/models") == str(tmp_path / "models")


@pytest.mark.parametrize("name", ["./no-such-folder", "models/no/such/folder"])
def test_resolve_backbone_missing_folder_raises(name):
    with pytest.raises(ModelError, match=f"backbone folder '{name}' does not exist"):
        resolve_backbone(name)


@pytest.mark.parametrize("name", [MINILM, "all-MiniLM-L6-v2"])
def test_resolve_backbone_minilm_is_the_package(name, minilm_package, monkeypatch):
    monkeypatch.setattr("condsim.model.minilm._MINILM_SHA256", sha256_of(minilm_package))
    assert resolve_backbone(name) == str(minilm_package.parent)


def test_resolve_backbone_minilm_with_other_weights_raises(minilm_package):
    with pytest.raises(ModelError, match="must have SHA-256 53aa51172d"):
        resolve_backbone(MINILM)
    minilm_package.unlink()
    with pytest.raises(ModelError, match="got no such file"):
        resolve_backbone(MINILM)


@pytest.mark.parametrize(
    ("name", "advice"), [(MINILM, r"pip install 'condsim\[minilm\]'"), ("someone/none", "offline")]
)
def test_load_backbone_offline_raises_with_advice(name, advice, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr(backbone_module, "try_to_load_from_cache", lambda *_: None)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match=f"Could not load the backbone '{name}': .*{advice}"):
        load_backbone(name)


def test_load_backbone_damaged_config_raises(tmp_path, tiny_backbone):
    folder = tmp_path / "damaged"
    shutil.copytree(tiny_backbone, folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(ModelError):
        load_backbone(str(folder))


def test_load_backbone_sentence_transformers_folder_takes_its_transformer(tmp_path, tiny_backbone):
    folder = str(tmp_path / "model")
    model = SentenceTransformer(str(tiny_backbone))
    model.max_seq_length = 33
    model.save(folder, create_model_card=False)
    transformer = load_backbone(folder)
    assert transformer.max_seq_length == 33
    for name, value in model[0].model.state_dict().items():
        assert torch.equal(transformer.model.state_dict()[name], value)


def test_load_backbone_dropout_overrides_hidden_and_attention(tiny_backbone):
    config = load_backbone(str(tiny_backbone), dropout=0.25).config
    assert (config.hidden_dropout_prob, config.attention_probs_dropout_prob) == (0.25, 0.25)
    assert dropout_of(config) == 0.25
    assert dropout_of(load_backbone(str(tiny_backbone)).config) == 0.1


def test_load_backbone_half_precision_file_is_float32(tmp_path, tiny_backbone):
    folder = tmp_path / "half"
    shutil.copytree(tiny_backbone, folder)
    AutoModel.from_pretrained(tiny_backbone, dtype=torch.float16).save_pretrained(folder)
    assert next(load_backbone(str(folder)).parameters()).dtype == torch.float32


@pytest.mark.parametrize("length", [1, 65])
def test_load_backbone_bad_max_seq_length_raises(length, tiny_backbone, tiny_roberta_backbone):
    for folder in (tiny_backbone, tiny_roberta_backbone):  # RoBERTa: 66 positions, 2 reserved
        with pytest.raises(InputError, match="max_seq_length must be from 2 to 64"):
            load_backbone(str(folder), max_seq_length=length)
