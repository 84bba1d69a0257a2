"""Both default models from tiny data, and the parts of what ships."""

from __future__ import annotations

import json
from functools import partial

import pytest

pytest.importorskip("sentence_transformers")
transformers = pytest.importorskip("transformers")
pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")

import yaml  # noqa: E402
from papers.__main__ import app  # noqa: E402
from papers.model import (  # noqa: E402
    balanced,
    noise,
    pipeline,
    rows,
    shipping,
    sources,
    teach,
)
from papers.model.groups import read_groups  # noqa: E402
from tests.papers.conftest import whole_word_tokenizer  # noqa: E402
from tests.papers.made_up import (  # noqa: E402
    TEXTS,
    rated,
    use_made_up,
    write_lines,
    write_table,
)
from typer.testing import CliRunner  # noqa: E402

import condsim  # noqa: E402
from condsim.data.held_out import held_out_texts  # noqa: E402
from condsim.errors import InputError  # noqa: E402
from condsim.model.builders import build_bi_encoder  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning")

LABELED = {"attributes", "balanced-csts", "combined", "graded", "titles"}


def checkpoint(folder, save_random, *, hidden):
    """Write a tiny random MPNet with a tokenizer of whole words, as sentence-transformers does."""
    words = sorted({w for text in TEXTS for w in text.lower().split()} | {"the", "place", "person"})
    tokenizer = whole_word_tokenizer(words)
    config = transformers.MPNetConfig(
        vocab_size=len(words) + 4,
        hidden_size=hidden,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=512,
    )
    plain = folder.with_name(f"{folder.name}-plain")
    names = {"bos_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "pad_token": "<pad>"}
    names |= {"unk_token": "[UNK]", "cls_token": "<s>"}
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)
    save_random(plain, transformers.MPNetModel, config, fast)
    build_bi_encoder(str(plain), max_seq_length=128).save_pretrained(str(folder))
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        assert (folder / name).is_file()
    return folder


@pytest.fixture
def data(tmp_path, monkeypatch):
    folder = use_made_up(tmp_path, monkeypatch)
    monkeypatch.setattr(pipeline, "ROOT", tmp_path / "own")
    monkeypatch.setattr(pipeline, "teach", partial(teach.teach, inputs=40))
    # The words of noise are not in the vocabulary of the tiny models.
    monkeypatch.setattr(noise, "SHARE_OF_GROUPS", 0)
    for name in ("LARGE_INPUTS", "SMALL_INPUTS"):
        monkeypatch.setattr(pipeline, name, 400)
    return folder


def write_recipes(folder):
    """Write recipes of a few steps in place of those that the models are made by."""
    labeled = {name: {"file": f"{name}.csv"} for name in LABELED}
    broad, taught = (
        {"file": f"{name}.csv", "vectors": f"{name}.npy", "objective": {"vectors": 2.0}}
        for name in ("broad", "taught")
    )
    sources = {
        "large": {**labeled, "broad": broad},
        "small-vectors": {"taught": taught},
        "small": {"taught": taught, "titles": labeled["titles"]},
        "large-continued": {"broad": broad, "combined": labeled["combined"]},
        "small-continued": {"broad": broad, "combined": labeled["combined"]},
    }
    for name, own in sources.items():
        values = yaml.safe_load((pipeline.SETTINGS / f"{name}.yaml").read_text("utf-8"))
        values |= {
            "sources": own,
            "steps": 2,
            "epochs": 1,
            "batch_size": 24,
            "train": "written.csv",
        }
        values |= {"freeze_layers": 0, "precision": "float32"}
        write_lines(folder / f"{name}.yaml", [yaml.safe_dump(values)])
    return folder


