from __future__ import annotations

import csv
import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import condsim
from condsim.errors import InputError

pytest.importorskip("sentence_transformers")
pytest.importorskip("faiss")
pytest.importorskip("sklearn")

from papers.__main__ import app
from papers.default_data import write_absent
from papers.default_model import WEAK, DefaultModelFiles, make_default_model
from papers.relabelled import caption_key, row_key

from condsim.data.csts import load_applicability, load_csts
from condsim.data.files import iter_rows
from condsim.data.held_out import held_out_texts, text_digest
from condsim.model.builders import build_bi_encoder
from condsim.training.recipe import Recipe, load_recipe
from papers import default_data, default_model

pytestmark = pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning")

WHO = ("Two men", "A woman", "Three children", "An old man", "A girl")
WHAT = ("ride brown horses", "walk a black dog", "play soccer", "eat a red apple")
WHERE = ("on a beach", "in a park", "near a lake", "in a street")
TEXTS = [f"{who} {what} {where}" for who in WHO for what in WHAT for where in WHERE]
HELD_OUT = (TEXTS[2], TEXTS[41], TEXTS[79])
MADE = (
    "csts",
    "captions",
    "weak",
    "absent",
    "plain",
    "criteria",
    "opinions",
    "attributes",
    "applies",
    "consistent",
    "further",
)


def texts_in(path: Path) -> set[str]:
    """The texts of a file of rows."""
    names = ["sentence1", "sentence2", "sentence"]
    rows = iter_rows(path, columns=[], optional=names)
    return {str(cell) for row in rows for cell in row.cells.values() if cell is not None}


def write_csts(path: Path, *, first: int, rows: int) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream)
        table.writerow(["sentence1", "sentence2", "condition", "label"])
        for row in range(first, first + rows):
            one, two = TEXTS[row % 80], TEXTS[(7 * row + 3) % 80]
            table.writerow([one, two, "number of people", 1 + row % 5])
            table.writerow([one, two, "type of animal", 5 - row % 5 if row % 3 else -1])


def attributes_of(*, place: str) -> list[str]:
    """Texts with two criteria, of which half the texts tell the second."""
    lines = []
    for who in WHO:
        for number, where in enumerate(WHERE):
            attributes = {"the person": who.lower()}
            if number % 2:
                attributes["the place"] = where
            text = f"{who}, {where}, {place}"
            lines.append(json.dumps({"text": text, "attributes": attributes}))
    held_out = {"text": HELD_OUT[0], "attributes": {"the person": "two men", "the place": "a lake"}}
    return [*lines, json.dumps(held_out)]


