"""Files that are read: what is kept of them, and what is refused."""

from __future__ import annotations

import csv
import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path

from tests.faults.harness import Case

HEAD = "sentence1,sentence2,condition,label,note\n"
ROW = "A man throws a ball,A girl kicks a ball,the sport,4,n1\n"
OTHER = "A man throws a ball,A dog runs,the animal,2,n2\n"
THIRD = "A boy eats,Two women eat,the number of people,1,n3\n"
FOURTH = "A boy eats,Two women eat,the activity,5,n4\n"
PAIRS = HEAD + ROW + OTHER + THIRD + FOURTH
NAMES = ("sentence1", "sentence2", "condition", "label", "note")
ROWS = [
    dict(zip(NAMES, line.strip().split(","), strict=True)) for line in (ROW, OTHER, THIRD, FOURTH)
]
JSONL = "".join(json.dumps(row) + "\n" for row in ROWS)
TSV = PAIRS.replace(",", "\t")

_SCORE = "condsim score --file {file} --output o.csv"
_USERS = {
    "score": _SCORE,
    "evaluate": "condsim evaluate --data {file} --resamples 10",
    "predict": "condsim predict --data {file} --output o.json",
    "data check": "condsim data check {file}",
    "encode": "condsim encode --file {file} --column sentence1 --output o.npy",
    "explain": "condsim explain --file {file} --output o.jsonl",
    "dedupe": "condsim dedupe {file} --column sentence1 --condition the-sport --at-least 0.9 "
    "--output o.csv",
    "threshold": "condsim threshold {file}",
    "leakage": "condsim build leakage {file} --resamples 10",
    "index": "condsim index build {file} --column sentence1 --output o.index",
}


