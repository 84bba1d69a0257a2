from __future__ import annotations

import io
import json
import os
import threading
from functools import partial

import pytest
from tests import commands
from tests.commands import rows_in

from condsim import console
from condsim.cli import score as module
from condsim.cli.main import run
from condsim.errors import CondSimError
from condsim.loading import load_scorer

invoke, fault = partial(commands.invoke, "score"), partial(commands.fault, "score")
ROW = ("A man throws a ball.", "A girl kicks a ball.", "the sport")
HEADER = "sentence1,sentence2,condition"


def write(path, numbers, *, header=HEADER, after=""):
    lines = [header, *(f"A lamp.,A bulb.,aspect {number}{after}" for number in numbers)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_lines(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def test_score_table_bars_follow_the_scores(tmp_path, numbers):
    result = invoke("--file", write(tmp_path / "in.csv", [1.0, 0.25, 0]), "--table")
    rows = [line for line in result.stdout.splitlines() if "aspect" in line]
    assert [row.count("█") + row.count("#") for row in rows] == [20, 5, 1]


SILENT = ("I want a refund for my lamp.", "Please give me my money back.")


def test_score_of_a_condition_that_does_not_apply_is_marked(tmp_path):
    file = tmp_path / "in.csv"
    file.write_text("sentence1,sentence2\n" + ",".join(SILENT) + "\n")
    conditions = ("--condition", "the type of food", "--condition", "the request")
    lines = invoke("--file", file, *conditions, "--table").stdout.splitlines()
    remarks = [line.strip() for line in lines if "mention" in line]
    assert remarks == ["neither text seems to mention it"]
    single = invoke(*SILENT, "the type of food")
    assert single.stderr.strip() == (
        "'the type of food': neither text seems to mention it, so its score means little."
    )
    assert float(single.stdout) > 0
    assert not invoke(*SILENT, "the request").stderr


def test_score_table_is_cut_after_whole_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_ROWS_OF_TABLE", 2)
    file = write(tmp_path / "in.csv", range(3), header="sentence1,sentence2,aspect")
    conditions = ["--condition", "at 0.1", "--condition", "at 0.2"]
    result = invoke("--file", file, "--table", *conditions)
    assert result.stdout.count("at 0.2") == 2
    assert "the first 2 rows" in result.stderr


def test_score_doubled_and_old_columns_are_numbered(tmp_path, numbers):
    file = write(tmp_path / "in.csv", [0.5], header=f"{HEADER},x,x,a.b,score", after=",4,5,6,7")
    invoke("--file", file, "--output", tmp_path / "out.csv")
    (row,) = rows_in(tmp_path / "out.csv")
    names = "x", "x.1", "a.b", "score.1", "score"
    assert [row[name] for name in names] == ["4", "5", "6", "7", "0.5"]


def test_score_text_that_cannot_be_written_names_its_row(tmp_path, numbers):
    texts = dict(zip(HEADER.split(","), ("A.", "B.", "aspect 1"), strict=True))
    file = write_lines(tmp_path / "in.jsonl", texts | {"half": ["\ud800"]})
    message = fault("--file", file, "--output", tmp_path / "out.jsonl")
    assert "in.jsonl, row 1 (line 1)" in message
    assert "half of a surrogate pair" in message


def test_score_pipe_is_read_once(tmp_path, numbers):
    pipe = tmp_path / "in.tsv"
    os.mkfifo(pipe)
    text = "note\tsentence1\tsentence2\tcondition\n7\tA.\tB.\taspect 1\n"
    thread = threading.Thread(target=lambda: pipe.write_text(text, "utf-8"))
    thread.start()
    result = invoke("--file", pipe)
    thread.join()
    assert result.stdout.splitlines()[1] == "7\tA.\tB.\taspect 1\t1.0"


def test_score_many_rows_in_blocks_with_progress(tmp_path, numbers, monkeypatch):
    monkeypatch.setattr(module, "ROWS_PER_BATCH", 4)
    monkeypatch.setattr(console, "_SECONDS_BETWEEN_LINES", -1)
    output, options = tmp_path / "out.tsv", ("--scale", "likert")
    result = invoke("--file", write(tmp_path / "in.csv", range(10)), "--output", output, *options)
    assert (numbers.blocks, numbers.scale) == ([4, 4, 2], "likert")
    assert [float(row["score"]) for row in rows_in(output)] == list(range(10))
    *progress, last = result.stderr.splitlines()
    assert progress == [f"scoring, {rows} rows" for rows in (0, 4, 8)]
    assert "10 rows scored" in last


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("sentence1\tsentence2\tcondition\nÉ.\tB.\taspect 0.5\n", ()),
        ('sentence1,sentence2,condition\n"É.",B.,aspect 0.5\n', ()),
        ("sep=;\nsentence1;sentence2;condition\nÉ.;B.;aspect 0.5\n".encode("utf-16"), ()),
        ('{"sentence1": "É.", "sentence2": "B.", "condition": "aspect 0.5"}\n', ()),
        (
            "sentence1#sentence2#condition\nÉ.#B.#aspect 0.5\n".encode("mac_roman"),
            ("--separator", "#", "--encoding", "mac-roman"),
        ),
    ],
)
def test_score_standard_input_of_every_form(numbers, text, options):
    result = invoke("--file", "-", *options, stdin=text)
    assert result.stdout.splitlines()[1] == "É.\tB.\taspect 0.5\t0.5"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]\n", "standard input, row 1 (line 1): must be a JSON object, got 1."),
        ("\n", "standard input: has no rows"),
        (b"PAR1\x00", "standard input: is a Parquet file; its name must end in .parquet."),
    ],
)
def test_score_standard_input_is_named_in_messages(numbers, text, message):
    assert message in fault("--file", "-", stdin=text)


