from __future__ import annotations

import csv
import gzip
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import condsim
from condsim.errors import InputError

pytest.importorskip("sentence_transformers")
pytest.importorskip("faiss")
pytest.importorskip("sklearn")

from experiments.__main__ import app
from experiments.default_data import write_sibling_rows
from experiments.default_model import WEAK, DefaultModelFiles, make_default_model

from condsim.encoders import build_bi_encoder
from condsim.tasks import load_csts, load_task
from condsim.training import Recipe, load_recipe
from experiments import default_model

pytestmark = pytest.mark.filterwarnings("ignore:.*pin_memory.*:UserWarning")

WHO = ("Two men", "A woman", "Three children", "An old man", "A girl")
WHAT = ("ride brown horses", "walk a black dog", "play soccer", "eat a red apple")
WHERE = ("on a beach", "in a park", "near a lake", "in a street")
TEXTS = [f"{who} {what} {where}" for who in WHO for what in WHAT for where in WHERE]


def write_csts(path: Path, *, first: int, rows: int) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream)
        table.writerow(["sentence1", "sentence2", "condition", "label"])
        for row in range(first, first + rows):
            one, two = TEXTS[row % 80], TEXTS[(7 * row + 3) % 80]
            table.writerow([one, two, "number of people", 1 + row % 5])
            table.writerow([one, two, "type of animal", 5 - row % 5 if row % 3 else -1])


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data" / "csts-reannotated"
    folder.mkdir(parents=True)
    write_csts(folder / "train.csv", first=0, rows=40)
    write_csts(folder / "dev.csv", first=60, rows=20)
    for name in ("captions", "nli"):
        (tmp_path / "data" / name).mkdir()
    lines = [f"{row // 2}.jpg\t{text}" for row, text in enumerate(TEXTS)]
    write_gzip(tmp_path / "data/captions/a.tsv.gz", ["image_id\tcaption", *lines])
    for name in ("mnli_dev_matched", "snli_dev"):
        lines = [f"{text}.\tSomeone is there, {row}.\tneutral" for row, text in enumerate(TEXTS)]
        write_gzip(tmp_path / f"data/nli/{name}.tsv.gz", ["premise\thypothesis\tlabel", *lines])
    return folder


def write_gzip(path: Path, lines: list[str]) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        stream.write("\n".join(lines) + "\n")


def test_make_default_model_scores_goes_on_and_refuses_other_inputs(
    tmp_path, data, tiny_backbone, monkeypatch, caplog
):
    def short(path: Path) -> Recipe:
        return load_recipe(path).replaced(max_seq_length=48)  # the tiny backbone has 64 positions

    monkeypatch.setattr(default_model, "load_recipe", short)
    backbone = str(tmp_path / "backbone")
    build_bi_encoder(str(tiny_backbone), max_seq_length=48).save_pretrained(backbone)
    files = DefaultModelFiles(
        train=data / "train.csv",
        dev=data / "dev.csv",
        captions=(tmp_path / "data/captions/a.tsv.gz",),
        nli=tmp_path / "data/nli",
        backbone=backbone,
        teacher=backbone,
        seeds=(1, 2),
    )
    weak = WEAK.replaced(rows=40, absent=40, k=20, sample=None)
    work = tmp_path / "work"
    caplog.set_level("INFO", logger="condsim")
    report = make_default_model(files, work, weak=weak)
    assert report.model.name == "condsim-minilm"
    model = condsim.load(str(work / "exported"))
    assert 0 <= model.score(TEXTS[0], TEXTS[1], "number of people") <= 1
    assert 0 <= model.applicability(TEXTS[0], TEXTS[1], "type of animal") <= 1
    assert len(load_task(work / "plain.csv")) > 80
    assert {"sibling.csv", "teacher", "first", "tuned-1", "tuned-2"} < set(caplog.messages)
    joined = load_csts(work / "joined.csv")
    made = sum(len(load_csts(work / name)) for name in ("weak.csv", "sibling.csv"))
    assert len(joined) == made + 66  # labelled rows of train

    assert '"base_model": "' + backbone in (work / "exported" / "condsim.json").read_text()

    (work / "exported" / "applicability.json").unlink()
    before = (work / "mean" / "report.json").stat().st_mtime_ns
    again = make_default_model(files, work, weak=weak)
    assert again == report
    assert (work / "mean" / "report.json").stat().st_mtime_ns == before
    assert (work / "exported" / "applicability.json").is_file()
    assert caplog.messages.count("sibling.csv") == 1

    with pytest.raises(InputError, match="begun with other files or settings"):
        make_default_model(replace(files, seeds=(1, 3)), work, weak=weak)
    with pytest.raises(InputError, match=r"none\.csv is missing"):
        make_default_model(replace(files, dev=tmp_path / "none.csv"), work, weak=weak)


