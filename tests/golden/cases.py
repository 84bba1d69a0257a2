"""Tiny inputs for the commands: their happy path and their main options.

A line is a command without ``condsim``. Wrong input is tested in tests/faults and tests/cli.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.golden import inputs

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
Content = str | bytes | Callable[[Path], object]


@dataclass(frozen=True)
class Case:
    """Command lines in a folder of their own.

    Attributes:
        name: ``command/subject``.
        lines: Command lines, one after the other.
        files: Files that are there first, by name.
        unread: Why files are not compared, by a regular expression over their names.
    """

    name: str
    lines: tuple[str, ...]
    files: Mapping[str, Content] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)


def case(
    name: str,
    *lines: str,
    files: Mapping[str, Content] | None = None,
    unread: Mapping[str, str] | None = None,
) -> Case:
    """Make a case of command lines."""
    return Case(name, lines, files or {}, unread or {})


P = {"p.csv": inputs.PAIRS}
DEV = {"dev.csv": inputs.DEV}
TEXTS = {"t.csv": inputs.TEXTS}
_CRITERIA = """criteria:
  topic:
    name: the topic of the ticket
    wordings: [topic, what the customer writes about]
  stars:
    order: ["0", "1", "2", "3", "4"]
"""


def _write_parquet(path: Path) -> None:
    """Write the pairs with a column of a type that text files do not have."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist(inputs.NOTED)
    pq.write_table(table.append_column("place", pa.array(range(len(table)), pa.int16())), path)


SCORE = [
    case(
        "score/one pair",
        *(
            f"score 'A man throws a ball.' 'A girl kicks a ball.' 'the sport' --scale {scale}"
            for scale in ("unit", "likert", "raw")
        ),
    ),
    case(
        "score/formats",
        *(f"score --file p.csv --output o{ending}" for ending in (".tsv", ".jsonl")),
        "score --file p.tsv",
        "score --file p.jsonl --output o1.csv --scale likert",
        "score --file p.csv.gz --output o2.csv --scale raw",
        "score --file p.csv --table",
        "score --file n.csv --output n2.csv",
        files={
            "p.csv": inputs.PAIRS,
            "p.tsv": inputs.PAIRS_TSV,
            "p.jsonl": inputs.PAIRS_JSONL,
            "p.csv.gz": gzip.compress(inputs.PAIRS.encode(), mtime=0),
            "n.csv": inputs.PAIRS.replace("note", "score"),
        },
    ),
    case(
        "score/parquet",
        "score --file p.parquet --output o.parquet",
        "score --file p.parquet --output o.csv",
        files={"p.parquet": _write_parquet},
    ),
    case(
        "score/examples",
        "score --file pairs.csv --output o.csv",
        files={"pairs.csv": (EXAMPLES / "pairs.csv").read_bytes()},
    ),
    case(
        "score/long and unusual texts",
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
    case(
        "encode/files",
        "encode --file s.csv --column sentence --output o.npz",
        "encode --file s.csv --column sentence --output half.npy --float16",
        "encode --file s.csv --column sentence --output plain.npy --plain",
        "encode --file p.csv --column sentence2 --output o.npy",
        files={**P, "s.csv": inputs.SENTENCE_FILE},
    ),
    case(
        "explain/one pair",
        "explain 'Three people watch tennis.' 'A trio plays tennis.' 'number of people'",
        "explain 'Three people watch tennis.' 'A trio plays tennis.' 'the sport' --top 2 "
        "--scale likert --samples 16 --seed 3",
    ),
    case(
        "predict/scales",
        "predict --data p.csv --output o.json",
        "predict --data p.csv --output o2.json --scale likert",
        files=P,
    ),
]

EVALUATE = [
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
        "evaluate/several",
        "evaluate --data dev.csv --data train.csv --model words=word-overlap --model default "
        "--resamples 20 --csv r.csv",
        files={**DEV, "train.csv": inputs.TRAIN},
    ),
    case(
        "evaluate/suite criteria",
        "evaluate --suite criteria --data d --model default --baseline word-overlap "
        "--baseline condition-only --resamples 10 --json r.json",
        files={"d/dev_rows.csv": inputs.SETS},
    ),
    case(
        "threshold/options",
        "threshold g.csv",
        "threshold g.csv --precision 0.8 --positive 5",
        files={"g.csv": inputs.GRADED_MANY},
    ),
    case(
        "robustness/file",
        "robustness r.csv --resamples 20 --top 3 --json r.json",
        files={"r.csv": inputs.REWORDINGS},
    ),
    case(
        "applicability/fit and evaluate",
        "applicability fit --data a.csv --output h.json --strength 1 --extra e.csv --sample 20",
        "applicability evaluate --data a.csv --resamples 20 --json r.json",
        files={"a.csv": inputs.DEV_ABSENT, "e.csv": inputs.EXTRA},
        unread={r"^h\.json$": "weights fitted to 64 rows multiply differences of rounding"},
    ),
    case(
        "data/check",
        "data check dev.csv",
        "data check dev.csv --top 2 --json",
        "data check a.csv",
        files={**DEV, "a.csv": inputs.DEV_ABSENT},
    ),
]

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
        unread={r"i\.index/": "Lance names its files at random"},
    ),
    case(
        "cluster/two conditions by size",
        "cluster t.csv --condition 'number of people' --condition 'the activity' --min-size 4 "
        "--output o.jsonl --json o.json --seed 2",
        files=TEXTS,
    ),
    case(
        "dedupe/groups",
        "dedupe t.csv --condition 'number of people' --at-least 0.9 --output o.csv --groups g.csv",
        "dedupe t.csv --condition 'the activity' --condition 'number of people' "
        "--at-least 0.8 --keep newest:year --output o.jsonl",
        "dedupe t.csv --condition 'the activity' --at-least 0.8 --keep longest --output o.tsv",
        files=TEXTS,
    ),
]

