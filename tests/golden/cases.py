"""Tiny cases for every command: its happy path, its main options and its refusals.

A step names a command line without ``condsim``. Paths begin at the folder of the case; ``../repo``
is the repository, ``../NAME`` the folder of another case, which must be in `Case.after`.
"""

from __future__ import annotations

import gzip
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests.golden import inputs, library

Content = str | bytes | Callable[[Path], object]


@dataclass(frozen=True)
class Request:
    """A request to a server that a step starts."""

    path: str
    body: Any = None
    raw: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    reduce: Callable[[Any, int], Any] = lambda body, status: body


@dataclass(frozen=True)
class Step:
    """One command line."""

    words: tuple[str, ...]
    stdin: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    help: bool = False
    folder: str = "."
    requests: tuple[Request, ...] = ()


@dataclass(frozen=True)
class Case:
    """Steps in a folder of their own.

    Attributes:
        name: ``command/what``; the folder is named after it.
        steps: Command lines, one after the other.
        files: Files that are there first, by name.
        group: ``slow`` for those that need torch.
        after: Cases whose folders this one reads.
        skip: Regular expression over names of files that are not described.
        server: Kind of a server that answers at ``{url}``; see `servers.KINDS`.
        python: Function that runs in the folder and whose result is kept.
        committed: Whether ``expected.json`` has the case.
        tolerance: Wider tolerance for numbers; training with ``precision: auto`` is not exact.
    """

    name: str
    steps: tuple[Step, ...] = ()
    files: Mapping[str, Content] = field(default_factory=dict)
    group: Literal["quick", "slow"] = "quick"
    after: tuple[str, ...] = ()
    skip: str = ""
    server: str | None = None
    python: Callable[[Path], object] | None = None
    committed: bool = True
    tolerance: float | None = None

    @property
    def folder(self) -> str:
        """Name of the folder of the case."""
        return re.sub(r"\W+", "-", self.name)


def case(name: str, *lines: str | Step, **options: Any) -> Case:
    """Make a case of command lines."""
    steps = tuple(
        line if isinstance(line, Step) else Step(tuple(shlex.split(line))) for line in lines
    )
    return Case(name, steps, **options)


def refused(name: str, line: str, **options: Any) -> Case:
    """Make a case whose name says that its command must end with status 2."""
    return case(f"{name.split('/')[0]}/refused {name.split('/')[1]}", line, **options)


P = {"p.csv": inputs.PAIRS}
DEV = {"dev.csv": inputs.DEV}
TEXTS = {"t.csv": inputs.TEXTS}
DAMAGED: dict[str, dict[str, Content]] = {
    "missing file": {},
    "empty file": {"p.csv": ""},
    "header alone": {"p.csv": "sentence1,sentence2,condition,label\n"},
    "no such column": {"p.csv": "first,second\na,b\n"},
    "a column named twice": {"p.csv": "sentence1,sentence1,condition\na,b,c\n"},
    "fewer cells": {"p.csv": inputs.PAIRS + "a,b\n"},
    "an empty cell": {"p.csv": inputs.BLANK_FIELD},
    "a label of words": {"p.csv": inputs.BAD_LABEL},
    "not UTF-8": {"p.csv": (inputs.PAIRS + "caf\xe9,b,c,1,n\n").encode("cp1252")},
    "gzip named csv": {"p.csv": gzip.compress(inputs.PAIRS.encode())},
    "a NUL": {"p.csv": inputs.PAIRS.replace("ball", "b\0ll")},
}
READERS = {
    "score": "score --file p.csv --output o.csv",
    "evaluate": "evaluate --data p.csv --resamples 10",
    "data check": "data check p.csv",
    "predict": "predict --data p.csv --output o.json",
}

HELP = [
    case(f"help/{name}", Step((*name.split(), "--help"), help=True))
    for name in (
        "adapt|applicability evaluate|applicability fit|average|build agreement|build answers|"
        "build candidates|build counter-edits|build criteria|build dataset|build filter|"
        "build leakage|build mturk form|build mturk results|build prefill|build pull|build push|"
        "build qualify|build split|build status|build teach|build weak|cluster|contexts run|"
        "contexts weigh|data check|dedupe|encode|evaluate|explain|export|index add|"
        "index approximate|index build|index delete|index info|index prepare|info|predict|prompt|"
        "robustness|score|search|serve|sweep|threshold|train"
    ).split("|")
]

GENERAL = [
    case("general/version", "--version"),
    case("general/info", "info"),
    *(
        refused(f"general/{name}", line)
        for name, line in {
            "unknown command": "nope",
            "unknown option": "score --modle x",
            "no arguments of a group": "index",
            "missing option": "encode",
            "model that is not there": "score --model nowhere a b c",
            "model of a file": "score --model ../repo/README.md a b c",
            "empty name of a file": "score --file ''",
        }.items()
    ),
    *(
        refused(f"{reader}/{name}", line, files=files)
        for reader, line in READERS.items()
        for name, files in DAMAGED.items()
    ),
]

