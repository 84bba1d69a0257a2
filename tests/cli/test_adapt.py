"""``condsim adapt``: pairs or a table go in, and what it says at the end."""

from __future__ import annotations

import csv
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from condsim.cli.adapt import adapt, draw_rows
from condsim.cli.process import guard
from condsim.console import silent
from condsim.errors import InputError
from condsim.evaluation.report import ModelResult, Report
from condsim.evaluation.statistics import Metric
from condsim.training.adaptation import Adaptation, AdaptSettings

APP = typer.Typer(rich_markup_mode="markdown")
APP.command()(adapt)
guard(APP)
PAGE = Path(__file__).parents[2] / "docs" / "adapt.md"


def invoke(*words: object):
    return CliRunner().invoke(APP, [str(word) for word in words])


def result(output: Path | None, *, before: float, after: float) -> Adaptation:
    def model(name: str, value: float) -> ModelResult:
        metric = Metric(value, value - 5, value + 5)
        none = Metric(float("nan"), float("nan"), float("nan"))
        return ModelResult(name, {"spearman": metric, "pair_accuracy": none})

    report = Report(
        task="rows", task_revision="0", rows=30, valid_rows=30, invalid_rows=0, pairs=30,
        contrasting_pairs=0, model=model("new", after), baselines=(), against=model("old", before),
        comparison={}, seed=0, resamples=10, versions={}, created="now",
    )  # fmt: skip
    return Adaptation(
        output, report, train_rows=120, rehearsal_rows=500, moved=0.01, moved_most=0.04, seconds=1.0
    )


def test_adapt_that_helps_says_how_to_go_on(tmp_path, monkeypatch) -> None:
    found = result(tmp_path / "m", before=10, after=40)
    monkeypatch.setattr(sys.modules[Adaptation.__module__], "adapt", lambda *_, **__: found)
    (tmp_path / "rows.csv").write_text("sentence1,sentence2,condition,label\na,b,c,1\n")
    done = invoke(tmp_path / "rows.csv", "--output", tmp_path / "m")
    assert done.exit_code == 0
    assert re.search(r"Spearman +10\.0 \[5\.0, 15\.0\] +40\.0 \[35\.0, 45\.0\]", done.stdout)
    assert re.search(r"pair accuracy +- +-", done.stdout)
    assert "written in 0.0 minutes" in done.stdout
    assert "condsim evaluate rows.csv --model" in done.stdout


def test_adapt_columns_are_options(tmp_path, monkeypatch) -> None:
    read = {}

    def adapt(labelled: Path, output: Path, *, dev: Path, **_: object) -> Adaptation:
        read.update(labelled=labelled.read_text(), dev=dev.read_text())
        return result(output, before=10, after=40)

    monkeypatch.setattr(sys.modules[Adaptation.__module__], "adapt", adapt)
    for name in ("own", "dev"):
        (tmp_path / f"{name}.csv").write_text(
            "left;right;same;group\na;b;yes;1\nc;d;;1\ne;f;no;2\n"
        )
    names = "--text1 left --text2 right --condition colour --label same".split()
    words = ("--dev", tmp_path / "dev.csv", "--output", tmp_path / "m")
    done = invoke(tmp_path / "own.csv", *names, *words)
    assert done.exit_code == 0, done.exception
    rows = (
        "sentence1,sentence2,condition,label,set,group,criterion\n"
        "a,b,colour,5.0,,1,\ne,f,colour,1.0,,2,\n"
    )
    assert read == {"labelled": rows, "dev": rows}


def test_adapt_that_does_not_help_exits_with_1(tmp_path, monkeypatch) -> None:
    found = result(None, before=40, after=39)
    monkeypatch.setattr(sys.modules[Adaptation.__module__], "adapt", lambda *_, **__: found)
    (tmp_path / "rows.csv").write_text("sentence1,sentence2,condition,label\na,b,c,1\n")
    done = invoke(tmp_path / "rows.csv", "--output", tmp_path / "m")
    assert done.exit_code == 1
    assert "Not written: on your rows it does no better than before." in done.stdout