@pytest.mark.parametrize(
    ("target", "rest"),
    [("out.csv", "Nothing was written."), (None, "The rows printed so far are not all.")],
)
def test_score_file_stopped_says_what_remains(tmp_path, numbers, monkeypatch, target, rest):
    def stop(*texts, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(numbers, "score", stop)
    file = write(tmp_path / "in.csv", [1])
    result = invoke("--file", file, *(("--output", tmp_path / target) if target else ()))
    assert (result.exit_code, result.stderr) == (130, f"Stopped. {rest}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_score_bad_row_leaves_no_output(tmp_path, numbers):
    file, output = write(tmp_path / "in.csv", [0.5]), tmp_path / "out.csv"
    file.write_text(file.read_text() + "A.,,aspect 1\n")
    output.write_text("old")
    message = fault("--file", file, "--output", output, "--strict")
    assert "row 2 (line 3), column 'sentence2'" in message
    assert output.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "out.csv"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Give two sentences and a condition, or --file"),
        (ROW[:2], "Give two sentences and a condition, or --file"),
        ((*ROW, "--file", "x.csv"), "not both"),
        ((*ROW, "--condition", "the number"), "not both"),
        ((*ROW, "--output", "x.csv"), "go with --file"),
        ((*ROW, "--applicability"), "go with --file"),
        (("--file", "x.csv", "--table", "--output", "y.csv"), "cannot go with --output"),
        (("--file", "none.csv"), "no such file"),
        (("", *ROW[1:]), "must have text"),
        (("half \ud800", *ROW[1:]), "must be valid Unicode"),
        ((*ROW, "--model", "./none"), "There is no model folder"),
    ],
)
def test_score_arguments_that_do_not_fit_refused(arguments, message):
    assert message in fault(*arguments, kind=CondSimError)


def test_score_output_that_cannot_hold_a_character_has_its_code(tmp_path, numbers, monkeypatch):
    file = tmp_path / "in.csv"
    file.write_text(f"{HEADER}\nŁ.,B.,aspect 1\n", "utf-8")
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding="cp1252"))
    with pytest.raises(SystemExit) as end:
        run(["score", "--file", str(file), "--table"])
    assert end.value.code == 0
    assert b"\\u0141" in written.getvalue()


