"""Folders of torch models that are damaged: refused in one line, and never executed."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from condsim.errors import ModelError
from condsim.model.settings import FILE_NAME
from condsim.model.trained import load_trained

pytest.importorskip("sentence_transformers")


@pytest.fixture
def model(tmp_path: Path, tiny_backbone: Path) -> Path:
    """A bi-encoder with settings beside it."""
    from condsim.model.builders import build_bi_encoder

    folder = tmp_path / "m"
    build_bi_encoder(str(tiny_backbone), pooling="mean").save(str(folder), create_model_card=False)
    settings = {"format": 1, "kind": "bi-encoder", "name": "m", "order": "condition-first"}
    (folder / FILE_NAME).write_text(json.dumps(settings))
    return folder


class _Evil:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.path),)


def _tensors(folder: Path, change: Callable[[dict[str, object]], dict[str, object]]) -> None:
    from safetensors.torch import load_file, save_file

    file = folder / "model.safetensors"
    save_file(change(load_file(file)), file, metadata={"format": "pt"})


def _modules(folder: Path, kind: object) -> None:
    modules = json.loads((folder / "modules.json").read_text())
    modules[0]["type"] = kind
    (folder / "modules.json").write_text(json.dumps(modules))


def test_load_trained_pickled_weights_are_refused_and_not_run(model, tmp_path):
    (model / "model.safetensors").unlink()
    (model / "pytorch_model.bin").write_bytes(pickle.dumps(_Evil(tmp_path / "evil")))
    with pytest.raises(ModelError, match=r"pytorch_model\.bin holds weights in a pickle"):
        load_trained(model)
    assert not (tmp_path / "evil").exists()


def test_load_trained_pickle_named_safetensors_is_refused_and_not_run(model, tmp_path):
    (model / "model.safetensors").write_bytes(pickle.dumps(_Evil(tmp_path / "evil")))
    with pytest.raises(ModelError, match="cannot be loaded"):
        load_trained(model)
    assert not (tmp_path / "evil").exists()


def test_load_trained_weights_that_lack_a_layer_are_refused(model):
    _tensors(model, lambda kept: {name: one for name, one in kept.items() if "layer.1" not in name})
    with pytest.raises(ModelError, match=r"model\.safetensors lacks '.*layer\.1"):
        load_trained(model)


def test_load_trained_module_of_the_folder_is_not_run(model, tmp_path):
    (model / "evil.py").write_text(f"import os; os.mkdir({str(tmp_path / 'evil')!r})")
    _modules(model, "evil.Evil")
    with pytest.raises(ModelError, match="cannot be loaded"):
        load_trained(model)
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("content", [b"", b"hello", b"\xff" * 100])
def test_load_trained_weights_that_are_none_are_refused(model, content):
    (model / "model.safetensors").write_bytes(content)
    with pytest.raises(ModelError, match="cannot be loaded"):
        load_trained(model)


def test_load_trained_module_type_of_a_number_is_refused(model):
    _modules(model, 5)
    with pytest.raises(ModelError, match=r"modules\.json|cannot be loaded"):
        load_trained(model)


def test_load_trained_config_with_a_text_for_a_number_is_refused(model):
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"hidden_size": "x"}))
    with pytest.raises(ModelError, match="cannot be loaded"):
        load_trained(model)


def test_score_weights_of_nan_are_refused(model):
    _tensors(model, lambda kept: {name: one * float("nan") for name, one in kept.items()})
    with pytest.raises(ModelError, match="not finite"):
        load_trained(model).score(["a man"], ["a dog"], ["the sport"])


def test_score_tokenizer_of_a_larger_vocabulary_is_refused(model):
    path = model / "tokenizer.json"
    content = json.loads(path.read_text())
    words = content["model"]["vocab"]
    content["model"]["vocab"] = {word: 10 * number for word, number in words.items()}
    path.write_text(json.dumps(content))
    with pytest.raises(ModelError):
        load_trained(model).score(["a man"], ["a dog"], ["the sport"])
