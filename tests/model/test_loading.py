"""From a name to a scorer; damaged folders are refused in one line, and never executed."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import huggingface_hub
import numpy as np
import pytest
import sentence_transformers
import transformers

import condsim
from condsim.errors import InputError, MissingExtraError, ModelError
from condsim.loading import load_encoder, load_scorer, named_scorer, open_scorer
from condsim.model.baselines import WordOverlapScorer
from condsim.model.builders import build_bi_encoder, build_cross_encoder
from condsim.model.calibration import UNCALIBRATED, Calibration
from condsim.model.onnx import OnnxScorer
from condsim.model.settings import DEFAULT_FOLDER, FILE_NAME, ModelSettings, revision_of
from condsim.model.torch import CrossEncoderScorer, EncoderScorer, load_hub_model, load_trained
from condsim.model.tri_encoder import build_tri_encoder

CALIBRATION = Calibration((-1.0, 0.5, 1.0), (0.0, 0.2, 1.0))
ROW = ("a man kicks a ball", "a girl throws a ball", "the sport")


def test_load_large_without_its_package_gives_the_install_command():
    with pytest.raises(MissingExtraError, match=r"not installed: pip install condsim-large$"):
        load_scorer("large")


def test_load_large_opens_the_installed_package(exported, tmp_path, monkeypatch):
    shutil.copytree(exported, tmp_path / "condsim_large" / "model")
    (tmp_path / "condsim_large" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert load_scorer("large").name == "tiny"
    assert named_scorer("large").revision() == f"model:{revision_of(exported)}"


def test_load_large_from_the_wheel_of_the_repository(exported, tmp_path, monkeypatch):
    pytest.importorskip("hatchling")
    source = Path(__file__).resolve().parents[2] / "packages" / "condsim-large"
    project = shutil.copytree(source, tmp_path / "project", ignore=shutil.ignore_patterns("model"))
    shutil.copytree(exported, project / "src" / "condsim_large" / "model")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=project, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("condsim_large-*.whl")
    shutil.unpack_archive(wheel, tmp_path / "installed", "zip")
    monkeypatch.syspath_prepend(tmp_path / "installed")
    assert load_scorer("large").name == "tiny"


def test_load_exported_and_trained_folders_give_the_same_scores(trained, exported):
    light, scorer = load_scorer(str(exported)), load_scorer(trained, device="cpu")
    assert isinstance(light, OnnxScorer)
    assert isinstance(scorer, EncoderScorer)
    assert light.name == scorer.name == "tiny"
    assert (scorer.order, scorer.calibration) == ("condition-first", CALIBRATION)
    assert scorer.score(*ROW) == pytest.approx(light.score(*ROW), abs=1e-5)


def test_load_folder_without_settings_is_uncalibrated(trained, tmp_path):
    folder = shutil.copytree(trained, tmp_path / "plain")
    (folder / "condsim.json").unlink()
    scorer = load_scorer(folder)
    assert (scorer.name, scorer.order) == ("plain", "condition-first")
    assert scorer.calibration == UNCALIBRATED


@pytest.mark.parametrize("with_settings", [True, False])
@pytest.mark.parametrize(
    "kind", [None, "condsim.encoders.tri_encoder.TriEncoder", "condsim.model.other.TriEncoder"]
)
def test_load_tri_encoder_also_by_former_names(tiny_backbone, tmp_path, with_settings, kind):
    encoder = build_tri_encoder(str(tiny_backbone))
    encoder.save_pretrained(str(tmp_path))
    if kind is not None:
        modules = json.loads((tmp_path / "modules.json").read_text())
        modules[0]["type"] = kind
        (tmp_path / "modules.json").write_text(json.dumps(modules))
    if with_settings:
        ModelSettings(kind="tri-encoder", name="tri", order="condition-first").save(tmp_path)
    scorer = load_scorer(tmp_path)
    expected = encoder.encode([[ROW[2], ROW[0]]], normalize_embeddings=True)
    np.testing.assert_allclose(scorer.encode([ROW[0]], ROW[2]), expected, atol=1e-6)


@pytest.mark.parametrize("with_settings", [True, False])
def test_load_cross_encoder(tiny_backbone, tmp_path, with_settings):
    build_cross_encoder(str(tiny_backbone)).save_pretrained(str(tmp_path))
    if with_settings:
        ModelSettings(
            kind="cross-encoder", name="cross", order="sentence-first", calibration=CALIBRATION
        ).save(tmp_path)
    scorer = load_scorer(tmp_path)
    assert isinstance(scorer, CrossEncoderScorer)
    raw = scorer.score(*ROW, scale="raw")
    expected = np.interp(raw, [-1, 0.5, 1], [0, 0.2, 1]) if with_settings else raw
    assert scorer.score(*ROW) == pytest.approx(expected, abs=1e-6)
    with pytest.raises(ModelError, match="gives only scores"):
        load_encoder(scorer)


def test_load_folder_without_a_model_refused(tmp_path):
    with pytest.raises(ModelError, match="is not a model"):
        load_scorer(tmp_path)
    ModelSettings(kind="bi-encoder", name="x", order="condition-first").save(tmp_path)
    with pytest.raises(ModelError, match="no weights"):
        load_scorer(tmp_path)


def test_load_without_extra_says_how_to_install(trained, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"needs torch.*pip install 'condsim\[train\]'"):
        load_scorer(trained)
    with pytest.raises(MissingExtraError, match=r"There is no folder 'owner/name'.*\[train\]"):
        load_scorer("owner/name")


def test_load_default_ignores_a_folder_of_that_name(exported, tmp_path, monkeypatch):
    shutil.copytree(exported, tmp_path / "default")
    monkeypatch.chdir(tmp_path)
    assert load_scorer("./default").name == "tiny"
    assert load_scorer("default").name == load_scorer(None).name == "condsim-minilm"
    assert revision_of(Path("default")) != revision_of("default")
    assert named_scorer(None).revision() == f"model:{revision_of(str(DEFAULT_FOLDER))}"


def test_load_name_unknown_to_the_hub_refused(monkeypatch):
    def refuse(name, *, device):
        raise OSError(f"{name} is not available\nmore lines")

    def answer(self, name, timeout):
        raise ValueError(name)

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", answer)
    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", refuse)
    with pytest.raises(ModelError, match=r"'owner/name' is neither a folder nor .* available$"):
        load_scorer("owner/name")


@pytest.mark.parametrize("model", ["nope", "cross-encoder:nope"])
def test_load_hub_out_of_reach_is_asked_once(monkeypatch, model):
    names = []

    def no_network(self, name, timeout):
        assert timeout <= 10
        names.append(name)
        raise ConnectionError("Name or service not known")

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", no_network)
    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", None)
    monkeypatch.setattr(sentence_transformers, "CrossEncoder", None)
    with pytest.raises(ModelError, match=r"^There is no folder 'nope', and the Hub cannot be rea"):
        open_scorer(model)
    assert names == ["nope"]


@pytest.mark.parametrize(
    ("text", "name", "source"),
    [
        (None, "default", "default"),
        ("owner/model", "model", "owner/model"),
        ("mean:owner/model", "mean:model", "mean:owner/model"),
        ("ours=cls:owner/model", "ours", "cls:owner/model"),
        ("word-overlap", "word-overlap", "word-overlap"),
        ("runs/a=b", "a=b", "runs/a=b"),
    ],
)
def test_named_scorer_parses_label_and_source(text, name, source):
    scorer = named_scorer(text)
    assert (scorer.name, scorer.source) == (name, source)


@pytest.mark.parametrize("text", ["mean:", "label=mean: ", ""])
def test_named_scorer_prefix_without_a_name_refused(text):
    with pytest.raises(InputError, match="must name a folder"):
        named_scorer(text)


def test_named_scorer_in_the_home_folder_lists_its_training_sets(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "model").symlink_to(DEFAULT_FOLDER)
    names = named_scorer("ours=~/model").trained_on()
    assert names == named_scorer(str(DEFAULT_FOLDER)).trained_on() != ()


def test_open_scorer_of_every_kind(tiny_backbone, trained):
    assert isinstance(load_scorer(), OnnxScorer)
    assert isinstance(open_scorer(None), OnnxScorer)
    assert isinstance(open_scorer("word-overlap"), WordOverlapScorer)
    assert open_scorer(str(trained)).name == "tiny"
    for prefix in ("mean", "cls"):
        assert isinstance(open_scorer(f"{prefix}:{tiny_backbone}"), EncoderScorer)


def test_open_scorer_cross_encoder_of_one_output(tiny_backbone, tmp_path):
    for labels in (1, 3):
        model = transformers.BertForSequenceClassification(
            transformers.BertConfig.from_pretrained(tiny_backbone, num_labels=labels)
        )
        folder = shutil.copytree(tiny_backbone, tmp_path / f"cross-{labels}")
        model.save_pretrained(folder)
    scorer = open_scorer(f"cross-encoder:{tmp_path / 'cross-1'}")
    assert isinstance(scorer, CrossEncoderScorer)
    assert scorer.score(["a dog", "a cat"], ["a dog", "a man"]).shape == (2,)
    with pytest.raises(ModelError, match=r"must have one output, .* has 3"):
        open_scorer(f"cross-encoder:{tmp_path / 'cross-3'}")
    with pytest.raises(ModelError):
        open_scorer(f"cross-encoder:{tmp_path / 'none'}")
    with pytest.raises(ModelError, match=r"is a cross-encoder; name it cross-encoder:"):
        load_hub_model(str(tmp_path / "cross-1"))


def test_revision_changes_with_the_files_that_are_loaded(trained, tmp_path):
    folder = shutil.copytree(trained, tmp_path / "copy")
    first = revision_of(str(folder))
    assert first == revision_of(str(trained))
    (folder / "report.json").write_text("{}")
    (folder / "checkpoint-10").mkdir()
    (folder / "checkpoint-10" / "model.safetensors").write_bytes(b"x")
    assert revision_of(str(folder)) == first
    (folder / "1_Pooling" / "config.json").write_text("{}")
    assert revision_of(str(folder)) != first


def test_revision_unknown_is_none(tmp_path):
    (tmp_path / "prompt.yaml").write_text("model: x")
    assert revision_of(str(tmp_path / "prompt.yaml")) is None
    (tmp_path / "contexts.yaml").write_text("")
    assert revision_of(str(tmp_path)) is None
    assert revision_of("owner/never-downloaded") is None
    assert revision_of("not a hub name!") is None


def test_named_revision_depends_on_prefix_and_layer(tmp_path):
    path = tmp_path / "model.txt"
    path.write_text("x")
    names = [f"{path}", f"mean:{path}", f"cls:{path}", f"cls:{path}@1", f"cls:{path}@2"]
    assert len({named_scorer(name).revision() for name in names}) == 5
    assert named_scorer("tfidf-cosine").revision() == "tfidf-cosine"
    assert named_scorer(None).revision() == named_scorer("x=default").revision()


@pytest.fixture
def folder(tmp_path, tiny_backbone):
    """A bi-encoder with settings next to it."""
    path = tmp_path / "m"
    build_bi_encoder(str(tiny_backbone)).save(str(path), create_model_card=False)
    ModelSettings(kind="bi-encoder", name="m", order="condition-first").save(path)
    return path


class Evil:
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def change_json(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.safetensors"])
def test_load_trained_pickle_refused_and_not_run(folder, tmp_path, name):
    (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(pickle.dumps(Evil(tmp_path / "evil")))
    with pytest.raises(ModelError, match=r"is a pickle|cannot be loaded"):
        load_trained(folder)
    assert not (tmp_path / "evil").exists()


def test_load_trained_module_in_the_folder_is_not_run(folder, tmp_path):
    (folder / "evil.py").write_text(f"import os; os.mkdir({str(tmp_path / 'evil')!r})")
    change_json(folder / "modules.json", lambda modules: modules[0].update(type="evil.Evil"))
    with pytest.raises(ModelError):
        load_trained(folder)
    assert not (tmp_path / "evil").exists()


CONTENT = {
    "format": 1,
    "kind": "bi-encoder",
    "name": "some",
    "order": "condition-first",
    "calibration": None,
    "dimension": 384,
    "condsim": "0.0.1",
}


def write(folder, **changes):
    (folder / FILE_NAME).write_text(json.dumps(CONTENT | changes))


def test_settings_round_trip_is_equal(tmp_path):
    settings = ModelSettings(
        kind="tri-encoder",
        name="naïve",
        order="sentence-first",
        calibration=Calibration((-1.0, 1.0), (0.0, 1.0)),
        dimension=32,
        max_seq_length=64,
        layout="released",
        inputs="sentences",
        facts={"parameters": 5, "training_data": "x"},
    )
    settings.save(tmp_path)
    assert ModelSettings.load(tmp_path) == settings
    assert settings.condsim == condsim.__version__


def test_settings_of_the_contract_load(tmp_path):
    write(tmp_path)
    settings = ModelSettings.load(tmp_path)
    assert (settings.kind, settings.order) == ("bi-encoder", "condition-first")
    assert (settings.dimension, settings.max_seq_length) == (384, None)
    assert settings.facts == {}
    assert (settings.layout, settings.inputs) == ("pair", "both")  # of before they were noted


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 2}, "'format' must be 1 .*; got 2"),
        ({"kind": "other"}, "'kind' must be one of bi-encoder"),
        ({"order": None}, "'order' must be one of condition-first"),
        ({"inputs": ["both"]}, "'inputs' must be one of both"),
        ({"max_seq_length": 10**30}, "'max_seq_length' must be a whole number from 1 to 1,000,000"),
        ({"dimension": True}, "'dimension' must be a whole number"),
        ({"calibration": {"raw": ["0", "1"], "score": [0, 1]}}, "lists of numbers under 'raw'"),
        ({"calibration": {"raw": [0, 10**400], "score": [0, 1]}}, "lists of numbers under 'raw'"),
        ({"calibration": {"raw": [1, 0], "score": [0, 1]}}, "condsim.json: A calibration"),
        ({"facts": [1]}, "'facts' must be"),
    ],
)
def test_settings_broken_rule_refused(tmp_path, changes, message):
    write(tmp_path, **changes)
    with pytest.raises(ModelError, match=message):
        ModelSettings.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "near"), [("larg", "large"), ("Default", "default"), ("runs/by", "runs/bi")]
)
def test_load_name_with_a_slip_names_the_near_one_without_torch(tmp_path, monkeypatch, name, near):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "bi").mkdir(parents=True)
    ModelSettings(kind="bi-encoder", name="x", order="condition-first").save(tmp_path / "runs/bi")
    monkeypatch.setitem(sys.modules, "condsim.model.torch", None)
    with pytest.raises(ModelError, match=f"Did you mean '{near}'"):
        load_scorer(name)