@pytest.mark.slow
def test_make_models_writes_what_ships_and_goes_on(tmp_path, data, save_random, caplog):
    settings = write_recipes(tmp_path / "settings")
    large = checkpoint(tmp_path / "large", save_random, hidden=64)
    small = checkpoint(tmp_path / "small", save_random, hidden=16)
    starts = pipeline.Starts(str(large), str(small), plain=str(small))
    work = tmp_path / "work"
    shipped = pipeline.make_models(data, starts, work, settings=settings)
    for model, folder in shipped.items():
        loaded = condsim.load(str(folder))
        assert loaded.name == model.name
        assert 0 <= loaded.score(TEXTS[0], TEXTS[1], "the person") <= 1
        assert 0 <= loaded.applicability(TEXTS[0], TEXTS[1], "the place") <= 1
        written = json.loads((folder / "condsim.json").read_text())
        assert written["max_seq_length"] == model.max_seq_length
        assert written["facts"]["base_model"] == model.base
        assert written["facts"]["criteria_sets"] == "a, mams, walmart_amazon"
        assert 0 <= written["facts"]["calibration_error_natural"] <= 1
        card = (folder / "README.md").read_text()
        assert model.name in card
        assert f"| longest input | {model.max_seq_length} tokens |" in card
    exclude = held_out_texts([data / sources.HELD_OUT])
    for name in rows.SOURCES:
        for group in read_groups(work / "rows" / f"{name}.jsonl.gz"):
            assert not any(text in exclude for _, text in group.inputs), name
    reports = {path: path.stat().st_mtime_ns for path in work.glob("*/report.json")}
    assert {path.parent.name for path in reports} == {
        "large",
        "small-vectors",
        "small",
        "large-continued",
        "small-continued",
        "averaged-large",
        "averaged-small",
    }
    for folder in shipped.values():
        (folder / "applicability.json").unlink()
    assert pipeline.make_models(data, starts, work, settings=settings) == shipped
    assert all((folder / "applicability.json").is_file() for folder in shipped.values())
    assert {path: path.stat().st_mtime_ns for path in reports} == reports


@pytest.mark.slow
def test_make_models_without_large_lets_the_default_model_go_on(tmp_path, data):
    settings = write_recipes(tmp_path / "settings")
    starts = pipeline.Starts(None, "default", plain="default")
    shipped = pipeline.make_models(data, starts, tmp_path / "work", settings=settings)
    assert [model.name for model in shipped] == ["condsim-minilm"]
    vectors = condsim.load(str(*shipped.values())).encode(TEXTS[:9])
    # Two steps change little.
    assert (vectors * condsim.load().encode(TEXTS[:9])).sum(axis=1).min() > 0.9


def test_calibration_error_two_bins_by_hand():
    # Bins {0.0, 0.2} and {0.8, 1.0}: mean scores 0.1 and 0.9, mean labels 0 and 0.8, in any order.
    scores, gold = [1.0, 0.0, 0.8, 0.2], [0.6, 0.0, 1.0, 0.0]
    assert shipping.calibration_error(scores, gold, bins=2) == pytest.approx(0.1)
    assert shipping.calibration_error(scores, gold, bins=1) == pytest.approx(0.1)
    assert shipping.calibration_error(scores, gold, bins=9) == pytest.approx(0.2)


def test_split_weights_scores_stay(tmp_path, exported_small):
    before = condsim.load(str(exported_small)).score(TEXTS[0], TEXTS[9], "the place")
    shipping.split_weights(exported_small, most=9_000_000)
    sizes = [path.stat().st_size for path in exported_small.iterdir()]
    assert len(list(exported_small.glob("weights-*.bin"))) > 1
    assert max(sizes) < 13_000_000
    after = condsim.load(str(exported_small)).score(TEXTS[0], TEXTS[9], "the place")
    assert after == pytest.approx(before, abs=1e-6)


@pytest.fixture
def exported_small(tmp_path):
    folder = tmp_path / "default"
    folder.mkdir()
    for path in condsim.model.DEFAULT_FOLDER.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


def test_csts_rows_mix_the_labels_of_both_origins(tmp_path):
    write_table(tmp_path / "train.csv", rated(0, 3))
    first = rated(0, 1)[0]
    key = balanced.row_key(first["sentence2"], first["sentence1"], first["condition"])
    write_table(tmp_path / "labels.csv", [{"key": key, "label": 5}])
    made = balanced.csts_rows(
        tmp_path / "train.csv", exclude=held_out_texts([]), labels=tmp_path / "labels.csv"
    )
    assert [row.label for row in made] == pytest.approx([0.4 * 1 + 0.6 * 5, 3, 2, 4, 3, 5])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "Name the folder of the data sets with --data; it must hold csts-reannotated"),
        (["--data", "none"], "--data must name a folder that holds csts-reannotated"),
        (["--seeds", "2"], "--seeds does not apply to default-model"),
        (["--backbone", "a"] * 3, "takes --backbone twice"),
        (["--dry-run"], "--dry-run does not apply to default-model"),
    ],
)
def test_default_model_says_what_is_missing(options, message):
    result = CliRunner().invoke(app, ["default-model", *options])
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)