def write_written(path: Path, *, first: int) -> None:
    pairs = (
        f"notes ||| {TEXTS[row]}, he said. ||| {TEXTS[row + 9]}, she said. ||| who = 1 ; what = 5"
        for row in range(first, first + 20)
    )
    path.write_text("\n".join(pairs) + "\n", encoding="utf-8")


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data" / "csts-reannotated"
    folder.mkdir(parents=True)
    write_csts(folder / "train.csv", first=0, rows=40)
    write_csts(folder / "dev.csv", first=60, rows=20)
    lines = [text_digest(text).hex() for text in HELD_OUT]
    (folder / "held-out.sha256").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name in ("captions", "nli", "criteria", "criteria/a", "criteria/b", "own"):
        (tmp_path / "data" / name).mkdir()
    lines = [f"{row // 2}.jpg\t{text}" for row, text in enumerate(TEXTS)]
    write_gzip(tmp_path / "data/captions/a.tsv.gz", ["image_id\tcaption", *lines])
    for name in ("mnli_dev_matched", "snli_dev"):
        lines = [f"{text}.\tSomeone is there, {row}.\tneutral" for row, text in enumerate(TEXTS)]
        write_gzip(tmp_path / f"data/nli/{name}.tsv.gz", ["premise\thypothesis\tlabel", *lines])
    meta = {"a": {"use": "train"}, "b": {"use": "evaluation only"}}
    (tmp_path / "data/criteria/meta.json").write_text(json.dumps(meta), encoding="utf-8")
    for name in meta:
        lines = attributes_of(place=name)
        write_gzip(tmp_path / f"data/criteria/{name}/train.jsonl.gz", lines)
    write_csts(tmp_path / "data/criteria/dev_rows.csv", first=40, rows=20)
    lines = attributes_of(place="own")
    (tmp_path / "data/own/notes.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    pairs = [(TEXTS[row], TEXTS[row + 2], "the place", 1 + row % 5) for row in range(40)]
    lines = [f"{caption_key(a)},{caption_key(b)},{what},{label}" for a, b, what, label in pairs]
    text = "\n".join(["first,second,condition,label", *lines]) + "\n"
    (tmp_path / "data/own/captions.csv").write_text(text, encoding="utf-8")
    for name, first in (("train", 20), ("dev", 50)):
        write_written(tmp_path / f"data/own/{name}.txt", first=first)
    return folder


@pytest.fixture
def files(tmp_path, data):
    return DefaultModelFiles(
        train=data / "train.csv",
        dev=data / "dev.csv",
        captions=(tmp_path / "data/captions/a.tsv.gz",),
        nli=tmp_path / "data/nli",
        criteria=tmp_path / "data/criteria",
        held_out=data / "held-out.sha256",
        written=tmp_path / "data/own/train.txt",
        attributes=tmp_path / "data/own",
        caption_labels=tmp_path / "data/own/captions.csv",
    )


def write_gzip(path: Path, lines: list[str]) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        stream.write("\n".join(lines) + "\n")


@pytest.mark.slow
def test_make_default_model_scores_goes_on_and_refuses_other_inputs(
    tmp_path, data, files, tiny_backbone, monkeypatch, caplog
):
    def short(path: Path) -> Recipe:  # the tiny backbone has 64 positions
        recipe = load_recipe(path)
        steps = {"steps": 3, "batch_size": 16, "precision": "float32"}
        return recipe.replaced(max_seq_length=64, checkpoint_steps=0, **steps)

    monkeypatch.setattr(default_model, "load_recipe", short)
    backbone = str(tmp_path / "backbone")
    build_bi_encoder(str(tiny_backbone), max_seq_length=64).save_pretrained(backbone)
    files = replace(files, backbone=backbone, former=backbone)
    weak = WEAK.replaced(rows=40, absent=40, k=20, sample=None)
    work = tmp_path / "work"
    caplog.set_level("INFO", logger="condsim")
    report = make_default_model(files, work, weak=weak, folds=2)
    assert report.model.name == "condsim-minilm"
    assert report.rows == len(load_csts(files.dev).labelled())
    model = condsim.load(str(work / "exported"))
    assert 0 <= model.score(TEXTS[0], TEXTS[1], "number of people") <= 1
    assert 0 <= model.applicability(TEXTS[0], TEXTS[1], "type of animal") <= 1
    steps = {"csts.csv", "first", "consistent", "further", "fold-0", "fold-1", "settled"}
    assert steps < set(caplog.messages)
    settings = json.loads((work / "exported" / "condsim.json").read_text(encoding="utf-8"))
    assert settings["facts"]["base_model"] == backbone
    assert settings["order"] == "bare-condition-first"
    assert settings["facts"]["criteria_sets"] == "a"
    assert settings["facts"]["training_data"].startswith("dev ")  # not a fold of it
    assert "dev_spearman_float32" not in settings["facts"]

    held_out = held_out_texts([files.held_out])
    assert any(text in held_out for text in texts_in(files.train))
    for name in MADE:
        assert not [text for text in texts_in(work / f"{name}.csv") if text in held_out], name
    assert not any("b" in text.split(", ") for text in texts_in(work / "criteria.csv"))

    (work / "exported" / "applicability.json").unlink()
    before = (work / "final" / "report.json").stat().st_mtime_ns
    again = make_default_model(files, work, weak=weak, folds=2)
    assert again.model == report.model
    assert (work / "final" / "report.json").stat().st_mtime_ns == before
    assert (work / "exported" / "applicability.json").is_file()
    assert caplog.messages.count("csts.csv") == 1

    with pytest.raises(InputError, match="begun with other files or settings"):
        make_default_model(replace(files, backbone="minilm"), work, weak=weak)
    with pytest.raises(InputError, match=r"none\.csv is missing"):
        make_default_model(replace(files, dev=tmp_path / "none.csv"), work, weak=weak)


def test_write_labelled_mixes_the_labels_of_both_origins(tmp_path, data, monkeypatch):
    train = load_csts(data / "train.csv").labelled()
    key = row_key(train.sentences2[0], train.sentences1[0], train.conditions[0])
    monkeypatch.setattr(default_data, "read_labels", lambda: {key: 5.0})
    output = tmp_path / "csts.csv"
    default_data.write_labelled(data / "train.csv", output, exclude=held_out_texts([]))
    made = load_csts(output)
    assert made.labels[0] == pytest.approx(0.4 * train.labels[0] + 0.6 * 5)
    assert made.labels[1:].tolist() == train.labels[1:].tolist()


def test_write_absent_has_both_kinds_of_each_criterion(tmp_path, files):
    output = tmp_path / "applies.csv"
    none = held_out_texts([])
    write_absent([files.attributes / "notes.jsonl"], output, rows=20, exclude=none)
    task = load_applicability(output)
    assert set(task.conditions) == {"the place"}  # every text tells the person
    assert task.labels.tolist() == [1.0, 0.0] * 10


def test_reproduce_default_model_says_what_is_missing(tmp_path):
    (tmp_path / "captions").mkdir()
    runner = CliRunner()
    for options, message in (
        ([], "Name the folder of the data sets with --data; it must hold captions"),
        (["--data", str(tmp_path / "none")], "--data must name a folder that holds captions"),
        (["--data", str(tmp_path)], "has no files of captions"),
        (["--seeds", "2"], "--seeds does not apply to default-model"),
        (["--rows", "5"], "--rows does not apply to default-model"),
        (["--backbone", "a", "--backbone", "b"], "takes one --backbone"),
        (["--dry-run"], "--dry-run does not apply to default-model"),
    ):
        result = runner.invoke(app, ["default-model", *options])
        assert isinstance(result.exception, InputError)
        assert message in str(result.exception)