SCORE = [
    case("score/one pair", "score 'A man throws a ball.' 'A girl kicks a ball.' 'the sport'"),
    refused("score/no condition", "score 'A man throws a ball.' 'A girl kicks a ball.'"),
    *(
        case(
            f"score/scale {scale}",
            f"score 'A man throws a ball.' 'A girl kicks a ball.' 'the sport' --scale {scale}",
            f"score --file p.csv --scale {scale}",
            files=P,
        )
        for scale in ("unit", "likert", "raw")
    ),
    case(
        "score/file to each format",
        *(f"score --file p.csv --output o{ending}" for ending in (".csv", ".tsv", ".jsonl")),
        "score --file p.csv --output o.csv.gz",
        files=P,
    ),
    case(
        "score/file of each format",
        "score --file p.tsv",
        "score --file p.jsonl --output o.csv",
        "score --file p.csv.gz --output o2.csv",
        files={
            "p.tsv": inputs.PAIRS_TSV,
            "p.jsonl": inputs.PAIRS_JSONL,
            "p.csv.gz": gzip.compress(inputs.PAIRS.encode(), mtime=0),
        },
    ),
    case(
        "score/parquet",
        "score --file p.parquet --output o.parquet",
        "score --file p.parquet --output o.csv",
        files={"p.parquet": library.write_parquet},
    ),
    case("score/table", "score --file p.csv --table", "score --file p.csv --no-table", files=P),
    case(
        "score/standard input",
        Step(("score", "--file", "-"), stdin="p.tsv"),
        Step(("score", "--file", "-", "--scale", "raw"), stdin="p.jsonl"),
        files={"p.tsv": inputs.PAIRS_TSV, "p.jsonl": inputs.PAIRS_JSONL},
    ),
    case(
        "score/column named score",
        "score --file p.csv --output o.csv",
        files={"p.csv": inputs.PAIRS.replace("note", "score")},
    ),
    case("score/examples", "score --file ../repo/examples/pairs.csv --output o.csv"),
    case(
        "score/long and odd texts",
        "score --file o.jsonl --output out.jsonl",
        files={
            "o.jsonl": inputs.lines(
                [
                    {"sentence1": "word " * 900, "sentence2": "a word", "condition": "the word"},
                    {"sentence1": "läuft 女 😀", "sentence2": "¡Ah!", "condition": "ñ?"},
                ]
            )
        },
    ),
    refused("score/two texts and a file", "score a b c --file p.csv", files=P),
    refused("score/output without file", "score a b c --output o.csv"),
    refused("score/unknown scale", "score a b c --scale percent"),
    refused("score/empty text", "score '' b c"),
    refused("score/output over the input", "score --file p.csv --output p.csv", files=P),
    refused("score/unknown ending", "score --file p.csv --output o.xyz", files=P),
    refused("score/workers without ray", "score --file p.csv --output o.csv --workers 2", files=P),
]

ENCODE = [
    case(
        "encode/npy and npz",
        "encode --file s.csv --output o.npy",
        "encode --file s.csv --output o.npz",
        "encode --file s.csv --output half.npy --float16",
        "encode --file s.csv --output plain.npy --plain",
        files={"s.csv": inputs.SENTENCE_FILE},
    ),
    case("encode/column", "encode --file p.csv --column sentence2 --output o.npy", files=P),
    refused("encode/unknown column", "encode --file p.csv --column nope --output o.npy", files=P),
    refused("encode/unknown ending", "encode --file p.csv --column note --output o.csv", files=P),
]

EXPLAIN = [
    case(
        "explain/one pair",
        "explain 'Three people watch tennis.' 'A trio plays tennis.' 'number of people'",
        "explain 'Three people watch tennis.' 'A trio plays tennis.' 'the sport' --top 2 "
        "--scale likert --samples 16 --seed 3",
    ),
    case(
        "explain/files",
        "explain --file p.csv --output o.jsonl",
        "explain 'A dog barks.' 'A cat sleeps.' 'the animal' --output o.json",
        "explain 'A dog barks.' 'A cat sleeps.' 'the animal' --output o.png",
        files=P,
        committed=False,
    ),
    case("explain/html", "explain 'A dog barks.' 'A cat sleeps.' 'the animal' --output o.html"),
    refused("explain/file without output", "explain --file p.csv", files=P),
    refused("explain/unknown ending", "explain a b c --output o.xyz"),
    refused("explain/no samples", "explain a b c --samples 0"),
]

EVALUATE = [
    case("evaluate/dev", "evaluate --data dev.csv --resamples 50 --json r.json", files=DEV),
    case(
        "evaluate/baselines",
        "evaluate --data dev.csv --train train.csv --baseline word-overlap --baseline tfidf-cosine "
        "--baseline sentences-only --resamples 20 --seed 3 --markdown --json r.json",
        files={**DEV, "train.csv": inputs.TRAIN},
    ),
    case(
        "evaluate/against",
        "evaluate --data dev.csv --against word-overlap --resamples 20 --json r.json "
        "--over-estimation --plot o.png",
        files=DEV,
    ),
    case(
        "evaluate/written",
        "evaluate --data w.txt --resamples 20",
        files={"w.txt": library.written_slice(60)},
        committed=False,
    ),
    case(
        "evaluate/several",
        "evaluate --data dev.csv --data train.csv --model words=word-overlap --model default "
        "--resamples 20 --json r.json --csv r.csv",
        files={**DEV, "train.csv": inputs.TRAIN},
    ),
    case(
        "evaluate/suite written",
        "evaluate --suite written --data w.txt --model default --baseline word-overlap "
        "--baseline condition-only --resamples 10 --json r.json",
        files={"w.txt": library.written_slice(60)},
        committed=False,
    ),
    case(
        "evaluate/suite criteria",
        "evaluate --suite criteria --data d --model default --baseline word-overlap "
        "--baseline condition-only --resamples 10 --json r.json",
        files={"d/dev_rows.csv": inputs.SETS},
    ),
    refused("evaluate/unknown baseline", "evaluate --data dev.csv --baseline nope", files=DEV),
    refused("evaluate/unknown suite", "evaluate --suite nope --data ."),
    refused("evaluate/csv without suite", "evaluate --data dev.csv --csv o.csv", files=DEV),
    refused("evaluate/plot alone", "evaluate --data dev.csv --plot o.png", files=DEV),
    refused("evaluate/no resamples", "evaluate --data dev.csv --resamples 0", files=DEV),
    refused("evaluate/json over train", "evaluate --data dev.csv --json dev.csv", files=DEV),
]

