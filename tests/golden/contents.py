"""Describe what a command wrote, without what differs from run to run."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

_TEXT_CHARACTERS = 4_000
_NUMBERS_SHOWN = 12
_ROWS_SHOWN = 3
_VARYING_KEYS = re.compile(
    r"^(created|created_at|seconds|.*_seconds|finished|at|time|times|date|versions?|.*_version"
    r"|python|platform|machine|commit|git.*|code|dirty|cores|threads|updated)$"
)
_TEXT_RULES = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?"), "{time}"),
    (re.compile(r"\b20[2-9]\d-\d\d-\d\d\b"), "{date}"),
    (re.compile(r"\b\d+\.\d+\.\d+(\.?(dev|rc|post|a|b)\d+)?(\+[0-9a-z.]+)?\b"), "{version}"),
    (re.compile(r"\b[0-9a-f]{40}\b"), "{commit}"),
    (re.compile(r"\b\d+(\.\d+)? ?(ms|s|sec|seconds?|minutes?|min)\b"), "{duration}"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "{uuid}"),
)


def stable_text(text: str, folder: Path) -> str:
    """Replace what varies in a text: paths, times, versions and commits."""
    text = text.replace(str(folder), "{folder}")
    for pattern, name in _TEXT_RULES:
        text = pattern.sub(name, text)
    return "\n".join(line.rstrip() for line in text.splitlines())


def describe(path: Path, folder: Path) -> Any:
    """Describe the content of a file by its kind."""
    suffix = path.suffix
    if suffix in _KINDS:
        return _KINDS[suffix](path)
    if suffix in (".json", ".jsonl"):
        text = path.read_text(encoding="utf-8")
        if suffix == ".json":
            return _stable_json(json.loads(text), folder)
        rows = [json.loads(line) for line in text.splitlines()]
        return {"rows": len(rows), "first": _stable_json(rows[:_ROWS_SHOWN], folder)}
    content = path.read_bytes()
    if b"\0" in content:
        return "{binary}"
    text = stable_text(content.decode("utf-8"), folder)
    if len(text) <= _TEXT_CHARACTERS:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return {"characters": len(text), "begins": text[: _TEXT_CHARACTERS // 4], "sha256": digest}


def _stable_json(value: Any, folder: Path, key: str = "") -> Any:
    """Replace what varies in a JSON value, and shorten long lists."""
    if isinstance(value, dict):
        return {name: _stable_json(part, folder, name) for name, part in value.items()}
    if _VARYING_KEYS.match(key) and value is not None:
        return f"{{{type(value).__name__}}}"
    if isinstance(value, list) and len(value) > _NUMBERS_SHOWN:
        first = [_stable_json(part, folder) for part in value[:_ROWS_SHOWN]]
        numbers = [part for part in value if isinstance(part, int | float)]
        return {"length": len(value), "first": first, "sum": round(float(sum(numbers)), 7)}
    if isinstance(value, list):
        return [_stable_json(part, folder) for part in value]
    if isinstance(value, float):
        return float(f"{value:.9g}")
    return stable_text(value, folder) if isinstance(value, str) else value


def _array(array: Any) -> dict[str, Any]:
    import numpy as np

    numbers = array.astype(np.float64).ravel()
    # The cosines are weights by position, so that rows in another order are seen.
    weights = np.cos(np.arange(numbers.size))
    return {
        "shape": list(array.shape),
        "dtype": str(array.dtype),
        "first": [round(float(number), 7) for number in numbers[:_NUMBERS_SHOWN]],
        "mean of squares": round(float((numbers**2).mean()), 7),
        "weighted mean": round(float((numbers * weights).mean()), 7),
    }


def _npy(path: Path) -> Any:
    import numpy as np

    return _array(np.load(path))


def _npz(path: Path) -> Any:
    import numpy as np

    with np.load(path) as arrays:
        return {name: _array(arrays[name]) for name in sorted(arrays.files)}


def _parquet(path: Path) -> Any:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    rows = json.loads(json.dumps(table.slice(0, _ROWS_SHOWN).to_pylist(), default=str))
    return {
        "rows": table.num_rows,
        "schema": {field.name: str(field.type) for field in table.schema},
        "first": _stable_json(rows, path.parent),
        "metadata": sorted(key.decode() for key in table.schema.metadata or {}),
    }


def _png(path: Path) -> Any:
    return {"pixels": struct.unpack(">II", path.read_bytes()[16:24])}


_KINDS: dict[str, Callable[[Path], Any]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".parquet": _parquet,
    ".png": _png,
}