def test_make_default_model_killed_while_averaging_goes_on(tmp_path):
    making = default_model._Making(None, tmp_path)
    (tmp_path / "mean.partial").mkdir()
    (tmp_path / "mean.partial" / "recipe.yaml").touch()

    def average(runs, output, **_):
        assert not output.exists()
        output.mkdir()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(default_model, "average_models", average)
        files = DefaultModelFiles(Path("a"), Path("b"), (), Path("c"))
        assert replace(making, files=files).mean([]) == tmp_path / "mean"


def test_default_model_files_one_seed_raises():
    with pytest.raises(InputError, match="a mean of two runs or more"):
        DefaultModelFiles(Path("a"), Path("b"), (), Path("c"), seeds=(1,))


def test_reproduce_default_model_passes_options_on(tmp_path, data, monkeypatch):
    seen = []

    def make(files, work, progress):
        seen.append((files, work))
        figure = SimpleNamespace(value=70.0, low=67.0, high=73.0)
        return SimpleNamespace(model=SimpleNamespace(metrics={"spearman": figure}))

    monkeypatch.setattr(default_model, "make_default_model", make)
    words = ["--data", data.parent, "--runs", tmp_path, "--seeds", 2]
    words += ["--teacher", "big", "--backbone", "minilm"]
    result = CliRunner().invoke(app, ["default-model", *map(str, words)])
    assert result.exit_code == 0, result.output
    files, work = seen[0]
    assert (files.teacher, files.seeds) == ("big", (1, 2))
    assert files.backbone == "sentence-transformers/all-MiniLM-L6-v2"
    assert work == tmp_path / "default-model"
    assert "dev Spearman 70.0 [67.0, 73.0] before int8" in result.output


def test_write_sibling_rows_are_new_and_keep_the_dev_sentences_out(tmp_path, data):
    output = tmp_path / "sibling.csv"
    captions = [tmp_path / "data/captions/a.tsv.gz"]
    write_sibling_rows(captions, data / "train.csv", data / "dev.csv", output)
    rows, train = load_csts(output), load_csts(data / "train.csv")
    dev = load_csts(data / "dev.csv")
    there, new = (
        set(zip(task.sentences1, task.sentences2, task.conditions, strict=True))
        for task in (train, rows)
    )
    assert not new & there
    written = {*train.sentences1, *train.sentences2}
    siblings = {*rows.sentences1, *rows.sentences2} - written
    assert not siblings & {*dev.sentences1, *dev.sentences2}


def test_reproduce_default_model_says_what_is_missing(tmp_path):
    (tmp_path / "captions").mkdir()
    runner = CliRunner()
    for options, message in (
        ([], "Name the folder of the data sets with --data; it must hold captions"),
        (["--data", str(tmp_path / "none")], "--data must name a folder that holds captions"),
        (["--data", str(tmp_path)], "has no files of captions"),
        (["--rows", "5"], "--rows does not apply to default-model"),
        (["--backbone", "a", "--backbone", "b"], "has one --backbone"),
        (["--dry-run"], "--dry-run does not apply to default-model"),
    ):
        result = runner.invoke(app, ["default-model", *options])
        assert isinstance(result.exception, InputError)
        assert message in str(result.exception)