REPORTS = [
    case("threshold/graded", "threshold g.csv", files={"g.csv": inputs.GRADED_MANY}),
    case(
        "threshold/options",
        "threshold g.csv --precision 0.8 --positive 5",
        files={"g.csv": inputs.GRADED},
    ),
    case("threshold/too few rows", "threshold p.csv", files=P),
    refused("threshold/precision above 1", "threshold p.csv --precision 2", files=P),
    case(
        "robustness/file",
        "robustness r.csv --resamples 20 --top 3 --json r.json",
        files={"r.csv": inputs.REWORDINGS},
    ),
    case("robustness/bundled", "robustness --resamples 10 --top 2 --seed 2", committed=False),
    refused("robustness/pairs", "robustness p.csv", files=P),
    case(
        "applicability/fit and evaluate",
        "applicability fit --data a.csv --output h.json",
        "applicability fit --data a.csv --output h2.json --strength 1 --extra e.csv --sample 20",
        "applicability evaluate --data a.csv --resamples 20 --json r.json",
        files={
            "a.csv": inputs.DEV_ABSENT,
            "e.csv": inputs.EXTRA,
        },
    ),
    refused(
        "applicability/all apply", "applicability fit --data dev.csv --output h.json", files=DEV
    ),
    refused(
        "applicability/strength 0",
        "applicability fit --data a.csv --output h.json --strength 0",
        files={"a.csv": inputs.DEV_ABSENT},
    ),
    case("predict/unit", "predict --data p.csv --output o.json", files=P),
    case("predict/likert", "predict --data p.csv --output o.json --scale likert", files=P),
    refused("predict/output over the input", "predict --data p.csv --output p.csv", files=P),
    case(
        "data/check",
        "data check dev.csv",
        "data check dev.csv --top 2 --json",
        "data check a.csv",
        "data check w.txt",
        files={**DEV, "a.csv": inputs.DEV_ABSENT, "w.txt": library.written_slice(20)},
    ),
]

_INDEX_STATE = r"\.lock$|_versions|_transactions"
SEARCH = [
    case(
        "index/life",
        "index build t.csv --output i.index --key id --condition 'number of people'",
        "index add i.index new.csv",
        "search i.index 'Five dogs run.' --condition 'number of people' --condition 'the place' "
        "--weight 0.7 --weight 0.3 --where 'year > 2014' --top 3 --json",
        "index delete i.index --where 'year < 2012'",
        "index info i.index",
        files={**TEXTS, "new.csv": inputs.NEWS},
        skip=_INDEX_STATE,
    ),
    case(
        "index/options",
        "index build t.csv --output i.index --key id",
        "index info i.index",
        "index add i.index new.csv",
        "index add i.index t.csv",
        "index add i.index new.csv --update",
        "index prepare i.index --condition 'the activity'",
        "search i.index 'Five dogs run.' --condition 'number of people' --top 4",
        "search i.index 'A woman reads.' --condition 'the activity' --at-least 0.6",
        "search i.index 'A woman reads.' --condition 'the place' --rescore 5 --top 2",
        "index delete i.index --key 39 --key 40",
        "index info i.index",
        files={**TEXTS, "new.csv": inputs.NEWS},
        skip=_INDEX_STATE,
        committed=False,
    ),
    case(
        "index/without a key",
        "index build t.csv --output i.index",
        "search i.index 'A girl eats.' --condition 'the food' --top 2",
        "index delete i.index --key 1",
        "index approximate i.index",
        files=TEXTS,
        skip=r".",
        committed=False,
    ),
    refused("index/unknown column", "index build t.csv --output i --column nope", files=TEXTS),
    refused("index/folder with files", "index build t.csv --output .", files=TEXTS),
    refused("index/info of nothing", "index info nowhere.index"),
    refused("index/key twice", "index build t.csv --output i --key year", files=TEXTS),
    refused("index/delete without a filter", "index delete nowhere.index"),
    refused("search/no index", "search nowhere.index q --condition c"),
    refused("search/weights", "search nowhere.index q --condition c --weight 1 --weight 2"),
    refused("search/weight of no number", "search d q --condition c --weight nan"),
    refused("search/top 0", "search d q --condition c --top 0"),
    case(
        "cluster/k",
        "cluster t.csv --condition 'number of people' --k 4 --output o.csv --json o.json "
        "--plot o.png",
        files=TEXTS,
        committed=False,
    ),
    case(
        "cluster/two conditions by size",
        "cluster t.csv --condition 'number of people' --condition 'the activity' --min-size 4 "
        "--output o.jsonl --json o.json --seed 2",
        files=TEXTS,
    ),
    refused(
        "cluster/k and size",
        "cluster t.csv --condition a --k 3 --min-size 4 --output o.csv",
        files=TEXTS,
    ),
    refused(
        "cluster/k too large", "cluster t.csv --condition a --k 900 --output o.csv", files=TEXTS
    ),
    case(
        "dedupe/groups",
        "dedupe t.csv --condition 'number of people' --at-least 0.9 --output o.csv --groups g.csv",
        "dedupe t.csv --condition 'the activity' --keep-if-differs 'number of people' "
        "--at-least 0.8 --keep newest:year --output o.jsonl",
        "dedupe t.csv --condition 'the activity' --at-least 0.8 --keep longest --output o.tsv",
        files=TEXTS,
    ),
    refused(
        "dedupe/score above 1",
        "dedupe t.csv --condition a --at-least 2 --output o.csv",
        files=TEXTS,
    ),
    refused(
        "dedupe/unknown keep",
        "dedupe t.csv --condition a --at-least 0.9 --keep oldest --output o.csv",
        files=TEXTS,
    ),
]

