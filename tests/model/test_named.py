from __future__ import annotations

import shutil

import pytest

from condsim.errors import InputError, ModelError
from condsim.loading import named_scorer, open_scorer
from condsim.model.baselines import WordOverlapScorer
from condsim.model.onnx import OnnxScorer
from condsim.model.settings import DEFAULT_FOLDER, revision_of
from condsim.model.torch import CrossEncoderScorer, EncoderScorer
from condsim.model.trained import load_hub_model


@pytest.mark.parametrize(
    ("given", "name", "source"),
    [
        (None, "default", "default"),
        ("owner/model", "model", "owner/model"),
        ("mean:owner/model", "mean:model", "mean:owner/model"),
        ("ours=cls:owner/model", "ours", "cls:owner/model"),
        ("bertscore:owner/model@9", "bertscore:model@9", "bertscore:owner/model@9"),
        ("word-overlap", "word-overlap", "word-overlap"),
        ("runs/a=b", "a=b", "runs/a=b"),
    ],
)
def test_named_scorer_reads_label_and_source(given, name, source):
    found = named_scorer(given)
    assert (found.name, found.source) == (name, source)


@pytest.mark.parametrize("given", ["mean:", "label=glove: ", ""])
def test_named_scorer_nothing_after_a_prefix_is_an_error(given):
    with pytest.raises(InputError, match="names no model"):
        named_scorer(given)


def test_named_scorer_in_the_home_folder_says_what_it_was_trained_on(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "model").symlink_to(DEFAULT_FOLDER)
    found = named_scorer("ours=~/model").trained_on()
    assert found == named_scorer(str(DEFAULT_FOLDER)).trained_on() != ()


def test_open_scorer_of_every_kind(tiny_backbone, trained):
    assert isinstance(open_scorer(None), OnnxScorer)
    assert isinstance(open_scorer("word-overlap"), WordOverlapScorer)
    assert open_scorer(str(trained)).name == "tiny"
    for prefix in ("mean", "cls"):
        assert isinstance(open_scorer(f"{prefix}:{tiny_backbone}"), EncoderScorer)


def test_open_scorer_cross_encoder_of_one_output(tiny_backbone, tmp_path):
    transformers = pytest.importorskip("transformers")
    for labels in (1, 3):
        model = transformers.BertForSequenceClassification(
            transformers.BertConfig.from_pretrained(tiny_backbone, num_labels=labels)
        )
        folder = tmp_path / f"cross-{labels}"
        shutil.copytree(tiny_backbone, folder)
        model.save_pretrained(folder)
    scorer = open_scorer(f"cross-encoder:{tmp_path / 'cross-1'}")
    assert isinstance(scorer, CrossEncoderScorer)
    assert scorer.score(["a dog", "a cat"], ["a dog", "a man"]).shape == (2,)
    with pytest.raises(ModelError, match=r"must have one output, a similarity. It has 3"):
        open_scorer(f"cross-encoder:{tmp_path / 'cross-3'}")
    with pytest.raises(ModelError, match="cannot be loaded"):
        open_scorer(f"cross-encoder:{tmp_path / 'none'}")
    with pytest.raises(ModelError, match=r"is a cross-encoder\. Name it cross-encoder:"):
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


def test_revision_of_what_cannot_be_told_is_none(tmp_path):
    (tmp_path / "prompt.yaml").write_text("model: x")
    assert revision_of(str(tmp_path / "prompt.yaml")) is None
    (tmp_path / "contexts.yaml").write_text("")
    assert revision_of(str(tmp_path)) is None
    assert revision_of("owner/never-downloaded") is None
    assert revision_of("not a hub name!") is None


def test_named_revision_tells_kind_and_layer(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("dog 1 2\n")
    found = {named_scorer(f"{kind}{path}").revision() for kind in ("", "glove:", "bertscore:")}
    layered = {named_scorer(f"bertscore:{path}@{layer}").revision() for layer in (1, 2)}
    assert len(found | layered) == 5
    assert named_scorer("tfidf-cosine").revision() == "tfidf-cosine"
    assert named_scorer(None).revision() == named_scorer("x=default").revision()