def parquet(path: Path) -> None:
    """Writes the pairs as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(ROWS), path)


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8-sig") as stream:
        return list(csv.DictReader(stream))


def keeps_notes(folder: Path) -> None:
    """The output has the rows with their notes, in order."""
    rows = _read(folder / "o.csv")
    assert [row.get("note") for row in rows] == ["n1", "n2", "n3", "n4"], rows
    assert all(0 <= float(row["score"]) <= 1 for row in rows)


def columns() -> Iterator[Case]:
    """All columns of a file are in the output."""
    later = [*ROWS]
    later[0] = {key: value for key, value in later[0].items() if key != "note"} | {"extra": "1"}
    files = {
        "csv": ("p.csv", PAIRS),
        "csv after a blank line": ("p.csv", "\n" + PAIRS),
        "csv with two blank lines": ("p.csv", "\n\n" + PAIRS),
        "csv with blank lines between": ("p.csv", PAIRS.replace("\n", "\n\n")),
        "csv with a byte order mark": ("p.csv", "\ufeff" + PAIRS),
        "csv with carriage returns": ("p.csv", PAIRS.replace("\n", "\r\n")),
        "csv without a last line end": ("p.csv", PAIRS.rstrip("\n")),
        "tsv": ("p.tsv", TSV),
        "tsv after a blank line": ("p.tsv", "\n" + TSV),
        "jsonl": ("p.jsonl", JSONL),
        "jsonl after a blank line": ("p.jsonl", "\n" + JSONL),
        "jsonl with blank lines between": ("p.jsonl", JSONL.replace("\n", "\n\n")),
        "csv.gz": ("p.csv.gz", gzip.compress(PAIRS.encode())),
        "tsv.gz": ("p.tsv.gz", gzip.compress(TSV.encode())),
        "jsonl.gz": ("p.jsonl.gz", gzip.compress(JSONL.encode())),
        "parquet": ("p.parquet", parquet),
    }
    for name, (file, content) in files.items():
        yield Case(
            f"columns/{name}",
            _SCORE.format(file=file),
            status=(0,),
            files={file: content},
            made=("o.csv",),
            check=keeps_notes,
        )
    differ = "".join(json.dumps(row) + "\n" for row in later)

    def all_of_both(folder: Path) -> None:
        rows = _read(folder / "o.csv")
        assert {"note", "extra"} <= rows[0].keys(), rows[0]
        assert [row["note"] for row in rows] == ["", "n2", "n3", "n4"]
        assert [row["extra"] for row in rows] == ["1", "", "", ""]

    yield Case(
        "columns/jsonl column of the second row",
        _SCORE.format(file="p.jsonl"),
        status=(0,),
        files={"p.jsonl": differ},
        made=("o.csv",),
        check=all_of_both,
    )
    truth = JSONL.replace('"n1"', "true")
    yield Case(
        "columns/jsonl true in the first row",
        _SCORE.format(file="p.jsonl"),
        status=(0,),
        files={"p.jsonl": truth},
        made=("o.csv",),
        check=lambda folder: _same([row["note"] for row in _read(folder / "o.csv")][1:]),
    )
    lists = JSONL.replace('"n2"', "[1, 2]")
    yield Case(
        "columns/jsonl list to csv",
        _SCORE.format(file="p.jsonl"),
        says="note",
        files={"p.jsonl": lists},
    )
    yield Case(
        "columns/jsonl list to jsonl",
        "condsim score --file p.jsonl --output o.jsonl",
        status=(0,),
        files={"p.jsonl": lists},
        made=("o.jsonl",),
        check=lambda folder: _second(folder / "o.jsonl"),
    )


def _same(found: list[str]) -> None:
    assert found == ["n2", "n3", "n4"], found


def _second(path: Path) -> None:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert rows[1]["note"] == [1, 2], rows[1]


def hostile() -> Iterator[Case]:
    """Files that no command can read, in every command that reads rows."""
    long = "x" * 200_000
    deep = "[" * 100_000 + "]" * 100_000
    row = json.dumps(ROWS[0])
    files: dict[str, tuple[str, object, str]] = {
        "missing": ("nope.csv", None, r"nope\.csv"),
        "empty": ("p.csv", "", r"p\.csv"),
        "a folder": ("p.csv", lambda path: path.mkdir(), r"p\.csv"),
        "header alone": ("p.csv", HEAD, r"p\.csv|rows"),
        "not UTF-8": ("p.csv", f"{HEAD}caf\xe9".encode() + b"\xff,b,c,1,n\n", "UTF-8"),
        "UTF-16 without a mark": ("p.csv", PAIRS.encode("utf-16-le"), "UTF-16"),
        "gzip named csv": ("p.csv", gzip.compress(PAIRS.encode()), "gzip"),
        "csv named gz": ("p.csv.gz", PAIRS.encode(), "gz"),
        "gz cut short": ("p.csv.gz", gzip.compress(PAIRS.encode() * 50)[:80], r"p\.csv\.gz"),
        "NUL bytes": ("p.csv", PAIRS.replace("ball", "b\0ll"), r"NUL|p\.csv"),
        "sparse gigabyte": ("p.csv", lambda path: _sparse(path, 1_000_000_000), "NUL|line|MiB"),
        "quote never closed": ("p.csv", HEAD + '"A man,B,C,1,n\n' + ROW * 50, r"p\.csv"),
        "jsonl array": ("p.jsonl", "[1]\n", r"p\.jsonl"),
        "jsonl number": ("p.jsonl", "5\n", r"p\.jsonl"),
        "jsonl cut": ("p.jsonl", row[:40], r"p\.jsonl"),
        "jsonl deep nesting": ("p.jsonl", f'{{"sentence1": {deep}}}\n', r"p\.jsonl"),
        "parquet that is text": ("p.parquet", PAIRS, r"p\.parquet"),
        "parquet of noise": ("p.parquet", b"PAR1" + bytes(range(256)) * 9, r"p\.parquet"),
        "unknown ending": ("p.xyz", PAIRS, r"p\.xyz|\.csv"),
        "a column named twice": ("p.csv", "sentence1,sentence1,condition\na,b,c\n", "sentence"),
        "no such column": ("p.csv", "first,second\na,b\n", "sentence1"),
        "more cells than columns": ("p.csv", HEAD + "a,b,c,1,n,more,still\n", r"p\.csv"),
        "fewer cells than columns": ("p.csv", HEAD + "a,b\n", r"p\.csv"),
    }
    for name, (file, content, says) in files.items():
        for user, command in _USERS.items():
            if user in ("dedupe", "index", "leakage") and name in ("header alone",):
                continue
            yield Case(
                f"{user}/{name}",
                command.format(file=file),
                says=says,
                files={} if content is None else {file: content},  # type: ignore[dict-item]
            )
    for name, kept in {
        "a cell of 200 kB": HEAD + f'"{long}",b,c,1,n\n' + ROW + OTHER + THIRD,
        "an unused column named twice": PAIRS.replace("note", "x", 1).replace("label,x", "x,x"),
    }.items():
        yield Case(
            f"score/{name}",
            _SCORE.format(file="p.csv"),
            status=(0,) if "named" in name else (0, 2),
            never="must be closed",
            files={"p.csv": kept},
            writes=("o.csv",),
        )


def _sparse(path: Path, size: int) -> None:
    with path.open("wb") as stream:
        stream.truncate(size)


def special() -> Iterator[Case]:
    """Pipes, devices and standard input."""
    for user in ("score", "evaluate", "data check"):
        command = _USERS[user].format(file="p.csv")
        yield Case(
            f"{user}/a FIFO",
            f"mkfifo p.csv; (cat g.csv > p.csv) & timeout 40 {command}",
            status=(0, 2),
            files={"g.csv": PAIRS},
            writes=("p.csv", "o.csv"),
        )
        yield Case(
            f"{user}/a link to an endless device",
            f"ln -s /dev/zero p.csv; timeout 40 {command}",
            says="NUL|MiB|line|regular file",
            writes=("p.csv",),
            memory=1000,
        )
    yield Case("stdin/closed", "condsim score --file - <&-", says="Standard input")
    for name, made in {
        "comma for tab": "cat p.csv",
        "an array": "echo '[1]'",
        "noise": "head -c 1000 p.csv | tac -s , | tr ',' '\\377'",
    }.items():
        yield Case(
            f"stdin/{name}",
            f"{made} | condsim score --file -",
            status=(0, 2),
            never="/tmp/condsim-",
            files={"p.csv": PAIRS},
        )
    yield Case(
        "stdin/data check",
        "condsim data check - < p.csv",
        status=(0, 2),
        says="",
        never="Traceback",
        files={"p.csv": PAIRS},
    )
    yield Case(
        "stdin/process substitution",
        "condsim score --file <(cat p.csv)",
        status=(0, 2),
        files={"p.csv": PAIRS},
    )
    yield Case(
        "stdin/no room for it",
        "ulimit -f 0; condsim score --file - < p.tsv > /dev/null",
        status=(0, 2, 153),
        files={"p.tsv": TSV},
    )
    yield Case(
        "read/no right to read",
        "chmod 0 p.csv; condsim score --file p.csv --output o.csv; s=$?; chmod 600 p.csv; exit $s",
        status=(0, 2) if os.geteuid() == 0 else (2,),
        files={"p.csv": PAIRS},
        writes=("p.csv", "o.csv"),
    )


def unusual() -> Iterator[Case]:
    """Text that is odd but right."""
    rows = {
        "half a surrogate in a text": (json.dumps({**ROWS[0], "sentence1": "\ud800"}), (2,)),
        "half a surrogate in a kept column": (json.dumps({**ROWS[0], "note": "\ud800"}), (0, 2)),
        "half a surrogate in a kept key": (json.dumps({**ROWS[0], "\ud800": 1}), (0, 2)),
        "emoji": (json.dumps({**ROWS[0], "sentence1": "\U0001f600 \u202e abc"}), (0,)),
        "a text of 100,000 words": (
            json.dumps({**ROWS[0], "sentence1": "word " * 100_000}),
            (0, 2),
        ),
        "a text of blanks": (json.dumps({**ROWS[0], "sentence1": "  "}), (2,)),
        "a number as text": (json.dumps({**ROWS[0], "sentence1": 5}), (0, 2)),
        "null as text": (json.dumps({**ROWS[0], "sentence1": None}), (2,)),
        "10**400 as label": (json.dumps({**ROWS[0], "label": 10**400}), (0, 2)),
    }
    for name, (line, status) in rows.items():
        for user in ("score", "evaluate", "predict"):
            right = status if user == "score" or 2 in status else (*status, 2)
            yield Case(
                f"{user}/{name}",
                _USERS[user].format(file="p.jsonl").replace("o.csv", "o.jsonl"),
                status=right,
                files={"p.jsonl": line + "\n" + JSONL},
                writes=("o.jsonl", "o.json"),
            )


CASES = [*columns(), *hostile(), *special(), *unusual()]
