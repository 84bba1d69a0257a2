from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import huggingface_hub
import numpy as np
import pytest

from condsim.errors import InputError, MissingExtraError, ModelError
from condsim.loading import load_scorer, named_scorer, open_scorer
from condsim.model.calibration import UNCALIBRATED, Calibration
from condsim.model.onnx import OnnxScorer
from condsim.model.settings import DEFAULT_FOLDER, Settings, revision_of
from condsim.model.torch import CrossEncoderScorer, EncoderScorer

CALIBRATION = Calibration((-1.0, 0.5, 1.0), (0.0, 0.2, 1.0))
ROW = ("a man kicks a ball", "a girl throws a ball", "the sport")


@pytest.mark.parametrize("model", [None, "default"])
def test_load_no_name_gives_the_bundled_model(model):
    assert isinstance(load_scorer(model), OnnxScorer)


def test_load_exported_folder_by_text_or_path(exported):
    assert isinstance(load_scorer(str(exported)), OnnxScorer)
    assert load_scorer(exported).name == "tiny"


def test_load_trained_folder_uses_its_settings(trained, exported):
    scorer = load_scorer(str(trained), device="cpu")
    assert isinstance(scorer, EncoderScorer)
    assert (scorer.name, scorer.order, scorer.calibration) == (
        "tiny",
        "condition-first",
        CALIBRATION,
    )
    assert scorer.score(*ROW) == pytest.approx(load_scorer(exported).score(*ROW), abs=1e-5)


def test_load_folder_without_settings_condition_first_uncalibrated(trained, tmp_path):
    folder = shutil.copytree(trained, tmp_path / "plain")
    (folder / "condsim.json").unlink()
    scorer = load_scorer(folder)
    assert (scorer.name, scorer.order, scorer.calibration) == (
        "plain",
        "condition-first",
        UNCALIBRATED,
    )


@pytest.mark.parametrize("settled", [True, False])
def test_load_tri_encoder(tiny_backbone, tmp_path, settled):
    from condsim.model.tri_encoder import build_tri_encoder

    build_tri_encoder(str(tiny_backbone)).save_pretrained(str(tmp_path))
    if settled:
        Settings(kind="tri-encoder", name="tri", order="condition-first").save(tmp_path)
    scorer = load_scorer(tmp_path)
    assert isinstance(scorer, EncoderScorer)
    assert scorer.score([ROW[0]], [ROW[1]], [ROW[2]]).shape == (1,)
    assert scorer.encode([ROW[0]], ROW[2]).shape == (1, 32)


@pytest.mark.parametrize("settled", [True, False])
def test_load_cross_encoder(tiny_backbone, tmp_path, settled):
    from condsim.model.builders import build_cross_encoder

    build_cross_encoder(str(tiny_backbone)).save_pretrained(str(tmp_path))
    if settled:
        Settings(
            kind="cross-encoder", name="cross", order="sentence-first", calibration=CALIBRATION
        ).save(tmp_path)
    scorer = load_scorer(tmp_path)
    assert isinstance(scorer, CrossEncoderScorer)
    raw = scorer.score(*ROW, scale="raw")
    expected = np.interp(raw, [-1, 0.5, 1], [0, 0.2, 1]) if settled else raw
    assert scorer.score(*ROW) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("model", ["runs/none/there", "./none", "a b"])
def test_load_no_such_folder_refused(model):
    with pytest.raises(ModelError, match="There is no model folder"):
        load_scorer(model)


def test_load_file_refused(tmp_path):
    file = tmp_path / "model.zip"
    file.touch()
    with pytest.raises(ModelError, match="There is no model folder"):
        load_scorer(str(file))


def test_load_folder_without_model_refused(tmp_path):
    with pytest.raises(ModelError, match=r"holds no model: there must be a model.onnx"):
        load_scorer(tmp_path)


def test_load_folder_with_settings_alone_refused(tmp_path):
    Settings(kind="bi-encoder", name="x", order="condition-first").save(tmp_path)
    with pytest.raises(ModelError, match="no weights"):
        load_scorer(tmp_path)


@pytest.mark.parametrize(("modules", "configuration"), [("[{", "{}"), ("[]", "[]")])
def test_load_damaged_module_list_refused(tmp_path, modules, configuration):
    (tmp_path / "modules.json").write_text(modules)
    (tmp_path / "config_sentence_transformers.json").write_text(configuration)
    with pytest.raises(ModelError, match=r"modules.json is damaged"):
        load_scorer(tmp_path)


def test_load_weights_missing_refused(trained, tmp_path):
    folder = shutil.copytree(trained, tmp_path / "model")
    for file in folder.rglob("model.safetensors"):
        file.unlink()
    with pytest.raises(ModelError, match=r"bi-encoder .* cannot be loaded"):
        load_scorer(folder)


def test_load_trained_folder_without_extra_says_how_to_install(trained, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"needs torch.*pip install 'condsim\[train\]'"):
        load_scorer(trained)


def test_load_hub_name_without_extra_touches_no_network(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"There is no folder 'owner/name'.*\[train\]"):
        load_scorer("owner/name")


def test_load_default_is_what_ships_whatever_folders_there_are(exported, tmp_path, monkeypatch):
    shutil.copytree(exported, tmp_path / "default")
    settings = json.loads((tmp_path / "default" / "condsim.json").read_text())
    (tmp_path / "default" / "condsim.json").write_text(json.dumps(settings | {"name": "mine"}))
    monkeypatch.chdir(tmp_path)
    assert load_scorer("./default").name == "mine"
    assert load_scorer("default").name == load_scorer(None).name == "condsim-minilm"
    assert revision_of(Path("default")) != revision_of("default")
    assert named_scorer(None).revision() == f"model:{revision_of(str(DEFAULT_FOLDER))}"


def test_load_name_that_the_hub_does_not_give_refused(monkeypatch):
    import sentence_transformers

    def refuse(name, *, device):
        raise OSError(f"{name} is not to be had\nmore lines")

    def answer(self, name, timeout):
        raise ValueError(name)

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", answer)
    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", refuse)
    with pytest.raises(ModelError, match=r"no folder 'owner/name', and the Hub .* to be had$"):
        load_scorer("owner/name")


@pytest.mark.parametrize("model", ["nope", "cross-encoder:nope"])
def test_load_hub_out_of_reach_asked_once_and_said_in_one_line(monkeypatch, model):
    import sentence_transformers

    asked = []

    def no_network(self, name, timeout):
        assert timeout <= 10
        asked.append(name)
        raise ConnectionError("Name or service not known")

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", no_network)
    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", None)
    monkeypatch.setattr(sentence_transformers, "CrossEncoder", None)
    with pytest.raises(ModelError, match=r"^There is no folder 'nope', and the Hub cannot be rea"):
        open_scorer(model)
    assert asked == ["nope"]


@pytest.mark.parametrize("model", [3, b"model", "x" * 9999, "~nobody-of-that-name/model"])
def test_load_what_names_no_model_refused_in_one_line(model):
    with pytest.raises((ModelError, InputError)) as caught:
        load_scorer(model)
    assert len(str(caught.value)) < 300