def test_rows_of_a_table_share_no_text_between_training_and_measuring(tmp_path) -> None:
    topics, moods = ("billing", "app", "parcel"), ("good", "bad")
    table = tmp_path / "tickets.csv"
    rows = [
        f"{mood} news about the {topic} number {number},{topic},{mood}\n"
        for topic in topics
        for mood in moods
        for number in range(12)
    ]
    table.write_text("text,topic,mood\n" + "".join(rows))
    folder = tmp_path / "drawn"
    folder.mkdir()
    files = draw_rows(
        table, folder, AdaptSettings(dev_share=0.3), column="text", criteria=None, rows=200,
        progress=silent,
    )  # fmt: skip
    texts = []
    for path in files:
        with path.open(newline="") as stream:
            drawn = list(csv.DictReader(stream))
        assert {row["criterion"] for row in drawn} == {"topic", "mood"}
        assert np.isclose(np.mean([float(row["label"]) for row in drawn]), 3)
        texts.append({row[side] for row in drawn for side in ("sentence1", "sentence2")})
    assert not texts[0] & texts[1]
    assert files[0].name == "tickets-train.csv"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_adapt_of_the_page_runs_with_the_default_model(tmp_path) -> None:
    block = re.search(r"```csv\n(.*?)```\n", PAGE.read_text(), re.DOTALL)
    assert block
    head, *rows = block[1].strip().splitlines()
    many = [row.replace(".,", f" ({number}).,", 1) for number in range(10) for row in rows]
    (tmp_path / "labelled.csv").write_text("\n".join([head, *many]) + "\n")
    done = invoke(
        tmp_path / "labelled.csv", "--output", tmp_path / "model", "--minutes", 0.2, "--force"
    )
    assert done.exit_code == 0, done.output
    assert (tmp_path / "model" / "applicability.json").is_file()
    assert "pair accuracy" in done.stdout


def test_rows_of_a_table_with_text_are_all_trained_on_with_a_dev_file(tmp_path, capsys) -> None:
    table = tmp_path / "tickets.csv"
    rows = [f"Text {number},{number % 3}\n" for number in range(30)]
    table.write_text("text,topic\n" + "".join(rows) + ",1\n")
    (train,) = draw_rows(
        table, tmp_path, AdaptSettings(), column="text", criteria=["topic"], rows=200,
        parts=("train",), progress=silent,
    )  # fmt: skip
    with train.open(newline="") as stream:
        drawn = list(csv.DictReader(stream))
    assert len({row[side] for row in drawn for side in ("sentence1", "sentence2")}) == 30
    assert "1 row has no text and thus no part in the training (row 31)" in capsys.readouterr().err


def test_rows_of_a_table_of_one_criterion_are_drawn_to_measure_on_too(tmp_path) -> None:
    table = tmp_path / "tickets.jsonl"
    rows = [
        {"text": f"Text {number % 60}{'!' * (number // 60)}", "attributes": {"topic": number % 3}}
        for number in range(120)  # each text twice, but for a mark
    ]
    table.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    files = draw_rows(
        table,
        tmp_path,
        AdaptSettings(),
        column="text",
        criteria=["topic"],
        rows=60,
        progress=silent,
    )
    texts = []
    for path in files:
        with path.open(newline="") as stream:
            drawn = list(csv.DictReader(stream))
        texts.append({row[side].strip("!") for row in drawn for side in ("sentence1", "sentence2")})
    assert not texts[0] & texts[1]


def test_rows_of_a_table_of_an_unknown_criterion_name_it(tmp_path) -> None:
    table = tmp_path / "tickets.csv"
    table.write_text("text,topic\n" + "".join(f"Text {n},{n % 3}\n" for n in range(30)))
    with pytest.raises(InputError, match=r"tickets\.csv 'topik'\. Did you mean 'topic'\?"):
        draw_rows(
            table, tmp_path, AdaptSettings(), column="text", criteria=["topik"], rows=20,
            progress=silent,
        )  # fmt: skip


def test_rows_of_a_table_that_cannot_be_drawn_name_the_table(tmp_path) -> None:
    table = tmp_path / "tickets.csv"
    table.write_text("text,topic\n" + "".join(f"Text {number},same\n" for number in range(9)))
    with pytest.raises(InputError, match="condsim build criteria") as caught:
        draw_rows(
            table, tmp_path, AdaptSettings(), column="text", criteria=["topic"], rows=20,
            parts=("train",), progress=silent,
        )  # fmt: skip
    assert "jsonl" not in str(caught.value)
