"""``condsim adapt``: pairs or a table as input, and the figures at the end."""

from __future__ import annotations

import json
import re
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tests import commands
from tests.commands import rows_in

from condsim.cli import adapt as module
from condsim.console import silent
from condsim.errors import InputError
from condsim.evaluation.report import ModelResult, Report
from condsim.evaluation.statistics import Metric
from condsim.training.adapt_figures import Adaptation
from condsim.training.adaptation import AdaptSettings

invoke = partial(commands.invoke, "adapt")
PAGE = Path(__file__).parents[2] / "docs" / "adapt.md"


def result(output, *, before, after):
    def model(name, value):
        none = Metric(float("nan"), float("nan"), float("nan"))
        metrics = {"spearman": Metric(value, value - 5, value + 5), "pair_accuracy": none}
        return ModelResult(name, metrics)

    report = Report(
        task="rows", task_revision="0", rows=30, valid_rows=30, invalid_rows=0, pairs=30,
        contrasting_pairs=0, model=model("new", after), baselines=(), against=model("old", before),
        comparison={}, seed=0, resamples=10, versions={}, created="now",
    )  # fmt: skip
    return Adaptation(
        output, report, train_rows=120, rehearsal_rows=500, moved=0.01, moved_most=0.04, seconds=1.0
    )


@pytest.fixture
def adapted(tmp_path, monkeypatch):
    """Runs the command on two files of rows with other names of columns; nothing is trained.

    Gives its result and the rows that are trained on and measured on.
    """

    def run(*, before, after, written):
        texts = []

        def adapt(labeled, output, *, dev, **_):
            texts.extend([labeled.read_text(), dev.read_text()])
            return result(output if written else None, before=before, after=after)

        monkeypatch.setattr(sys.modules[AdaptSettings.__module__], "adapt", adapt)
        for name in ("own", "dev"):
            path = tmp_path / f"{name}.csv"
            path.write_text("left;right;same;group\na;b;yes;1\nc;d;;1\ne;f;no;2\n")
        names = "--text1 left --text2 right --condition color --label same".split()
        words = ("--dev", tmp_path / "dev.csv", "--output", tmp_path / "m")
        return invoke(tmp_path / "own.csv", *names, *words), texts

    return run


def test_adapt_that_helps_says_how_to_continue(adapted):
    done, texts = adapted(before=10, after=40, written=True)
    assert done.exit_code == 0, done.exception
    assert re.search(r"Spearman +10\.0 \[5\.0, 15\.0\] +40\.0 \[35\.0, 45\.0\]", done.stdout)
    assert re.search(r"pair accuracy +- +-", done.stdout)
    assert "written in 0.0 minutes" in done.stdout
    assert "condsim evaluate " in done.stdout
    rows = (
        "sentence1,sentence2,condition,label,set,group,criterion\n"
        "a,b,color,5.0,,1,\ne,f,color,1.0,,2,\n"
    )
    assert texts == [rows, rows]


def test_adapt_that_does_not_help_exits_with_1(adapted):
    done, _ = adapted(before=40, after=39, written=False)
    assert done.exit_code == 1
    assert "Not written: on your rows it does no better than before." in done.stdout


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_adapt_of_the_page_runs_with_the_default_model(tmp_path):
    block = re.search(r"```csv\n(.*?)```\n", PAGE.read_text(), re.DOTALL)
    assert block
    head, *rows = block[1].strip().splitlines()
    many = [row.replace(".,", f" ({number}).,", 1) for number in range(10) for row in rows]
    (tmp_path / "labeled.csv").write_text("\n".join([head, *many]) + "\n")
    output = ("--output", tmp_path / "model")
    done = invoke(tmp_path / "labeled.csv", *output, "--minutes", 0.2, "--force")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "model" / "applicability.json").is_file()
    assert "pair accuracy" in done.stdout


@pytest.fixture
def draw(tmp_path):
    """Draws rows of a table; gives the rows of each part and the set of their texts."""

    def draw_rows(name, content, *, criteria, rows=200, settings=None, **parts):
        table, folder = tmp_path / name, tmp_path / f"drawn {name}"
        table.write_text(content)
        folder.mkdir()
        files = module.draw_rows(
            table, folder, settings or AdaptSettings(), column="text", criteria=criteria,
            rows=rows, progress=silent, **parts,
        )  # fmt: skip
        drawn = [rows_in(file) for file in files]
        sides = ("sentence1", "sentence2")
        return drawn, [{row[side] for row in part for side in sides} for part in drawn]

    return draw_rows