BUILD = [
    case(
        "build/candidates captions",
        "build candidates c.csv --item-column image_id --column caption --output p.parquet "
        "--text-encoder default --preset coco --k 3 --max-iou 0.5 --min-length 20 --sample 20 "
        "--seed 1",
        "build filter p.parquet --max-iou 0.3 --no-text-cosine --output f.csv",
        files={"c.csv": inputs.CAPTIONS},
        unread={
            r"^\.|cache": "embeddings and neighbors that the command keeps for itself",
            r"^f\.manifest": "it has a digest of cosines to the last digit",
        },
    ),
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
        unread={r"\.html$": "packages/condsim-annotation/tests checks the forms"},
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
        unread={r"README": "packages/condsim-annotation/tests checks the card"},
    ),
    case(
        "build/leakage",
        "build leakage train.csv dev.csv --resamples 20 --json r.json",
        files={"train.csv": inputs.table(inputs.labeled_rows(40)), "dev.csv": inputs.TRAIN},
    ),
    case(
        "build/teach",
        "build teach dev.csv --model default --given 0.3 --output o.csv",
        "build teach pairs.csv --model default --output plain.csv",
        files={**DEV, "pairs.csv": inputs.PLAIN_PAIRS},
    ),
    case(
        "build/criteria",
        "build criteria k.csv --output o2.csv --criteria topic --criteria stars --bins 2 --rows 30 "
        "--form pairs --seed 3 --json r.json --exclude dev.csv",
        "build criteria k.csv --output o3.parquet --bins 3 --balance none --group-size 4 "
        "--hard 0.5 --own-name 1 --rows 30",
        "build criteria k.csv --output o4.csv --settings s.yaml --rows 40",
        files={**DEV, "k.csv": inputs.TICKETS, "s.yaml": _CRITERIA},
    ),
    case(
        "build/counter-edits",
        "build counter-edits r.csv --output o.csv --json r.json",
        "build counter-edits r.csv --output o2.csv --rows 4 --seed 3",
        files={"r.csv": inputs.REVIEWS},
    ),
]

CASES = (*SCORE, *EVALUATE, *SEARCH, *BUILD)
