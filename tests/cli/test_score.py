from __future__ import annotations

import csv
import datetime
import gzip
import io
import json
import os
import threading
from pathlib import Path

import numpy as np
import pyarrow
import pytest
import typer
from pyarrow import parquet
from typer.testing import CliRunner

from condsim import console as progress
from condsim.cli import score as module
from condsim.cli.main import run
from condsim.cli.process import guard
from condsim.cli.score import score
from condsim.errors import InputError, ModelError
from condsim.loading import load_scorer

APP = typer.Typer(rich_markup_mode="markdown")
APP.command()(score)
guard(APP)

PAIRS = Path(__file__).resolve().parents[2] / "examples" / "pairs.csv"
ROW = ("A man throws a ball.", "A girl kicks a ball.", "the sport")


class NumberScorer:
    """Scores by the number at the end of the condition."""

    name = "number"

    def __init__(self):
        self.blocks = []

    def score(self, sentences1, sentences2, conditions, *, scale):
        self.blocks.append(len(conditions))
        self.scale = scale
        return np.asarray([float(text.split()[-1]) for text in conditions], np.float32)


@pytest.fixture
def numbers(monkeypatch):
    made = NumberScorer()
    monkeypatch.setattr(module, "load_scorer", lambda model, device: made)
    return made


def invoke(*arguments, stdin=None):
    return CliRunner().invoke(
        APP, [str(argument) for argument in arguments], input=stdin, catch_exceptions=True
    )


def fault(*arguments, stdin=None):
    """The error that the command line prints as one line."""
    return invoke(*arguments, stdin=stdin).exception


def write(path, numbers, *, header="sentence1,sentence2,condition", after=""):
    lines = [header, *(f"A lamp.,A bulb.,aspect {number}{after}" for number in numbers)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_score_one_pair_prints_the_score_alone():
    result = invoke(*ROW)
    assert result.exit_code == 0
    assert float(result.stdout) == pytest.approx(load_scorer().score(*ROW), abs=6e-4)


def test_score_likert_is_one_to_five():
    value = float(invoke(*ROW, "--scale", "likert").stdout)
    assert value == pytest.approx(load_scorer().score(*ROW, scale="likert"), abs=6e-4)


def test_score_example_file_tables_every_pair_once():
    result = invoke("--file", PAIRS, "--table")
    assert result.exit_code == 0
    with PAIRS.open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        assert result.stdout.count(row["sentence1"]) == 1
        assert row["condition"] in result.stdout


def test_score_example_file_has_two_conditions_of_each_pair():
    with PAIRS.open(encoding="utf-8") as stream:
        pairs = [(row["sentence1"], row["sentence2"]) for row in csv.DictReader(stream)]
    assert 6 <= len(set(pairs)) <= 8
    assert pairs[::2] == pairs[1::2]


def test_score_table_bars_follow_the_scores(tmp_path, numbers):
    result = invoke("--file", write(tmp_path / "in.csv", [1.0, 0.25, 0]), "--table")
    bars = [
        line.count("█") + line.count("#") for line in result.stdout.splitlines() if "aspect" in line
    ]
    assert bars == [20, 5, 1]


def test_score_table_of_many_rows_says_what_it_leaves_out(tmp_path, numbers, monkeypatch):
    monkeypatch.setattr(module, "_ROWS_OF_TABLE", 3)
    result = invoke("--file", write(tmp_path / "in.csv", range(9)), "--table")
    assert result.stdout.count("aspect") == 3
    assert "first 3 rows; --output FILE writes all" in result.stderr
    assert sum(numbers.blocks) == 4


def test_score_file_without_terminal_gives_tab_separated_rows(tmp_path, numbers):
    result = invoke("--file", write(tmp_path / "in.csv", [0.5, 0.25]))
    assert result.stdout == (
        "sentence1\tsentence2\tcondition\tscore\n"
        "A lamp.\tA bulb.\taspect 0.5\t0.5\n"
        "A lamp.\tA bulb.\taspect 0.25\t0.25\n"
    )


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_score_output_keeps_the_columns_and_adds_the_score(tmp_path, numbers, suffix):
    header = "id,sentence1,sentence2,condition,label"
    file = tmp_path / "in.csv"
    file.write_text(f'{header}\n7,"A, ""B"".",C.,aspect 0.1,-1\n8,D.,E.,aspect 0.9,\n', "utf-8")
    output = tmp_path / f"out{suffix}"
    result = invoke("--file", file, "--output", output, "--scale", "likert")
    assert result.exit_code == 0
    assert "2 rows scored" in result.stderr
    assert numbers.scale == "likert"
    rows = written(output)
    assert list(rows[0]) == [*header.split(","), "score"]
    assert [row["id"] for row in rows] == ["7", "8"]
    assert [float(row["score"]) for row in rows] == [0.1, 0.9]
    assert rows[0]["sentence1"] == 'A, "B".'


TEXTS = {"sentence1": "A.", "sentence2": "B.", "condition": "aspect 1"}
TSV = "note\tsentence1\tsentence2\tcondition\n7\tA.\tB.\taspect 1\n"
JSONL = json.dumps({"note": 7, **TEXTS}) + "\n"


def write_parquet(path, **columns):
    columns = {name: [value] for name, value in (columns | TEXTS).items()}
    parquet.write_table(pyarrow.table(columns), path)
    return path


def written(path):
    """The rows of an output, by column."""
    text = path.read_text("utf-8")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    quoting = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if path.suffix == ".tsv" else {}
    return list(csv.DictReader(io.StringIO(text), **quoting))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("in.csv.gz", TSV.replace("\t", ",")),
        ("in.tsv", "\ufeff\n" + TSV),
        ("in.jsonl", "\n \n" + JSONL),
        ("in.parquet", None),
    ],
)
@pytest.mark.parametrize("suffix", [".tsv", ".jsonl"])
def test_score_columns_of_every_format_kept_in_order(tmp_path, numbers, name, content, suffix):
    file, output = tmp_path / name, tmp_path / f"out{suffix}"
    if content is None:
        write_parquet(file, note="7")
    else:
        data = content.encode()
        file.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    result = invoke("--file", file, "--output", output)
    assert result.exit_code == 0, result.exception
    (row,) = written(output)
    assert list(row) == ["note", "sentence1", "sentence2", "condition", "score"]
    assert {name: str(value) for name, value in row.items()} == {
        "note": "7",
        **TEXTS,
        "score": "1.0",
    }


