"""Files that cannot be read, and files that are unusual but valid."""

from __future__ import annotations

import gzip
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.faults.harness import Case, paired

HEAD = "sentence1,sentence2,condition,label,note\n"
ROW = "A man throws a ball,A girl kicks a ball,the sport,4,n1\n"
PAIRS = (
    f"{HEAD}{ROW}"
    "A man throws a ball,A dog runs,the animal,2,n2\n"
    "A boy eats,Two women eat,the number of people,1,n3\n"
    "A boy eats,Two women eat,the activity,5,n4\n"
)
ROWS = [
    dict(zip(HEAD.strip().split(","), line.split(","), strict=True))
    for line in PAIRS.splitlines()[1:]
]
JSONL = "".join(json.dumps(row) + "\n" for row in ROWS)
TSV = PAIRS.replace(",", "\t")

READERS = {
    "score": "condsim score --file {file} --output o.csv",
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


def _sparse(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(1_000_000_000)


_Fault = tuple[str, str, str | bytes | Callable[[Path], object] | None, str]
_DEEP = "[" * 100_000 + "]" * 100_000
# Name of the fault, name of the file, its content and a pattern of the message. With two commands
# a fault, every command meets every kind.
_HOSTILE: dict[str, list[_Fault]] = {
    "places": [
        ("missing", "nope.csv", None, r"nope\.csv"),
        ("empty", "p.csv", "", r"p\.csv"),
        ("a folder", "p.csv", Path.mkdir, r"p\.csv"),
        ("unknown ending", "p.xyz", PAIRS, r"p\.xyz|\.csv"),
        ("a quote never closed", "p.csv", HEAD + '"A man,B,C,1,n\n' + ROW * 50, r"p\.csv"),
    ],
    "encodings": [
        ("not UTF-8", "p.csv", f"{HEAD}caf\xe9".encode() + b"\xff,b,c,1,n\n", "UTF-8"),
        ("UTF-16 cut short", "p.jsonl", JSONL.encode("utf-16-le")[:-1], "UTF-16"),
        ("gzip named csv", "p.csv", gzip.compress(PAIRS.encode(), mtime=0), "gzip"),
        (
            "gz cut short",
            "p.csv.gz",
            gzip.compress(PAIRS.encode() * 50, mtime=0)[:80],
            r"p\.csv\.gz",
        ),
        ("NUL bytes", "p.csv", PAIRS.replace("ball", "b\0ll"), r"NUL|p\.csv"),
        ("a sparse gigabyte", "p.csv", _sparse, "NUL|line|MiB"),
    ],
    "tables": [
        ("a column named twice", "p.csv", "sentence1,sentence1,condition\na,b,c\n", "sentence"),
        ("no such column", "p.csv", "first,second\na,b\n", "sentence1"),
        ("more cells than columns", "p.csv", HEAD + "a,b,c,1,n,more\n", r"p\.csv"),
        ("fewer cells than columns", "p.csv", HEAD + "a,b\n", r"p\.csv"),
        ("header alone in TSV", "p.tsv", HEAD.replace(",", "\t"), r"p\.tsv|rows"),
    ],
    "other formats": [
        ("JSON array", "p.jsonl", "[1]\n", r"p\.jsonl"),
        ("JSON cut short", "p.jsonl", JSONL[:40], r"p\.jsonl"),
        ("JSON nested deep", "p.jsonl", f'{{"sentence1": {_DEEP}}}\n', r"p\.jsonl"),
        ("Parquet of text", "p.parquet", PAIRS, r"p\.parquet"),
        ("Parquet of noise", "p.parquet", b"PAR1" + bytes(range(256)) * 9, r"p\.parquet"),
    ],
}


def hostile() -> Iterator[Case]:
    """Files that no command can read."""
    for faults in _HOSTILE.values():
        for (name, file, content, says), (reader, command) in paired(faults, READERS.items()):
            yield Case(
                f"{reader}/{name}",
                command.format(file=file),
                says=says,
                files={} if content is None else {file: content},
            )


def special() -> Iterator[Case]:
    """Pipes, devices and standard input."""
    pairs = {"p.csv": PAIRS}
    for reader in ("score", "evaluate"):
        command = READERS[reader].format(file="p.csv")
        yield Case(
            f"{reader}/a FIFO",
            f"mkfifo p.csv; (cat g.csv > p.csv) & timeout 40 {command}",
            status=(0, 2),
            files={"g.csv": PAIRS},
            writes=("p.csv", "o.csv"),
        )
        yield Case(
            f"{reader}/a link to an endless device",
            f"ln -s /dev/zero p.csv; timeout 40 {command}",
            says="NUL|MiB|line|regular file",
            writes=("p.csv",),
            memory=1000,
        )
    yield Case("stdin/closed", "condsim score --file - <&-", says="Standard input")
    for name, source in {
        "comma for tab": "cat p.csv",
        "noise": "head -c 1000 p.csv | tac -s , | tr ',' '\\377'",
    }.items():
        yield Case(
            f"stdin/{name}",
            f"{source} | condsim score --file -",
            status=(0, 2),
            never=re.escape(f"{tempfile.gettempdir()}/condsim-"),
            files=pairs,
        )
    yield Case(
        "stdin/process substitution",
        "condsim score --file <(cat p.csv)",
        status=(0, 2),
        files=pairs,
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
        files=pairs,
        writes=("p.csv", "o.csv"),
    )


def unusual() -> Iterator[Case]:
    """Text that is unusual; commands may refuse what is not certainly valid."""
    rows = {
        "half a surrogate in a text": ({"sentence1": "\ud800"}, (2,)),
        "half a surrogate in another column": ({"note": "\ud800"}, (0, 2)),
        "emoji": ({"sentence1": "\U0001f600 \u202e abc"}, (0,)),
        "a text of 30,000 words": ({"sentence1": "word " * 30_000}, (0, 2)),
        "a text of blanks": ({"sentence1": "  "}, (0, 2)),
        "null as text": ({"sentence1": None}, (0, 2)),
        "10**400 as label": ({"label": 10**400}, (0, 2)),
    }
    readers = ("score", "evaluate", "predict")
    for (name, (change, status)), reader in paired(rows.items(), readers):
        yield Case(
            f"{reader}/{name}",
            READERS[reader].format(file="p.jsonl").replace("o.csv", "o.jsonl"),
            status=status if reader == "score" or 2 in status else (*status, 2),
            files={"p.jsonl": json.dumps({**ROWS[0], **change}) + "\n" + JSONL},
            writes=("o.jsonl", "o.json"),
        )


CASES = [*hostile(), *special(), *unusual()]