@pytest.fixture
def own_names(tmp_path):
    file = tmp_path / "own.csv"
    file.write_text("left,right,id\nA red car.,A red bus.,1\n,A cat.,2\nA dog.,A cat.,3\n", "utf-8")
    return ["--file", file, "--text1", "left", "--text2", "right "]


def test_score_names_of_columns_and_several_conditions_are_options(own_names, tmp_path):
    output = tmp_path / "out.csv"
    conditions = ["--condition", "the color", "--condition", "the animal"]
    result = invoke(*own_names, *conditions, "--output", output)
    assert result.exit_code == 0, result.exception
    rows = rows_in(output)
    assert list(rows[0]) == ["left", "right", "id", "score: the color", "score: the animal"]
    expected = load_scorer().score("A red car.", "A red bus.", "the color")
    assert float(rows[0]["score: the color"]) == pytest.approx(expected, abs=1e-5)
    assert rows[1]["score: the color"] == ""
    assert "1 row has no text and thus no score (row 2)" in result.stderr
    assert "out.csv: 2 rows scored" in result.stderr
    assert "give each condition once" in fault(*own_names, *conditions[:2] * 2)


def test_score_without_condition_is_of_the_whole_and_says_so(own_names):
    result = invoke(*own_names)
    assert "No condition was given, so the pairs were compared as a whole." in result.stderr
    score = float(result.stdout.splitlines()[1].split("\t")[-1])
    assert score == pytest.approx(load_scorer().score("A red car.", "A red bus."), abs=1e-5)


def test_score_condition_column_can_have_any_name(tmp_path, numbers):
    file = write(tmp_path / "in.csv", [0.25], header="sentence1,sentence2,aspect")
    result = invoke("--file", file, "--condition-column", "aspect")
    assert rows_in(result.stdout)[0]["score"] == "0.25"
    assert not result.stderr


def test_score_applicability_adds_a_column(own_names):
    result = invoke(*own_names, "--condition", "the color", "--applicability")
    row, *_ = rows_in(result.stdout)
    assert list(row)[-2:] == ["score", "applicability"]
    assert 0 < float(row["applicability"]) < 1


def test_score_missing_columns_name_the_options_and_a_missing_header_is_told_apart(own_names):
    message = fault("--file", own_names[1])
    assert "columns 'sentence1', 'sentence2' are missing; found 'left', 'right', 'id'" in message
    assert "--text1, --text2" in message
    own_names[1].write_text("A man throws a ball.,A girl kicks a ball.,the sport\n" * 2)
    assert "If the first line is a row" in fault("--file", own_names[1])


def test_score_condition_that_only_later_rows_have_is_read(tmp_path):
    row = {"sentence1": "A man runs.", "sentence2": "A dog runs."}
    file = write_lines(tmp_path / "in.jsonl", row, row | {"condition": "the animal"})
    result = invoke("--file", file, "--output", tmp_path / "out.csv")
    assert "1 row has no condition and thus no score (row 1)" in result.stderr
    assert [bool(row["score"]) for row in rows_in(tmp_path / "out.csv")] == [False, True]


def test_score_pair_under_several_conditions_names_them():
    words = ("--condition", ROW[2], "--condition", "the number")
    lines = [line.split("\t") for line in invoke(*ROW[:2], *words).stdout.splitlines()]
    assert [condition for _, condition in lines] == [ROW[2], "the number"]
    assert float(lines[0][0]) == float(invoke(*ROW).stdout)


def test_score_overall_is_a_share_of_the_whole(own_names, tmp_path):
    output, options = tmp_path / "out.csv", ("--condition", "the color", "--overall", 0.4)
    model, pair = load_scorer(), ("A red car.", "A red bus.")
    assert invoke(*own_names, *options, "--output", output).exit_code == 0
    expected = model.score(*pair, "the color", overall=0.4)
    assert expected != pytest.approx(model.score(*pair, "the color"), abs=0.01)
    assert float(rows_in(output)[0]["score"]) == pytest.approx(expected, abs=1e-5)
    assert invoke(*pair, *options).stdout == f"{expected:.3f}\n"