def test_score_jsonl_output_keeps_any_value_of_json(tmp_path, numbers):
    file = tmp_path / "in.jsonl"
    rows = [
        TEXTS | {"id": 3, "tags": ["x", {"y": None}], "done": True},
        {"empty": None, **TEXTS},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    invoke("--file", file, "--output", tmp_path / "out.jsonl")
    assert written(tmp_path / "out.jsonl") == [row | {"score": 1.0} for row in rows]


@pytest.mark.parametrize("target", ["out.csv", "out.tsv", None])
def test_score_jsonl_rows_of_different_keys_give_all_columns(
    tmp_path, numbers, monkeypatch, target
):
    monkeypatch.setattr(module, "ROWS_PER_BATCH", 1)
    file = tmp_path / "in.jsonl"
    rows = [TEXTS | {"done": True, "score": 9}, {"later": 2.5, **TEXTS}, TEXTS | {"done": None}]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    result = invoke("--file", file, *(("--output", tmp_path / target) if target else ()))
    if target is None:
        (tmp_path / "shown.tsv").write_text(result.stdout, "utf-8")
    found = written(tmp_path / (target or "shown.tsv"))
    assert list(found[0]) == [*TEXTS, "done", "score.1", "later", "score"]
    assert [row["score.1"] for row in found] == ["9", "", ""]
    assert [row["done"] for row in found] == ["true", "", ""]
    assert [row["later"] for row in found] == ["", "2.5", ""]


@pytest.mark.parametrize("value", [["x"], {"y": 1}])
def test_score_list_in_csv_refused_before_anything_is_written(tmp_path, numbers, value):
    file, output = tmp_path / "in.jsonl", tmp_path / "out.csv"
    rows = [TEXTS, TEXTS | {"tags": value}]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    error = fault("--file", file, "--output", output)
    assert isinstance(error, InputError)
    assert "row 2 (line 2), column 'tags': a list or an object cannot be written" in str(error)
    assert not output.exists()
    assert not numbers.blocks


def test_score_parquet_dates_become_text_and_bytes_are_refused(tmp_path, numbers):
    file = write_parquet(tmp_path / "in.parquet", day=datetime.date(2024, 2, 29), tags=["x"])
    invoke("--file", file, "--output", tmp_path / "out.jsonl")
    (row,) = written(tmp_path / "out.jsonl")
    assert (row["day"], row["tags"]) == ("2024-02-29", ["x"])
    error = fault("--file", write_parquet(file, raw=b"x"), "--output", tmp_path / "out.jsonl")
    assert "column 'raw': must be text or a number, got bytes" in str(error)
    invoke("--file", file, "--output", tmp_path / "out.parquet")
    assert parquet.read_table(tmp_path / "out.parquet")["raw"].to_pylist() == [b"x"]


def test_score_parquet_nan_is_an_empty_cell_of_json(tmp_path, numbers):
    file = write_parquet(tmp_path / "in.parquet", price=float("nan"))
    invoke("--file", file, "--output", tmp_path / "out.jsonl")
    assert '"price": null' in (tmp_path / "out.jsonl").read_text()


def test_score_column_name_twice_numbered(tmp_path, numbers):
    file = write(tmp_path / "in.csv", [1], header="sentence1,sentence2,condition,x,x", after=",4,5")
    invoke("--file", file, "--output", tmp_path / "out.csv")
    (row,) = written(tmp_path / "out.csv")
    assert (row["x"], row["x.1"]) == ("4", "5")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('"deep": ' + "[" * 900 + "]" * 900, None),
        ('"deep": ' + "[" * 99_000 + "]" * 99_000, "not valid JSON"),
        (r'"half\ud800": 1', "half of a surrogate pair"),
        (r'"half": ["\ud800"]', "half of a surrogate pair"),
    ],
)
def test_score_jsonl_value_that_cannot_be_written_named(tmp_path, numbers, more, message):
    file = tmp_path / "in.jsonl"
    file.write_text(JSONL[:-2] + f", {more}}}\n", "utf-8")
    result = invoke("--file", file, "--output", tmp_path / "out.jsonl")
    if message is None:
        assert result.exit_code == 0, result.exception
    else:
        assert isinstance(result.exception, InputError)
        assert "in.jsonl, row 1 (line 1)" in str(result.exception)
        assert message in str(result.exception)