def test_rows_of_a_table_share_no_text_between_training_and_measuring(draw):
    rows = [
        f"{mood} news about the {topic} number {number},{topic},{mood}\n"
        for topic in ("billing", "app", "parcel")
        for mood in ("good", "bad")
        for number in range(12)
    ]
    content, settings = "text,topic,mood\n" + "".join(rows), AdaptSettings(dev_share=0.3)
    parts, (train, dev) = draw("tickets.csv", content, criteria=None, settings=settings)
    for part in parts:
        assert {row["criterion"] for row in part} == {"topic", "mood"}
        assert np.isclose(np.mean([float(row["label"]) for row in part]), 3)
    assert not train & dev


def test_rows_of_a_table_to_measure_on_have_rare_values_too(draw):
    rows = "".join(
        f"Text {number},{'rare' if number % 8 == 0 else number % 3}\n" for number in range(80)
    )
    for seed in range(3):
        settings = AdaptSettings(seed=seed)
        name, content = f"t{seed}.csv", f"text,topic\n{rows}"
        _, (_, dev) = draw(name, content, criteria=["topic"], rows=2000, settings=settings)
        assert sum(int(text.removeprefix("Text ")) % 8 == 0 for text in dev) == 2


def test_rows_of_a_table_with_text_are_all_trained_on_with_a_dev_file(draw, capsys):
    rows = "".join(f"Text {number},{number % 3}\n" for number in range(30))
    content = f"text,topic\n{rows},1\n"
    _, (texts,) = draw("tickets.csv", content, criteria=["topic"], parts=("train",))
    assert len(texts) == 30
    assert "1 row has no text and thus no part in the training (row 31)" in capsys.readouterr().err


def test_rows_of_texts_that_differ_by_a_mark_are_on_one_side(draw):
    rows = [
        {"text": f"Text {number % 60}{'!' * (number // 60)}", "attributes": {"topic": number % 3}}
        for number in range(120)
    ]
    content = "".join(f"{json.dumps(row)}\n" for row in rows)
    _, texts = draw("tickets.jsonl", content, criteria=["topic"], rows=60)
    train, dev = ({text.strip("!") for text in part} for part in texts)
    assert not train & dev


@pytest.mark.parametrize(
    ("criterion", "value", "message"),
    [
        ("topik", "a{}", r"tickets\.csv 'topik'\. Did you mean 'topic'\?"),
        ("topic", "same", "tickets: rows need a criterion"),
    ],
)
def test_rows_of_a_table_that_cannot_be_drawn_name_it(draw, criterion, value, message):
    content = "text,topic\n" + "".join(f"Text {n},{value.format(n % 3)}\n" for n in range(30))
    with pytest.raises(InputError, match=message):
        draw("tickets.csv", content, criteria=[criterion], parts=("train",))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--minutes", "0"], "'minutes' must be above 0"),
        (["--rehearsal", "nan"], "'rehearsal' must be a finite number"),
        (["--criteria", "topic"], "--criteria is for a table of texts"),
    ],
)
def test_adapt_bad_option_is_one_line(tmp_path, options, message):
    (tmp_path / "in.csv").write_text("sentence1,sentence2,condition,label\nA,B,the kind,1\n")
    words = (tmp_path / "in.csv", "--output", tmp_path / "model", *options)
    assert message in commands.fault("adapt", *words)


def test_adapt_pairs_under_other_names_are_refused_under_the_name_of_the_file(tmp_path):
    (tmp_path / "in.csv").write_text("left,right,same\n" + "A lamp.,A bulb.,1\n" * 30)
    names = ("--text1", "left", "--text2", "right", "--label", "same", "--condition", "the use")
    message = commands.fault("adapt", tmp_path / "in.csv", "--output", tmp_path / "m", *names)
    assert message.startswith(f"{tmp_path / 'in.csv'}: needs at least 20 labeled pairs")