BUILD = [
    case(
        "build/candidates captions",
        "build candidates c.csv --item-column image_id --caption-column caption --output p.parquet "
        "--text-encoder default --preset coco --k 3 --max-iou 0.5 --min-length 20 --sample 20 "
        "--seed 1",
        "build filter p.parquet --max-iou 0.3 --no-text-cosine --output f.csv",
        files={"c.csv": inputs.CAPTIONS},
        skip=r"^\.|cache",
    ),
    case(
        "build/candidates texts",
        "build candidates t.csv --texts --caption-column text --output p.parquet "
        "--text-encoder default --no-text-cosine --k 2 --source mine",
        files=TEXTS,
    ),
    case(
        "build/candidates vectors",
        "build candidates c.csv --item-column image_id --caption-column caption --embeddings v.npy "
        "--output p.parquet --k 2",
        files={"c.csv": inputs.CAPTIONS, "v.npy": library.write_vectors},
        committed=False,
    ),
    refused(
        "build/candidates unknown preset",
        "build candidates t.csv --output p --preset koko",
        files=TEXTS,
    ),
    refused(
        "build/candidates options that contradict",
        "build candidates t.csv --texts --images a --output p.parquet",
        files=TEXTS,
    ),
    case(
        "build/filter",
        "build filter p.csv --preset coco --no-text-cosine --min-length 5",
        "build filter p.csv dev.csv --min-ratio 0.7 --max-iou 0.9 --output o.csv",
        "build filter p.csv --min-cosine 0.5 --text-encoder default",
        files={**P, **DEV},
        committed=False,
    ),
    refused("build/filter iou above 1", "build filter p.csv --max-iou 2", files=P),
    case(
        "build/mturk and qualify",
        "build qualify --accept W2 --accept W1",
        "build mturk form verification --data c.csv --output .",
        "build status --offline",
        "build prefill verification --model default",
        "build status --offline",
        "build mturk form conditions --data pairs.csv --output . --anyone --annotators 1",
        "build mturk form qualification --output .",
        "build qualify --reject W1",
        files={"c.csv": inputs.CONDITION_ROWS, "pairs.csv": inputs.PLAIN_PAIRS},
    ),
    case(
        "build/mturk results",
        "build qualify --accept W2 --accept W3",
        "build mturk form verification --data c.csv --output . --annotators 2",
        "build mturk results verification batch.csv --output ratings.csv",
        "build mturk results verification batch.csv --output ratings.csv",
        "build status --offline",
        "build qualify --reject W3",
        "build mturk results verification batch.csv --output ratings2.csv",
        files={"c.csv": inputs.CONDITION_ROWS, "batch.csv": library.BATCH},
        committed=False,
    ),
    case(
        "build/label studio",
        *(
            Step(
                (*line.split(), *("--server", "{url}")),
                environment={"LABEL_STUDIO_API_KEY": "none"},
            )
            for line in (
                "build push qualification",
                "build pull qualification",
                "build push conditions --data pairs.csv --annotators 2 --anyone",
                "build pull conditions --output conditions.csv --hints",
                "build push verification --data conditions.csv --annotators 2 --anyone --title T",
                "build push verification --data conditions.csv --annotators 2 --anyone",
                "build pull verification --output ratings.csv",
                "build pull verification",
                "build status",
            )
        ),
        "build qualify --min-conditions 0.2 --min-ratings 0.2",
        "build qualify --reject ann@example.org",
        "build agreement ratings.csv",
        files={"pairs.csv": inputs.PLAIN_PAIRS},
        server="label-studio",
        committed=False,
    ),
    refused("build/push without a token", "build push qualification"),
    refused("build/pull from no URL", "build pull conditions --server x"),
    case(
        "build/refused server that is not there",
        Step(
            ("build", "push", "qualification", "--server", "http://127.0.0.1:9"),
            environment={"LABEL_STUDIO_API_KEY": "none"},
        ),
    ),
    refused("build/prefill of a test", "build prefill qualification"),
    refused("build/status of nothing", "build status --offline"),
    refused("build/form to no folder", "build mturk form qualification --output missing"),
    refused(
        "build/results not handed out",
        "build mturk results conditions b.csv",
        files={"b.csv": library.BATCH},
    ),
    case(
        "build/agreement",
        "build agreement r.csv --json r.json",
        files={"r.csv": inputs.RATINGS},
    ),
    case(
        "build/dataset",
        "build dataset r.csv --output set --source 'mine=made up, CC0' --license cc0-1.0 "
        "--name Demo",
        "build dataset r.csv --output set2 --labels majority --min-ratings 3 --count-models "
        "--group pair --ratios 80:10:10 --format parquet --keep-lone --seed 4 --source mine=free",
        files={"r.csv": inputs.RATINGS},
    ),
    refused(
        "build/dataset ratios",
        "build dataset r.csv --output s --ratios 1:2",
        files={"r.csv": inputs.RATINGS},
    ),
    refused("build/agreement of pairs", "build agreement p.csv", files=P),
    case(
        "build/split",
        "build split dev.csv --output set --source mine=free",
        "build split dev.csv --output set2 --ratios 80:10:10 --group pair --oversize cut "
        "--format parquet --source mine=free",
        files={"dev.csv": inputs.table(inputs.graded_rows(40))},
        committed=False,
    ),
    refused("build/split over a folder", "build split dev.csv --output .", files=DEV),
    case(
        "build/leakage",
        "build leakage train.csv dev.csv --resamples 20 --json r.json",
        files={"train.csv": inputs.table(inputs.labelled_rows(40)), "dev.csv": inputs.TRAIN},
    ),
    case(
        "build/answers",
        "build answers g.csv --output o.csv",
        "build answers g.csv --output o2.csv --seed 3",
        files={"g.csv": inputs.table(inputs.graded_rows(10))},
        committed=False,
    ),
    case(
        "build/answers and conditions of a language model",
        "prompt --model fake --base-url {url}/v1 --data dev.csv --answers a.sqlite --save s.yaml "
        "--resamples 10",
        "build answers p.csv --model s.yaml --output o.csv",
        "build mturk form conditions --data pairs.csv --output . --anyone",
        "build prefill conditions --model s.yaml --name fake",
        "build status --offline",
        files={**P, **DEV, "pairs.csv": inputs.PLAIN_PAIRS},
        server="language-model",
        skip=r"sqlite-(wal|shm)$|a\.sqlite$",
        committed=False,
    ),
    case(
        "build/teach",
        "build teach dev.csv --model default --given 0.3 --output o.csv",
        "build teach pairs.csv --model default --output plain.csv",
        files={**DEV, "pairs.csv": inputs.PLAIN_PAIRS},
    ),
    refused(
        "build/teach share 1",
        "build teach dev.csv --model default --given 1 --output o.csv",
        files=DEV,
    ),
    case(
        "build/criteria",
        "build criteria k.csv --output o.csv --rows 40 --criteria topic --criteria mood",
        "build criteria k.csv --output o2.csv --criteria topic --criteria stars --bins 2 --rows 30 "
        "--form pairs --seed 3 --json r.json --exclude dev.csv",
        "build criteria k.csv --output o3.parquet --bins 3 --balance none --group-size 4 "
        "--hard 0.5 --own-name 1 --rows 30",
        "build criteria k.csv --output o4.csv --settings s.yaml",
        "build criteria ../repo/data/attributes/hotels.jsonl --output o5.csv --rows 30",
        files={**DEV, "k.csv": inputs.TICKETS, "s.yaml": library.CRITERIA},
    ),
    refused(
        "build/criteria unknown column",
        "build criteria k.csv --output o.csv --criteria topik",
        files={"k.csv": inputs.TICKETS},
    ),
    refused(
        "build/criteria unknown setting",
        "build criteria k.csv --output o.csv --settings s.yaml",
        files={"k.csv": inputs.TICKETS, "s.yaml": "rowz: 4\n"},
    ),
    case(
        "build/counter-edits",
        "build counter-edits r.csv --output o.csv --json r.json",
        "build counter-edits r.csv --output o2.csv --rows 4 --seed 3",
        files={"r.csv": inputs.REVIEWS},
    ),
    case(
        "build/weak",
        "build weak c.csv --output o.csv --rows 30 --text-encoder words --k 5 --answers "
        "--json r.json --item-column image_id",
        "build weak c.csv --output o2.csv --rows 10 --text-encoder words --absent 5 "
        "--absent-output a.csv --exclude dev.csv --like dev.csv --seed 2",
        "build weak c.csv --output o3.csv --rows 10 --text-encoder default --sample 60",
        "build weak --check g.csv",
        "build weak c.csv",
        files={**DEV, "c.csv": inputs.CAPTIONS, "g.csv": inputs.GRADED},
        skip=r"cache",
        committed=False,
    ),
    refused("build/weak without files", "build weak"),
    refused(
        "build/weak unknown column",
        "build weak c.csv --output o.csv --caption-column nope --text-encoder words",
        files={"c.csv": inputs.CAPTIONS},
    ),
]

