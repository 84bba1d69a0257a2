"""Record what every command does: ``python -m tests.golden.record OUT.json [--slow] [--only RE]``.

Run it from the root of the repository, with the tree to record first on ``PYTHONPATH``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.golden import runner
from tests.golden.cases import CASES, Case


def main() -> None:
    """Record the cases into a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--slow", action="store_true", help="the cases that need torch instead")
    parser.add_argument("--only", default="", help="regular expression over the names of cases")
    parser.add_argument("--committed", action="store_true", help="only cases kept in the tree")
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time")
    parser.add_argument("--times", action="store_true", help="print the seconds of each case")
    parser.add_argument("--keep", action="store_true", help="keep the folders of the cases")
    options = parser.parse_args()
    group = "slow" if options.slow else "quick"
    cases = [
        case
        for case in CASES
        if case.group == group
        and re.search(options.only, case.name)
        and (case.committed or not options.committed)
    ]
    record = record_all(cases, jobs=options.jobs, times=options.times, keep=options.keep)
    if options.committed:
        record = {name: without_prose(case) for name, case in record.items()}
        record["processor"] = processor()
    text = json.dumps(record, indent=1, ensure_ascii=False, sort_keys=True)
    options.output.write_text(text + "\n", encoding="utf-8")
    sys.stderr.write(f"{len(record)} cases in {options.output}\n")


def processor() -> list[str]:
    """Instruction sets on which the rounding of int8 scores depends."""
    path = Path("/proc/cpuinfo")
    words = path.read_text(encoding="utf-8").split() if path.exists() else []
    return sorted({"avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8"} & set(words))


def without_prose(case: Any) -> Any:
    """What a case did, without the pages and cards that it wrote for people to read."""
    files = {
        name: "{prose}" if name.endswith((".md", ".html")) else content
        for name, content in case["files"].items()
    }
    return {**case, "files": files}


def record_all(
    cases: list[Case], *, jobs: int, times: bool = False, keep: bool = False
) -> dict[str, Any]:
    """Run cases, several at a time; what each did by its name."""
    # The length of a path must not change where tables wrap.
    root = Path(tempfile.mkdtemp(prefix="condsim-golden-", dir="/tmp")).resolve()
    runner.prepare(root)
    waiting = list(cases)
    running: dict[int, tuple[Case, float]] = {}
    seconds: list[tuple[float, str]] = []
    try:
        while waiting or running:
            ready = [case for case in waiting if all(_done(root, name) for name in case.after)]
            if ready and len(running) < jobs:
                case = ready[0]
                waiting.remove(case)
                result = root / f"{case.folder}.result.json"

                def body(case: Case = case, result: Path = result) -> None:
                    done = json.dumps(runner.run_case(case, root))
                    result.with_suffix(".part").write_text(done, encoding="utf-8")
                    result.with_suffix(".part").rename(result)

                pid = runner.fork(body, err=root / f"{case.folder}.case.err")
                running[pid] = case, time.monotonic()
                continue
            if not running:
                missing = {name for case in waiting for name in case.after}
                raise SystemExit(f"these cases are needed and did not end: {sorted(missing)}")
            pid, _ = os.wait()
            if pid in running:
                case, began = running.pop(pid)
                seconds.append((time.monotonic() - began, case.name))
                if not _done(root, case.name):
                    error = (root / f"{case.folder}.case.err").read_text(encoding="utf-8")
                    sys.stderr.write(f"{case.name} could not be recorded:\n{error}\n")
        if times:
            for spent, name in sorted(seconds, reverse=True):
                sys.stderr.write(f"{spent:7.2f} s  {name}\n")
        return {
            case.name: json.loads(path.read_text(encoding="utf-8"))
            for case in cases
            if (path := root / f"{case.folder}.result.json").exists()
        }
    finally:
        if keep:
            sys.stderr.write(f"kept: {root}\n")
        else:
            runner.remove(root)


def _done(root: Path, name: str) -> bool:
    return (root / f"{Case(name).folder}.result.json").exists()


if __name__ == "__main__":
    main()
