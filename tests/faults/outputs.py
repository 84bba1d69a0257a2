"""Files that are written: never an input, never half, never in place of something else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.faults.harness import Case
from tests.faults.reading import HEAD, PAIRS, TSV

CAPTIONS = "image_id\tcaption\n" + "".join(
    f"{number // 2}\tA {who} {what} {where}\n"
    for number, (who, what, where) in enumerate(
        (who, what, where)
        for who in ("man", "woman", "dog", "girl")
        for what in ("runs", "eats", "sits")
        for where in ("in a park", "on a beach")
    )
)
TRAIN = HEAD + "".join(
    f"A man {number} runs,A woman {number} eats,the sport,{1 + number % 5},n{number}\n"
    for number in range(12)
)
RATINGS = "pair_id,sentence1,sentence2,condition,kind,rating,annotator,origin\n"
REWORDINGS = "sentence1,sentence2,condition_group,condition\n" + "".join(
    f"A man {number},A dog,number,{wording}\n"
    for number in range(3)
    for wording in ("number of people", "How many people?")
)
_PROMPT = (
    "condsim prompt --model x --base-url http://127.0.0.1:9/v1 --retries 0 --answers a.sqlite "
)

# option that writes, command, files it reads
WRITERS = {
    "score": "condsim score --file p.csv --output {out}",
    "predict": "condsim predict --data p.csv --output {out}",
    "encode": "condsim encode --file p.csv --column sentence1 --output {out}",
    "explain file": "condsim explain --file p.csv --output {out}",
    "evaluate json": "condsim evaluate --data p.csv --resamples 10 --json {out}",
    "evaluate plot": "condsim evaluate --data p.csv --resamples 10 --over-estimation --plot {out}",
    "robustness json": "condsim robustness r.csv --resamples 10 --json {out}",
    "applicability json": "condsim applicability evaluate --data p.csv --resamples 10 --json {out}",
    "applicability fit": "condsim applicability fit --data p.csv --output {out}",
    "leakage json": "condsim build leakage p.csv t.csv --resamples 10 --json {out}",
    "weak": "condsim build weak c.tsv --output {out} --text-encoder words --rows 4",
    "weak json": "condsim build weak c.tsv --output w.csv --json {out} --text-encoder words "
    "--rows 4",
    "weak absent": "condsim build weak c.tsv --output w.csv --absent 2 --absent-output {out} "
    "--text-encoder words --rows 4",
    "criteria": "condsim build criteria k.csv --output {out}",
    "dedupe": "condsim dedupe p.csv --column sentence1 --condition the-sport --at-least 0.9 "
    "--output {out}",
    "dedupe groups": "condsim dedupe p.csv --column sentence1 --condition the-sport "
    "--at-least 0.9 --output o.csv --groups {out}",
    "cluster": "condsim cluster p.csv --column sentence1 --condition sport --k 2 --output {out}",
    "cluster json": "condsim cluster p.csv --column sentence1 --condition sport --k 2 "
    "--output o.csv --json {out}",
    "cluster plot": "condsim cluster p.csv --column sentence1 --condition sport --k 2 "
    "--output o.csv --plot {out}",
    "prompt json": _PROMPT + "--data p.csv --json {out}",
    "prompt predictions": _PROMPT + "--data p.csv --predictions {out}",
    "prompt save": _PROMPT + "--data p.csv --save {out} --dry-run",
}
KINDS = "text,topic,tone\n" + "".join(
    f"Text number {number} is here,{'ab'[number % 2]},{'xyz'[number % 3]}\n" for number in range(12)
)
FILES = {"p.csv": PAIRS, "r.csv": REWORDINGS, "t.csv": TRAIN, "c.tsv": CAPTIONS, "k.csv": KINDS}


def _files(command: str) -> dict[str, str]:
    return {name: text for name, text in FILES.items() if name in command}


def same() -> Iterator[Case]:
    """No option writes over what another reads: by its name, a link or another path."""
    for name, command in WRITERS.items():
        files = _files(command)
        for number, file in enumerate(files):
            yield Case(
                f"same/{name} over {file}",
                command.format(out=file),
                files=files,
                writes=("a.sqlite",),
            )
            if number == 0:
                ending = file.rsplit(".", 1)[1]
                for way, made in {"symbolic": "ln -s", "hard": "ln"}.items():
                    link = f"link.{ending}"
                    yield Case(
                        f"same/{name} over a {way} link",
                        f"{made} {file} {link}; {command.format(out=link)}",
                        files=files,
                        writes=("a.sqlite", link),
                    )
    yield Case(
        "same/evaluate json over train",
        "condsim evaluate --data p.csv --train t.csv --resamples 10 --json t.csv",
        files={"p.csv": PAIRS, "t.csv": TRAIN},
    )
    yield Case(
        "same/prompt save over train",
        _PROMPT + "--data p.csv --train t.csv --shots 1 --save t.csv --dry-run",
        files={"p.csv": PAIRS, "t.csv": TRAIN},
        writes=("a.sqlite",),
    )
    yield Case(
        "same/weak exclude",
        "condsim build weak c.tsv --exclude p.csv --output p.csv --text-encoder words --rows 4",
        files={"c.tsv": CAPTIONS, "p.csv": PAIRS},
    )
    weak = "condsim build weak c.tsv --output o.csv --text-encoder words --rows 4 "
    for name, options in {
        "absent": "--absent 2 --absent-output o.csv",
        "json": "--json o.csv",
    }.items():
        yield Case(f"same/weak two outputs, {name}", weak + options, files={"c.tsv": CAPTIONS})
    yield Case(
        "same/dedupe two outputs",
        WRITERS["dedupe"].format(out="o.csv") + " --groups o.csv",
        files={"p.csv": PAIRS},
    )
    yield Case(
        "same/cluster two outputs",
        WRITERS["cluster"].format(out="o.csv") + " --json o.csv",
        files={"p.csv": PAIRS},
    )


def places() -> Iterator[Case]:
    """Outputs that are no plain file in a plain folder."""
    endings = {"encode": "npy", "explain file": "jsonl", "evaluate plot": "png"}
    endings |= {"cluster plot": "png", "prompt save": "yaml"}
    for name, command in WRITERS.items():
        ending = endings.get(name, "json" if "json" in name or name == "predict" else "csv")
        files, free = _files(command), ("a.sqlite", "w.csv", "o.csv")
        out = f"out.{ending}"
        yield Case(
            f"out/{name} to a folder",
            f"mkdir {out}; {command.format(out=out)}",
            files=files,
            writes=(*free, out),
            check=_has_empty_folders,
        )
        yield Case(
            f"out/{name} into no folder",
            command.format(out=f"none/{out}"),
            says="none",
            files=files,
            writes=free,
        )
        yield Case(
            f"out/{name} with a name too long",
            command.format(out="a" * 300 + f".{ending}"),
            says="name|long",
            files=files,
            writes=free,
        )
    for name in ("score", "predict", "evaluate json"):
        out = "o.csv" if name == "score" else "o.json"
        command = WRITERS[name].format(out=out)
        yield Case(
            f"out/{name} to a FIFO",
            f"mkfifo {out}; (timeout 30 cat {out} > got) & timeout 30 {command}; s=$?; "
            f"test -p {out} || exit 9; exit $s",
            status=(0, 2),
            files={"p.csv": PAIRS},
            writes=(out, "got"),
        )
        yield Case(
            f"out/{name} to a full device",
            f"ln -s /dev/full {out}; {command}; s=$?; test -c /dev/full || exit 9; exit $s",
            says="space|full|regular",
            files={"p.csv": PAIRS},
            writes=(out,),
        )
        yield Case(
            f"out/{name} to a null device",
            f"ln -s /dev/null {out}; {command}; s=$?; test -c /dev/null || exit 9; exit $s",
            status=(0, 2),
            files={"p.csv": PAIRS},
            writes=(out,),
        )
        yield Case(
            f"out/{name} through a link",
            f"mkdir else; echo former > else/{out}; ln -s else/{out} {out}; {command} && "
            f"test -L {out} && ! grep -q former else/{out}",
            status=(0,),
            files={"p.csv": PAIRS},
            writes=(out, "else"),
        )
        yield Case(
            f"out/{name} keeps the mode",
            f"touch {out}; chmod 640 {out}; {command} && test $(stat -c %a {out}) = 640",
            status=(0,),
            files={"p.csv": PAIRS},
            writes=(out,),
        )


def _has_empty_folders(folder: Path) -> None:
    for path in folder.iterdir():
        assert path.suffix == ".cache" or not path.is_dir() or not list(path.iterdir()), path.name


def streams() -> Iterator[Case]:
    """Standard streams that are closed, full or of another encoding."""
    for name, command in {
        "one pair": "condsim score a b c",
        "help": "condsim --help",
        "help of a command": "condsim score --help",
        "data check": "condsim data check p.csv",
        "evaluate": "condsim evaluate --data p.csv --resamples 10",
        "info": "condsim info",
        "table": "condsim score --file p.csv --table",
        "explain": "condsim explain a b c",
    }.items():
        files = {"p.csv": PAIRS} if "p.csv" in command else {}
        yield Case(
            f"streams/{name} to a full device",
            f"{command} > /dev/full",
            says="space",
            files=files,
        )
        yield Case(f"streams/{name} to a closed stream", f"{command} >&-", (0, 2), files=files)
        yield Case(
            f"streams/{name} to a reader that leaves",
            f"{command} | true; exit ${{PIPESTATUS[0]}}",
            (0, 1, 2, 141),
            files=files,
        )
    yield Case("streams/errors to a full device", "condsim score --file nope.csv 2>/dev/full", (2,))
    other = HEAD + "Ein Mädchen läuft \U0001f600,女の子,ort,3,ñ\n" * 3
    for encoding in ("ascii:strict", "cp1252", "latin-1"):
        for name, command in {
            "tsv": "condsim score --file u.csv",
            "table": "condsim score --file u.csv --table",
            "explain": "condsim explain läuft 女 \U0001f600",
            "check": "condsim data check u.csv",
            "evaluate": "condsim evaluate --data p.csv --resamples 10",
        }.items():
            yield Case(
                f"locale/{encoding} {name}",
                command,
                status=(0, 2) if name != "evaluate" else (0,),
                files={"u.csv": other} if "u.csv" in command else {"p.csv": PAIRS},
                env={"PYTHONIOENCODING": encoding},
            )
        yield Case(
            f"locale/C, {encoding}",
            "condsim score --file u.csv --table",
            status=(0, 2),
            files={"u.csv": other},
            env={"LC_ALL": "C", "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
        )
    for columns in ("0", "1", "99999999", "-5", "x"):
        yield Case(
            f"environment/COLUMNS={columns}",
            "timeout 40 condsim score --file p.csv --table && timeout 40 condsim data check p.csv "
            "&& timeout 40 condsim score --help > /dev/null",
            status=(0,),
            files={"p.csv": PAIRS},
            env={"COLUMNS": columns},
        )
    yield Case(
        "environment/no home",
        "condsim score a b c",
        status=(0,),
        env={"HOME": "/nonexistent", "XDG_CACHE_HOME": "/nonexistent/x"},
    )
    yield Case("environment/home of nobody", "condsim score --model '~nouser/x' a b c", says="x")
    yield Case(
        "environment/folder removed",
        "mkdir x; cd x; rmdir ../x; condsim evaluate --data ../p.csv",
        says="p.csv|folder",
    )
    yield Case(
        "environment/temporary folder missing",
        "TMPDIR=/nonexistent condsim score --file - < p.tsv",
        status=(0, 2),
        files={"p.tsv": TSV},
    )


def terminal() -> Iterator[Case]:
    """Control characters of data, file names and options never reach a terminal."""
    escape = r"\x1b\[31m|\x1b\]"
    evil = HEAD + "A \x1b[31mman,b \x1b]0;x\x07,c,4,n\n" * 4
    words = REWORDINGS.replace("How many people", "How \x1b[31mmany")
    for name, command in {
        "score table": "condsim score --file e.csv --table",
        "data check": "condsim data check e.csv",
        "evaluate": "condsim evaluate --data e.csv --resamples 10",
        "robustness": "condsim robustness w.csv --resamples 10",
        "explain": "condsim explain --file e.csv --output o.jsonl",
    }.items():
        yield Case(
            f"terminal/{name}",
            command,
            status=(0, 2),
            never=escape,
            files={"e.csv": evil} if "e.csv" in command else {"w.csv": words},
            writes=("o.jsonl",),
        )
    for name, command in {
        "score": "condsim score --file",
        "evaluate": "condsim evaluate --resamples 10 --data",
        "train": "condsim train --output o",
        "data check": "condsim data check",
        "search": "condsim search --condition c",
    }.items():
        after = " q" if name == "search" else ""
        yield Case(f"terminal/name, {name}", f"{command} $'no\\e[31mpe.csv'{after}", never=escape)
    yield Case(
        "terminal/explain a text",
        "condsim explain $'a \\e[31m' b c",
        (0, 2),
        never="\x1b\\[31ma|\\]0;",
    )


def arguments() -> Iterator[Case]:
    """Arguments of every kind."""
    yield Case("arguments/version", "condsim --version", (0,), out=r"\d+\.\d+")
    yield Case("arguments/short help", "condsim -h", (0,), out="Usage")
    yield Case("arguments/invalid UTF-8", "condsim score $'\\xff\\xfe' b c", says="UTF-8|Unicode")
    yield Case("arguments/file of invalid UTF-8", "condsim data check $'\\xff.csv'")
    yield Case("arguments/empty text", "condsim score '' b c")
    yield Case("arguments/empty condition", "condsim score a b ''")
    yield Case("arguments/two texts", "condsim score a b", status=(0, 2), lines=3)
    yield Case("arguments/unknown scale", "condsim score a b c --scale x", lines=9)
    yield Case("arguments/unknown command", "condsim nope", lines=9)
    yield Case(
        "arguments/file and texts", "condsim score a b c --file p.csv", files={"p.csv": PAIRS}
    )
    yield Case("arguments/output without file", "condsim score a b c --output o.csv")
    for option in ("evaluate --data p.csv --resamples", "robustness r.csv --resamples"):
        yield Case(
            f"arguments/{option.split()[0]} of a billion resamples",
            f"timeout 40 condsim {option} 1000000000",
            says="resamples",
            files=_files(option),
            lines=9,
        )
    yield Case(
        "arguments/threshold precision 2",
        "condsim threshold p.csv --precision 2",
        files={"p.csv": PAIRS},
        lines=9,
    )
    yield Case("arguments/NaN", "condsim search d q --condition c --weight nan", lines=9)
    yield Case(
        "arguments/info", "condsim info", (0,), never="faiss not installed|PIL not installed"
    )
    yield Case(
        "arguments/build push",
        "condsim build push conditions --data c.parquet --server http://127.0.0.1:9",
    )
    yield Case(
        "arguments/build dataset ratios",
        "condsim build dataset rt.csv --output ds --ratios 1e308:1e308:1e308",
        files={"rt.csv": RATINGS + "1,a,b,c,high,4,x,human\n"},
    )
    yield Case(
        "arguments/build dataset source",
        "condsim build dataset rt.csv --output ds --source x",
        says="source|NAME|row_id",
        files={"rt.csv": RATINGS + "1,a,b,c,high,4,x,human\n"},
    )
    yield Case(
        "arguments/candidates to csv",
        "condsim build candidates c.tsv --texts --caption-column caption --output o.csv",
        says="parquet",
        files={"c.tsv": CAPTIONS},
    )
    yield Case(
        "arguments/functions of nothing",
        "condsim build weak c.tsv --output o.csv --functions empty.py",
        says="empty.py",
        files={"c.tsv": CAPTIONS, "empty.py": ""},
    )
    yield Case(
        "arguments/answers of two kinds",
        "condsim build answers p.csv --model x.yaml --functions f.py --output o.csv",
        says="x.yaml|not both|f.py",
        files={"p.csv": PAIRS},
    )
    yield Case(
        "arguments/accept not UTF-8",
        "condsim build qualify --accept $'x\\xff'",
        writes=("annotation",),
        lines=9,
    )
    yield Case(
        "arguments/fit on one label",
        "condsim applicability fit --data neg.csv --output h.json",
        says="appl",
        files={"neg.csv": HEAD + "".join(f"a {n},b {n},c,-1,n\n" for n in range(30))},
    )
    yield Case(
        "arguments/split over its own input",
        "condsim build split q.csv --output ds && cp ds/train.csv before && "
        "! condsim build split ds/train.csv --output ds --overwrite && cmp before ds/train.csv",
        (0,),
        says="is an input",
        files={"q.csv": HEAD + "".join(f"a {n} c,b {n} d,c,{n % 5 + 1},n\n" for n in range(60))},
        writes=("ds", "before"),
    )
    yield Case(
        "streams/closed output of many",
        "condsim score --file p.csv >&-",
        says="output is closed",
        files={"p.csv": PAIRS},
    )


CASES = [*same(), *places(), *streams(), *terminal(), *arguments()]