PROMPT = [
    case(
        "prompt/server",
        "prompt --model fake --base-url {url}/v1 --data dev.csv --answers a.sqlite --resamples 10 "
        "--json r.json --predictions p.csv --save s.yaml --examples 2",
        "prompt --model fake --base-url {url}/v1 --data dev.csv --answers a.sqlite --resamples 10 "
        "--parsing first-number",
        "evaluate --data dev.csv --model s.yaml --resamples 10",
        files=DEV,
        server="language-model",
        skip=r"sqlite",
    ),
    case(
        "prompt/shots",
        "prompt --model fake --base-url {url}/v1 --data dev.csv --train train.csv --shots 2 "
        "--instruction short --answers a.sqlite --max-requests 3 --seed 2",
        "prompt --model fake --base-url {url}/v1 --data dev.csv --train train.csv --shots 2 "
        "--instruction short --answers a.sqlite --dry-run --show 2 --seed 2",
        files={**DEV, "train.csv": inputs.TRAIN},
        server="language-model",
        skip=r"sqlite",
        committed=False,
    ),
    refused(
        "prompt/shots without train",
        "prompt --model m --backend server --data dev.csv --shots 2",
        files=DEV,
    ),
    refused(
        "prompt/no server",
        "prompt --model m --base-url http://127.0.0.1:9/v1 --retries 0 --data dev.csv "
        "--answers a.sqlite",
        files=DEV,
    ),
]

