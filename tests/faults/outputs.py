"""Files that are written: never an input, never half, never in place of something else."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

from tests.faults.harness import Case, paired
from tests.faults.reading import HEAD, PAIRS

_CAPTIONS = "image_id\tcaption\n" + "".join(
    f"{number // 2}\tA {who} {act} {place}\n"
    for number, (who, act, place) in enumerate(
        product(
            ("man", "woman", "dog", "girl"),
            ("runs", "eats", "sits"),
            ("in a park", "on a beach"),
        )
    )
)
_TRAIN = HEAD + "".join(
    f"A man {number} runs,A woman {number} eats,the sport,{1 + number % 5},n{number}\n"
    for number in range(12)
)
_REWORDINGS = "sentence1,sentence2,condition_group,condition\n" + "".join(
    f"A man {number},A dog,number,{wording}\n"
    for number in range(3)
    for wording in ("number of people", "How many people?")
)
_KINDS = "text,topic,tone\n" + "".join(
    f"Text number {number} is here,{'ab'[number % 2]},{'xyz'[number % 3]}\n" for number in range(12)
)
_FILES = {"p.csv": PAIRS, "r.csv": _REWORDINGS, "t.csv": _TRAIN, "c.tsv": _CAPTIONS}
_FILES["k.csv"] = _KINDS
_PROMPT = (
    "condsim prompt --model x --base-url http://127.0.0.1:9/v1 --retries 0 --answers a.sqlite "
    "--data p.csv"
)
_WEAK = "condsim build weak c.tsv --text-encoder words --rows 4"
_DEDUPE = "condsim dedupe p.csv --column sentence1 --condition the-sport --at-least 0.9"
_CLUSTER = "condsim cluster p.csv --column sentence1 --condition sport --k 2"
# Every option that writes, with the command that has it.
WRITERS = {
    "score": "condsim score --file p.csv --output {out}",
    "predict": "condsim predict --data p.csv --output {out}",
    "encode": "condsim encode --file p.csv --column sentence1 --output {out}",
    "explain file": "condsim explain --file p.csv --output {out}",
    "evaluate json": "condsim evaluate --data p.csv --train t.csv --resamples 10 --json {out}",
    "evaluate plot": "condsim evaluate --data p.csv --resamples 10 --over-estimation --plot {out}",
    "robustness json": "condsim robustness r.csv --resamples 10 --json {out}",
    "applicability json": "condsim applicability evaluate --data p.csv --resamples 10 --json {out}",
    "applicability fit": "condsim applicability fit --data p.csv --output {out}",
    "leakage json": "condsim build leakage p.csv t.csv --resamples 10 --json {out}",
    "weak": _WEAK + " --exclude p.csv --output {out}",
    "weak json": _WEAK + " --output w.csv --json {out}",
    "weak absent": _WEAK + " --output w.csv --absent 2 --absent-output {out}",
    "criteria": "condsim build criteria k.csv --output {out}",
    "dedupe": _DEDUPE + " --output {out}",
    "dedupe groups": _DEDUPE + " --output o.csv --groups {out}",
    "cluster": _CLUSTER + " --output {out}",
    "cluster json": _CLUSTER + " --output o.csv --json {out}",
    "cluster plot": _CLUSTER + " --output o.csv --plot {out}",
    "prompt json": _PROMPT + " --json {out}",
    "prompt predictions": _PROMPT + " --predictions {out}",
    "prompt save": _PROMPT + " --train t.csv --shots 1 --save {out} --dry-run",
}
_OTHER_ENDINGS = {
    "encode": "npy",
    "explain file": "jsonl",
    "evaluate plot": "png",
    "cluster plot": "png",
    "prompt save": "yaml",
    "predict": "json",
}


def _files(command: str) -> dict[str, str]:
    return {name: text for name, text in _FILES.items() if name in command}


def same() -> Iterator[Case]:
    """No option writes over what another reads: by its name, a link or another path."""
    for name, command in WRITERS.items():
        for file in (files := _files(command)):
            yield Case(
                f"same/{name} over {file}",
                command.format(out=file),
                files=files,
                writes=("a.sqlite",),
            )
    for (name, command), (way, link) in zip(
        WRITERS.items(), [("symbolic", "ln -s"), ("hard", "ln")] * len(WRITERS), strict=False
    ):
        file = next(iter(files := _files(command)))
        out = f"link.{file.rsplit('.', 1)[1]}"
        yield Case(
            f"same/{name} over a {way} link",
            f"{link} {file} {out}; {command.format(out=out)}",
            files=files,
            writes=("a.sqlite", out),
        )
    for name, command in {
        "weak, absent": _WEAK + " --output o.csv --absent 2 --absent-output o.csv",
        "weak, json": _WEAK + " --output o.csv --json o.csv",
        "dedupe": _DEDUPE + " --output o.csv --groups o.csv",
        "cluster": _CLUSTER + " --output o.csv --json o.csv",
    }.items():
        yield Case(f"same/two outputs of {name}", command, files=_files(command))
    yield Case(
        "same/split over its own input",
        "condsim build split q.csv --output ds && cp ds/train.csv before && "
        "! condsim build split ds/train.csv --output ds --overwrite && cmp before ds/train.csv",
        (0,),
        says="is an input",
        files={"q.csv": HEAD + "".join(f"a {n} c,b {n} d,c,{n % 5 + 1},n\n" for n in range(60))},
        writes=("ds", "before"),
    )


_PLACES = {
    "to a folder": ("mkdir {out}; {command}", "{out}", ""),
    "into no folder": ("{command}", "none/{out}", "none"),
    "with a name too long": ("{command}", "a" * 300 + "{out}", "name|long"),
}
# What is made first and looked at in the end, the statuses and what the message has.
_UNUSUAL_PLACES = {
    "to a FIFO": (
        "mkfifo {out}; (timeout 30 cat {out} > got) & timeout 30 {command}; s=$?; "
        "test -p {out} || exit 9; exit $s",
        (0, 2),
        "",
    ),
    "to a full device": ("ln -s /dev/full {out}; {command}", (2,), "space|full|regular"),
    "to a null device": (
        "ln -s /dev/null {out}; {command}; s=$?; test -c /dev/null || exit 9; exit $s",
        (0, 2),
        "",
    ),
    "through a link": (
        "mkdir else; echo former > else/{out}; ln -s else/{out} {out}; {command} && "
        "test -L {out} && ! grep -q former else/{out}",
        (0,),
        "",
    ),
    "keeps the mode": (
        "touch {out}; chmod 640 {out}; {command} && test $(stat -c %a {out}) = 640",
        (0,),
        "",
    ),
}


def places() -> Iterator[Case]:
    """Outputs that are not a plain file in a plain folder."""
    writers, kinds = WRITERS.items(), _PLACES.items()
    for (name, command), (kind, (line, path, says)) in paired(writers, kinds, commands_per_fault=1):
        ending = _OTHER_ENDINGS.get(name, "json" if "json" in name else "csv")
        out = path.format(out=f"out.{ending}")
        yield Case(
            f"out/{name} {kind}",
            line.format(out=out, command=command.format(out=out)),
            says=says,
            files=_files(command),
            writes=("a.sqlite", "w.csv", "o.csv", *((out,) if kind == "to a folder" else ())),
            check=_has_empty_folders,
        )
    outputs = {"score": "o.csv", "predict": "o.json", "evaluate json": "o.json"}
    for (kind, (line, status, says)), (name, out) in paired(
        _UNUSUAL_PLACES.items(), outputs.items()
    ):
        command = WRITERS[name].format(out=out)
        yield Case(
            f"out/{name} {kind}",
            line.format(out=out, command=command),
            status=status,
            says=says,
            files=_files(command),
            writes=(out, "got", "else"),
        )


def _has_empty_folders(folder: Path) -> None:
    for path in folder.iterdir():
        assert path.suffix == ".cache" or not path.is_dir() or not list(path.iterdir()), path.name


def streams() -> Iterator[Case]:
    """Standard streams that are closed, full or of another encoding."""
    commands = {
        "one pair": "condsim score a b c",
        "help": "condsim score --help",
        "data check": "condsim data check p.csv",
        "evaluate": "condsim evaluate --data p.csv --resamples 10",
        "info": "condsim info",
        "table": "condsim score --file p.csv --table",
        "explain": "condsim explain a b c",
    }
    ways = {
        "a full device": ("{} > /dev/full", (2,), "space"),
        "a closed stream": ("{} >&-", (0, 2), ""),
        "a reader that leaves": ("{} | true; exit ${{PIPESTATUS[0]}}", (0, 1, 2, 141), ""),
    }
    for (way, (line, status, says)), (name, command) in paired(
        ways.items(), commands.items(), commands_per_fault=3
    ):
        yield Case(
            f"streams/{name} to {way}",
            line.format(command),
            status,
            says=says,
            files=_files(command),
        )
    yield Case("streams/errors to a full device", "condsim score --file nope.csv 2>/dev/full")
    yield Case(
        "streams/rows to a closed stream",
        "condsim score --file p.csv >&-",
        says="output is closed",
        files={"p.csv": PAIRS},
    )
    foreign = {"u.csv": HEAD + "Ein Mädchen läuft \U0001f600,女の子,ort,3,ñ\n" * 3}
    lines = (
        "condsim score --file u.csv",
        "condsim score --file u.csv --table",
        "condsim explain läuft 女 \U0001f600",
        "condsim data check u.csv",
    )
    for encoding, line in paired(("ascii:strict", "cp1252"), lines):
        yield Case(
            f"locale/{encoding}, {line.split(' ', 1)[1]}",
            line,
            status=(0, 2),
            files=foreign if "u.csv" in line else {},
            env={"LC_ALL": "C", "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
        )


def environment() -> Iterator[Case]:
    """Widths, folders and homes that are missing or impossible."""
    for columns in ("0", "99999999", "x"):
        yield Case(
            f"environment/COLUMNS={columns}",
            "timeout 40 condsim score --file p.csv --table && timeout 40 condsim data check p.csv "
            "&& timeout 40 condsim score --help > /dev/null",
            status=(0,),
            files={"p.csv": PAIRS},
            env={"COLUMNS": columns},
        )
    homes = {"HOME": "/nonexistent", "XDG_CACHE_HOME": "/nonexistent/x"}
    yield Case("environment/no home", "condsim score a b c", status=(0,), env=homes)
    yield Case("environment/home of nobody", "condsim score --model '~nouser/x' a b c", says="x")
    yield Case(
        "environment/folder removed",
        "mkdir x; cd x; rmdir ../x; condsim evaluate --data ../p.csv",
        says="p.csv|folder",
    )
    yield Case(
        "environment/temporary folder missing",
        "TMPDIR=/nonexistent condsim score --file - < p.csv",
        status=(0, 2),
        files={"p.csv": PAIRS},
    )


def terminal() -> Iterator[Case]:
    """Control characters of data, file names and options never reach a terminal."""
    escape = r"\x1b\[31m|\x1b\]"
    files = {
        "e.csv": HEAD + "A \x1b[31mman,b \x1b]0;x\x07,c,4,n\n" * 4,
        "w.csv": _REWORDINGS.replace("How many people", "How \x1b[31mmany"),
    }
    for name, command in {
        "score table": "condsim score --file e.csv --table",
        "data check": "condsim data check e.csv",
        "evaluate": "condsim evaluate --data e.csv --resamples 10",
        "robustness": "condsim robustness w.csv --resamples 10",
    }.items():
        yield Case(f"terminal/{name}", command, (0, 2), never=escape, files=files)
    for command in ("score --file", "train --output o", "evaluate --resamples 10 --data"):
        yield Case(
            f"terminal/file name, {command}", f"condsim {command} $'no\\e[31mpe.csv'", never=escape
        )


def arguments() -> Iterator[Case]:
    """Arguments that reach a check of their own."""
    pairs, captions = {"p.csv": PAIRS}, {"c.tsv": _CAPTIONS}
    yield Case("arguments/invalid UTF-8", "condsim score $'\\xff\\xfe' b c", says="UTF-8|Unicode")
    yield Case("arguments/file of invalid UTF-8", "condsim data check $'\\xff.csv'")
    yield Case("arguments/unknown command", "condsim nope", lines=9)
    yield Case(
        "arguments/a billion resamples",
        "timeout 40 condsim evaluate --data p.csv --resamples 1000000000",
        says="resamples",
        files=pairs,
        lines=9,
    )
    yield Case("arguments/NaN", "condsim search d q --condition c --weight nan", lines=9)
    yield Case(
        "arguments/server that cannot be reached",
        "condsim build push conditions --data c.parquet --server http://127.0.0.1:9",
    )
    yield Case(
        "arguments/ratios past the range of floats",
        "condsim build split p.csv --output ds --ratios 1e308:1e308:1e308",
        files=pairs,
    )
    yield Case(
        "arguments/functions of nothing",
        "condsim build weak c.tsv --output o.csv --functions empty.py",
        says="empty.py",
        files={**captions, "empty.py": ""},
    )
    yield Case(
        "arguments/fit on one label",
        "condsim applicability fit --data neg.csv --output h.json",
        says="appl",
        files={"neg.csv": HEAD + "".join(f"a {n},b {n},c,-1,n\n" for n in range(30))},
    )


CASES = [*same(), *places(), *streams(), *environment(), *terminal(), *arguments()]