def test_score_pipe_is_read_once(tmp_path, numbers):
    pipe = tmp_path / "in.tsv"
    os.mkfifo(pipe)
    thread = threading.Thread(target=lambda: pipe.write_text(TSV, "utf-8"))
    thread.start()
    result = invoke("--file", pipe)
    thread.join()
    assert result.stdout.splitlines()[1] == "7\tA.\tB.\taspect 1\t1.0"


def test_score_old_score_column_renamed(tmp_path, numbers):
    header = "sentence1,sentence2,condition,score"
    file = write(tmp_path / "in.csv", [0.5], header=header, after=",9")
    names, row = (line.split("\t") for line in invoke("--file", file).stdout.splitlines())
    assert (names[-2:], row[-2:]) == (["score.1", "score"], ["9", "0.5"])
    kept = write_parquet(tmp_path / "in.parquet", score=9)
    invoke("--file", kept, "--output", tmp_path / "out.parquet")
    (row,) = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert (row["score.1"], row["score"]) == (9, 1.0)


def test_score_many_rows_in_blocks(tmp_path, numbers, monkeypatch):
    monkeypatch.setattr(module, "ROWS_PER_BATCH", 4)
    file = write(tmp_path / "in.csv", range(10))
    invoke("--file", file, "--output", tmp_path / "out.tsv")
    assert numbers.blocks == [4, 4, 2]
    scores = [line.split("\t")[-1] for line in (tmp_path / "out.tsv").read_text().splitlines()[1:]]
    assert [float(score) for score in scores] == list(range(10))


@pytest.mark.parametrize(
    "text",
    [
        "sentence1\tsentence2\tcondition\nA.\tB.\taspect 0.5\n",
        'sentence1,sentence2,condition\n"A.",B.,aspect 0.5\n',
        "sep=;\nsentence1;sentence2;condition\nA.;B.;aspect 0.5\n".encode("utf-16"),
        '{"sentence1": "A.", "sentence2": "B.", "condition": "aspect 0.5"}\n',
    ],
)
def test_score_standard_input_format_detected(numbers, text):
    assert invoke("--file", "-", stdin=text).stdout.splitlines()[1] == "A.\tB.\taspect 0.5\t0.5"


def test_score_separator_and_encoding_override_detection(numbers):
    text = "sentence1#sentence2#condition\nÉ,#B.#aspect 0.5\n".encode("mac_roman")
    options = ("--separator", "#", "--encoding", "mac-roman")
    assert invoke("--file", "-", *options, stdin=text).stdout.splitlines()[1] == (
        "É,\tB.\taspect 0.5\t0.5"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "standard input: no columns 'sentence1' or 'sentence2'"),
        ("[1]\n", "standard input: no columns"),
        ("\n", "standard input: has no rows"),
        (b"PAR1\x00", "standard input, line 1, byte 4 of the file: NUL byte"),
    ],
)
def test_score_standard_input_is_named_in_messages(numbers, text, message):
    assert message in str(fault("--file", "-", stdin=text))