_SCORED = {"pairs": [["A man throws a ball.", "A girl kicks a ball."]], "conditions": ["the sport"]}
SERVE = [
    case(
        "serve/routes",
        "index build t.csv --output i.index --key id --condition 'number of people'",
        Step(
            ("serve", "--index", "i.index"),
            requests=(
                Request("/"),
                Request("/health"),
                Request("/ready"),
                Request("/v1/models"),
                Request("/metrics"),
                Request("/nowhere"),
                Request("/openapi.json", reduce=library.openapi_names),
                Request("/v1/score", _SCORED),
                Request("/v1/score", {**_SCORED, "scale": "likert"}),
                Request("/v1/score", {"pairs": _SCORED["pairs"]}),
                Request("/v1/score", {"pairs": 5}, reduce=library.error_kind),
                Request("/v1/score", {**_SCORED, "condition": "x"}, reduce=library.error_kind),
                Request("/v1/score", raw=b"{", reduce=library.error_kind),
                Request(
                    "/v1/embeddings",
                    {"input": ["A dog runs."], "condition": "the animal", "model": "default"},
                    reduce=library.shortened_vectors,
                ),
                Request("/v1/rerank", library.RERANK),
                Request("/v2/rerank", {**library.RERANK, "top_n": 1}),
                Request("/rerank", {"query": "Rude staff.", "texts": library.RERANK["documents"]}),
                Request("/v1/applicability", _SCORED),
                Request(
                    "/v1/cluster",
                    {"texts": inputs.SENTENCES[:24], "condition": "the activity", "k": 3},
                ),
                Request(
                    "/v1/explain",
                    {"sentence1": "A man runs.", "sentence2": "A dog runs.", "condition": "animal"},
                ),
                Request(
                    "/v1/search",
                    {"query": "Five dogs run.", "conditions": ["number of people"], "top": 2},
                ),
                Request("/v1/search", {"query": "a", "where": "nope >"}, reduce=library.error_kind),
            ),
        ),
        files=TEXTS,
        skip=".",
    ),
    case(
        "serve/limits and keys",
        Step(
            (*"serve --api-key-file keys.txt --max-rows 2 --max-characters 20".split(),),
            requests=(
                Request("/health"),
                Request("/v1/score", _SCORED, reduce=library.error_kind),
                Request(
                    "/v1/score",
                    {"pairs": [["a", "b"]] * 3},
                    headers={"Authorization": "Bearer secret-of-the-test-01"},
                    reduce=library.error_kind,
                ),
                Request(
                    "/v1/score",
                    {"pairs": [["a" * 30, "b"]]},
                    headers={"Authorization": "Bearer secret-of-the-test-01"},
                    reduce=library.error_kind,
                ),
                Request(
                    "/v1/score",
                    {"pairs": [["a", "b"]]},
                    headers={"Authorization": "Bearer secret-of-the-test-01"},
                ),
            ),
        ),
        files={"keys.txt": "secret-of-the-test-01\n"},
    ),
    refused("serve/open address without a key", "serve --host 0.0.0.0 --port 0"),
    refused("serve/port", "serve --port 99999999"),
]

CONTEXTS = [
    case(
        "contexts/until index",
        "contexts run r.yaml --output run --until index",
        "contexts run r.yaml --output run --until index",
        files={"c.txt": inputs.CONTEXTS, "r.yaml": library.CONTEXTS_RECIPE},
        skip=r"\.lock$",
        committed=False,
    ),
    refused(
        "contexts/unknown key",
        "contexts run r.yaml --output run --set selection.sise=3",
        files={"c.txt": inputs.CONTEXTS, "r.yaml": library.CONTEXTS_RECIPE},
    ),
    refused(
        "contexts/missing input",
        "contexts run r.yaml --output run",
        files={"r.yaml": library.CONTEXTS_RECIPE},
    ),
    refused("contexts/weigh nothing", "contexts weigh nowhere"),
    refused(
        "contexts/workers without ray",
        "contexts run r.yaml --output run --workers 2",
        files={"c.txt": inputs.CONTEXTS, "r.yaml": library.CONTEXTS_RECIPE},
    ),
]