@pytest.mark.parametrize(
    ("target", "left"),
    [("out.csv", "Nothing was written."), (None, "The rows printed so far are not all.")],
)
def test_score_file_stopped_says_what_is_left(tmp_path, numbers, monkeypatch, target, left):
    def stop(*texts, scale):
        raise KeyboardInterrupt

    monkeypatch.setattr(numbers, "score", stop)
    file = write(tmp_path / "in.csv", [1])
    result = invoke("--file", file, *(("--output", tmp_path / target) if target else ()))
    assert result.exit_code == 130
    assert result.stderr == f"Stopped. {left}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_score_file_shows_its_progress(tmp_path, numbers, monkeypatch):
    monkeypatch.setattr(module, "ROWS_PER_BATCH", 4)
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", -1)
    file = write(tmp_path / "in.csv", range(10))
    result = invoke("--file", file, "--output", tmp_path / "out.tsv")
    told = [f"scoring, {rows} rows" for rows in (0, 4, 8)]
    assert result.stderr.splitlines()[:-1] == told


def test_score_bad_row_leaves_no_output(tmp_path, numbers):
    file = write(tmp_path / "in.csv", [0.5])
    file.write_text(file.read_text() + "A.,,aspect 1\n")
    output = tmp_path / "out.csv"
    output.write_text("old")
    error = fault("--file", file, "--output", output, "--strict")
    assert isinstance(error, InputError)
    assert "row 2 (line 3), column 'sentence2'" in str(error)
    assert output.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "out.csv"]


def test_score_output_over_its_input_refused(tmp_path, numbers, capsys):
    file = write(tmp_path / "in.csv", [0.5])
    (tmp_path / "link.csv").symlink_to(file)
    for output in (file, tmp_path / "link.csv"):
        with pytest.raises(SystemExit) as end:
            run(["score", "--file", str(file), "--output", str(output)])
        assert end.value.code == 2
        assert "is the input itself. Give another --output" in capsys.readouterr().err
    assert file.read_text().startswith("sentence1")


def test_score_output_of_unknown_suffix_refused(tmp_path, numbers):
    error = fault("--file", write(tmp_path / "in.csv", [1]), "--output", tmp_path / "out.xlsx")
    assert "must be one of .csv, .tsv, .jsonl" in str(error)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Give two sentences and a condition, or --file"),
        (ROW[:2], "Give two sentences and a condition, or --file"),
        ((*ROW, "--file", "x.csv"), "not both"),
        ((*ROW, "--output", "x.csv"), "go with --file"),
        ((*ROW, "--table"), "go with --file"),
        (("--file", "x.csv", "--table", "--output", "y.csv"), "cannot go with --output"),
        ((*ROW, "--applicability"), "go with --file"),
        (("--file", "none.csv"), "no such file"),
        (("", *ROW[1:]), "must have text"),
        (("half \ud800", *ROW[1:]), "must be valid Unicode"),
    ],
)
def test_score_arguments_that_do_not_fit_refused(arguments, message):
    error = fault(*arguments)
    assert isinstance(error, InputError)
    assert message in str(error)


def test_score_unknown_model_refused(tmp_path):
    error = fault(*ROW, "--model", tmp_path / "none")
    assert isinstance(error, ModelError)
    assert "There is no model folder" in str(error)


def test_score_help_shows_examples():
    assert "condsim score --file pairs.csv" in invoke("--help").stdout


@pytest.mark.parametrize("option", ["--table", "--no-table"])
def test_score_output_that_cannot_hold_a_character_has_its_code(
    tmp_path, numbers, monkeypatch, option
):
    file = tmp_path / "in.csv"
    file.write_text("sentence1,sentence2,condition\nŁ.,B.,aspect 1\n", "utf-8")
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding="cp1252"))
    with pytest.raises(SystemExit) as end:
        run(["score", "--file", str(file), option])
    assert end.value.code == 0
    assert b"\\u0141" in written.getvalue()


LEFT_RIGHT = "left,right,id\nA red car.,A red bus.,1\n,A cat.,2\nA dog.,A cat.,3\n"


@pytest.fixture
def own_names(tmp_path):
    file = tmp_path / "own.csv"
    file.write_text(LEFT_RIGHT, "utf-8")
    return ["--file", file, "--text1", "left", "--text2", "right "]