_RECIPES: dict[str, Content] = {"r.yaml": library.recipe(), "dev.csv": inputs.DEV}
REFUSED_TRAINING = [
    refused("train/missing recipe", "train nowhere.yaml --output run"),
    *(
        refused(
            f"train/{name}",
            f"train r.yaml --output run {options}",
            files={**_RECIPES, "train.csv": inputs.TRAIN},
        )
        for name, options in {
            "unknown key": "--set epoch=3",
            "unknown objective": "--set objective.nope=1",
            "a wrong type": "--set epochs=many",
            "a value out of range": "--set learning_rate=-1",
            "no such file": "--set train=nope.csv",
            "a set without a value": "--set epochs",
            "resume of nothing": "--resume",
        }.items()
    ),
    case(
        "sweep/dry run",
        "sweep s.yaml --output sw --dry-run",
        "sweep tpe.yaml --output sw --dry-run",
        files={**_RECIPES, "s.yaml": library.SWEEP, "tpe.yaml": library.SWEEP_TPE},
    ),
    refused(
        "sweep/unknown sampler",
        "sweep s.yaml --output sw --dry-run",
        files={**_RECIPES, "s.yaml": library.SWEEP + "sampler: nope\n"},
    ),
    refused("adapt/too few rows", "adapt p.csv --output m", files=P),
    refused("adapt/share above 1", "adapt p.csv --output m --dev-share 2", files=P),
    refused("average/one run", "average run --output o"),
    refused("export/nothing", "export nowhere --output o"),
    *(
        case(
            f"sweep/{name} of the repository",
            Step(
                ("sweep", f"recipes/sweeps/{name}.yaml", "--output", "nowhere", "--dry-run"),
                folder="../repo",
            ),
        )
        for name in ("csts-table7", "minilm-ccl")
    ),
]

SCORES = [
    Case(f"api/{name}", python=function)
    for name, function in {
        "public names": library.public_names,
        "scores of pairs": library.scores_of_pairs,
        "scores of messages": library.scores_of_messages,
        "scores of written pairs": library.scores_of_written,
    }.items()
]

_SLOW: dict[str, Any] = {"group": "slow", "committed": False}
_MODELS = ("models",)
_TRAINED = ("models", "train/bi")
_BI = "../train-bi/run"
_TRAINING_FILES: dict[str, Content] = {
    "r.yaml": library.recipe(),
    "train.csv": inputs.table(inputs.labelled_rows(24)),
    "dev.csv": inputs.DEV,
}


def trained(name: str, options: str = "", *more: str, **changes: Any) -> Case:
    """Make a case of a training run whose model scores a file."""
    return case(
        f"train/{name}",
        f"train r.yaml --output run {options}",
        "score --model run --file dev.csv --scale raw --output o.csv",
        *more,
        files={**_TRAINING_FILES, **changes.pop("files", {})},
        after=_MODELS,
        skip=r"checkpoint|\.lock$|runs/|events|optimizer|\.pt$|\.bin$",
        **_SLOW,
        **changes,
    )


OBJECTIVES = (
    "mse quad correlation cosent ranknet listnet pair-order ranking fdl rdl acl w-acl bcl c-mse"
).split()
_MORE_TEXT = "--set inputs=[../repo/examples/contexts.txt] --set coherence.held_out=0.4"
SLOW = [
    Case("models", files={"backbone": library.write_backbone}, skip=".", **_SLOW),
    trained(
        "bi",
        "",
        "train r.yaml --output run --resume",
        "evaluate --data dev.csv --model run --resamples 10 --json e.json",
        "encode --model run --file dev.csv --column sentence1 --output o.npy",
        "train r.yaml --output run",
    ),
    trained("bi seed 1", "--set seed=1"),
    trained("tri hadamard", "--set encoder=tri-encoder --set fusion=hadamard"),
    trained("tri concat", "--set encoder=tri-encoder --set fusion=concat"),
    trained("cross", "--set encoder=cross-encoder --set order=sentence-first --set pooling=cls"),
    trained(
        "cross classification",
        "--set encoder=cross-encoder --set 'objective={classification: 1}'",
    ),
    *(trained(f"objective {name}", f"--set 'objective={{{name}: 1}}'") for name in OBJECTIVES),
    trained("ccl", "--set 'objective={w-acl: 1, bcl: 1, mse: 1, c-mse: 1}' --set ties=kept"),
    trained(
        "options",
        "--set gradient_accumulation=2 --set warmup=0.2 --set weight_decay=0.1 "
        "--set 'freeze=[embeddings]' --set middle_tolerance=0.25 "
        "--set order=sentence-first --set pooling=cls",
    ),
    trained(
        "sources",
        "",
        files={
            "r.yaml": library.recipe(
                "sources:\n"
                "  graded: {file: graded.csv, share: 2, weight: 0.5}\n"
                "  written: {file: w.txt, share: 1, objective: {mse: 1, ranking: 1}}\n"
                "  plain: {file: plain.csv, share: 1}\n"
                "  teacher: {file: inputs.csv, vectors: inputs.npy, share: 1}\n"
                "train_share: 2\n"
                "steps: 6\n"
            ),
            "graded.csv": inputs.GRADED,
            "w.txt": library.written_slice(30),
            "plain.csv": library.PLAIN_SCORED,
            "inputs.csv": inputs.SENTENCE_FILE,
            "inputs.npy": library.write_teacher_vectors,
        },
    ),
    trained(
        "nli",
        "--set 'objective={softmax: 1}' --set train=nli.jsonl --set dev=sts.csv",
        files={"nli.jsonl": library.NLI, "sts.csv": library.PLAIN_SCORED},
    ),
    case(
        "export/int8 and float32",
        f"export {_BI} --output int8",
        f"export {_BI} --output samples --samples dev.csv --name mine",
        f"export {_BI} --output float --float32",
        "score --model int8 --file dev.csv --scale raw --output int8.csv",
        "score --model float --file dev.csv --scale raw --output float.csv",
        f"export {_BI} --output int8",
        files=DEV,
        after=_TRAINED,
        skip=r"\.lock$",
        **_SLOW,
    ),
    case(
        "average/runs",
        f"average {_BI} ../train-bi-seed-1/run --output mean",
        f"average {_BI} ../train-bi-seed-1/run --output half --name n --float16 "
        "--pretrained ../models/backbone --pretrained-share 0.2",
        "score --model mean --file dev.csv --scale raw --output o.csv",
        files=_TRAINING_FILES,
        after=(*_TRAINED, "train/bi seed 1"),
        skip=r"\.lock$",
        **_SLOW,
    ),
    case(
        "models of papers/evaluate",
        "evaluate --data dev.csv --model mean:../models/backbone --resamples 10 --json mean.json",
        "evaluate --data dev.csv --model cls:../models/backbone --resamples 10 --json cls.json",
        "evaluate --data dev.csv --model bertscore:../models/backbone@1 --resamples 10 "
        "--json bertscore.json",
        "evaluate --data dev.csv --model glove:glove.txt --resamples 10 --json glove.json",
        f"evaluate --data dev.csv --model {_BI} --against mean:../models/backbone --resamples 10",
        f"evaluate --data dev.csv --model bi={_BI} --model mean=mean:../models/backbone "
        "--resamples 10 --json several.json",
        files={**DEV, "glove.txt": library.GLOVE},
        after=_TRAINED,
        skip=r"kept|\.lock$",
        **_SLOW,
    ),
    case(
        "commands of a trained model/all",
        f"predict --data dev.csv --model {_BI} --output o.json",
        f"explain 'A man runs.' 'A dog runs.' 'the animal' --model {_BI} --samples 16",
        f"applicability fit --data a.csv --model {_BI} --output h.json",
        f"build teach dev.csv --model {_BI} --output taught.csv",
        f"cluster t.csv --condition a --k 3 --model {_BI} --output c.csv",
        f"index build t.csv --output i.index --model {_BI}",
        f"search i.index 'A dog.' --condition 'the animal' --top 3 --model {_BI}",
        files={**DEV, **TEXTS, "a.csv": inputs.DEV_ABSENT},
        after=_TRAINED,
        skip=r"i\.index|\.lock$",
        **_SLOW,
    ),
    case(
        "sweep/grid",
        "sweep s.yaml --output sw",
        "sweep s.yaml --output sw",
        files={**_TRAINING_FILES, "s.yaml": library.SWEEP, "test.csv": inputs.GRADED},
        after=_MODELS,
        skip=r"trials/.*/|seeds/.*/|\.db|\.lock$|journal|study",
        **_SLOW,
    ),
    case(
        "sweep/tpe",
        "sweep s.yaml --output sw",
        files={**_TRAINING_FILES, "s.yaml": library.SWEEP_TPE},
        after=_MODELS,
        skip=r"trials/.*/|seeds/.*/|\.db|\.lock$|journal|study",
        **_SLOW,
    ),
    case(
        "adapt/pairs",
        f"adapt g.csv --model {_BI} --output m --epochs 2 --force --seed 1",
        "score --model m --file dev.csv --scale raw --output o.csv",
        f"adapt k.csv --model {_BI} --output m2 --epochs 1 --rows 60 --criteria topic --force",
        files={**DEV, "g.csv": inputs.GRADED, "k.csv": inputs.TICKETS},
        after=_TRAINED,
        skip=r"\.lock$",
        tolerance=0.02,
        **_SLOW,
    ),
    case(
        "contexts/run",
        f"contexts run r.yaml --output run --until origin {_MORE_TEXT}",
        "contexts weigh run --sentences 64",
        "evaluate --data sts.csv --model run --resamples 10 --json e.json",
        f"contexts run r.yaml --output run {_MORE_TEXT}",
        "evaluate --data sts.csv --model run/surrogate --resamples 10 --json s.json",
        files={
            **DEV,
            "c.txt": inputs.CONTEXTS,
            "r.yaml": library.CONTEXTS_RECIPE,
            "sts.csv": library.PLAIN_SCORED,
        },
        skip=r"\.lock$|checkpoint|shard|\.pt$|\.bin$",
        **_SLOW,
    ),
]

CASES: tuple[Case, ...] = (
    *HELP,
    *GENERAL,
    *SCORE,
    *ENCODE,
    *EXPLAIN,
    *EVALUATE,
    *REPORTS,
    *SEARCH,
    *BUILD,
    *PROMPT,
    *SERVE,
    *CONTEXTS,
    *REFUSED_TRAINING,
    *SCORES,
    *SLOW,
)