def test_score_names_of_columns_and_several_conditions_are_options(own_names, tmp_path):
    output = tmp_path / "out.csv"
    conditions = ["--condition", "the colour", "--condition", "the animal"]
    result = invoke(*own_names, *conditions, "--output", output)
    assert result.exit_code == 0, result.exception
    with output.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["left", "right", "id", "score: the colour", "score: the animal"]
    expected = load_scorer().score("A red car.", "A red bus.", "the colour")
    assert float(rows[0]["score: the colour"]) == pytest.approx(expected, abs=1e-5)
    assert rows[1]["score: the colour"] == ""
    assert "1 row has no text and thus no score (row 2); --strict stops there." in result.stderr
    assert f"out.csv: {len(rows) - 1} rows scored" in result.stderr


def test_score_without_condition_is_of_the_whole_and_says_so(own_names):
    result = invoke(*own_names)
    assert "No condition was given, so the pairs were compared as a whole." in result.stderr
    score = float(result.stdout.splitlines()[1].split("\t")[-1])
    assert score == pytest.approx(load_scorer().score("A red car.", "A red bus."), abs=1e-5)


def test_score_condition_column_can_have_any_name(tmp_path):
    file = tmp_path / "in.csv"
    file.write_text("sentence1,sentence2,aspect\nA red car.,A red bus.,the colour\n")
    result = invoke("--file", file, "--condition-column", "aspect")
    expected = load_scorer().score("A red car.", "A red bus.", "the colour")
    assert float(result.stdout.split("\t")[-1]) == pytest.approx(expected, abs=1e-5)
    assert not result.stderr


def test_score_applicability_adds_a_column(own_names):
    result = invoke(*own_names, "--condition", "the colour", "--applicability")
    header, first, *_ = result.stdout.splitlines()
    assert header.split("\t")[-2:] == ["score", "applicability"]
    assert 0 < float(first.split("\t")[-1]) < 1


def test_score_missing_columns_name_the_options(own_names):
    error = str(fault("--file", own_names[1]))
    assert "no columns 'sentence1' or 'sentence2'; found 'left', 'right', 'id'" in error
    assert "--text1 and --text2" in error


def test_score_file_without_header_is_told_apart(tmp_path):
    file = tmp_path / "in.csv"
    file.write_text("A man throws a ball.,A girl kicks a ball.,the sport\n" * 2)
    assert "the file needs a header line" in str(fault("--file", file))


def test_score_condition_given_twice_is_refused(own_names):
    error = str(fault(*own_names, "--condition", "x", "--condition", "x"))
    assert "give each condition once" in error


def test_score_condition_that_only_later_rows_have_is_read(tmp_path):
    file = tmp_path / "in.jsonl"
    rows = [{"sentence1": "A man runs.", "sentence2": "A dog runs."}] * 2
    rows[1] = rows[1] | {"condition": "the animal"}
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = invoke("--file", file, "--output", tmp_path / "out.csv")
    assert "1 row has no text and thus no score (row 1)" in result.stderr
    assert [bool(row["score"]) for row in written(tmp_path / "out.csv")] == [False, True]


def test_score_table_is_cut_after_whole_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_ROWS_OF_TABLE", 2)
    file = write(tmp_path / "in.csv", range(3), header="sentence1,sentence2,aspect")
    conditions = ["--condition", "at 0.1", "--condition", "at 0.2"]
    result = invoke("--file", file, "--table", *conditions)
    assert result.stdout.count("at 0.2") == 2
    assert "the first 2 rows" in result.stderr


def test_score_pair_under_several_conditions_names_them():
    words = ("--condition", ROW[2], "--condition", "the number")
    lines = [line.split("\t") for line in invoke(*ROW[:2], *words).stdout.splitlines()]
    assert [condition for _, condition in lines] == [ROW[2], "the number"]
    assert float(lines[0][0]) == float(invoke(*ROW).stdout)
    assert "not both" in str(fault(*ROW, "--condition", "the number"))


def test_score_overall_is_a_share_of_the_whole(own_names, tmp_path):
    output = tmp_path / "out.csv"
    model, pair = load_scorer(), ("A red car.", "A red bus.")
    words = ("--condition", "the colour", "--overall", 0.4, "--output", output)
    assert invoke(*own_names, *words).exit_code == 0
    expected = model.score(*pair, "the colour", overall=0.4)
    assert expected != pytest.approx(model.score(*pair, "the colour"), abs=0.01)
    assert float(written(output)[0]["score"]) == pytest.approx(expected, abs=1e-5)
    assert invoke(*pair, "the colour", "--overall", 0.4).stdout == f"{expected:.3f}\n"


def test_score_overall_of_a_model_without_embeddings_refused(tmp_path, numbers):
    file = write(tmp_path / "in.csv", [0.5])
    for words in ("--file", file), ("A.", "B.", "aspect 1"):
        error = invoke(*words, "--overall", 0.3).exception
        assert "gives scores only; --overall needs embeddings" in str(error)
