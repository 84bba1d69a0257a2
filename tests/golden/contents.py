"""Describe what a command wrote, without what differs from run to run."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

_TEXT_CHARACTERS = 12_000
_NUMBERS_SHOWN = 24
_ROWS_SHOWN = 12
_DIGITS = 7
_VARYING_KEYS = re.compile(
    r"^(created|created_at|seconds|.*_seconds|duration|started|finished|at|time|times|date"
    r"|versions?|.*_version|python|platform|hostname|machine|commit|git.*|code"
    r"|total_flos|train_runtime|.*_per_second|dirty|cores|threads|pulled_at|pushed_at|updated)$"
)
_TEXT_RULES = (
    (re.compile(r"127\.0\.0\.1:\d+"), "{host}:{port}"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?"), "{time}"),
    (re.compile(r"\b20[2-9]\d-\d\d-\d\d\b"), "{date}"),
    (re.compile(r"\b\d+\.\d+\.\d+(\.?(dev|rc|post|a|b)\d+)?(\+[0-9a-z.]+)?\b"), "{version}"),
    (re.compile(r"\b[0-9a-f]{40}\b"), "{commit}"),
    (re.compile(r"\b\d+(\.\d+)? ?(ms|s|sec|seconds?|minutes?|min)\b"), "{duration}"),
    # The minutes of a trial, in the last column of the table of a sweep.
    (re.compile(r"^(\| \d+ \|.* \|) \d+\.\d \|$", re.MULTILINE), r"\1 {minutes} |"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "{uuid}"),
)


class Normaliser:
    """Replaces paths, times, versions and commits by their names."""

    def __init__(self, paths: Mapping[str, str]) -> None:
        self._paths = paths

    def text(self, text: str) -> str:
        """A text with what varies replaced, lines without the white space at their ends."""
        for path, name in self._paths.items():
            text = text.replace(path, name)
        for pattern, name in _TEXT_RULES:
            text = pattern.sub(name, text)
        return "\n".join(line.rstrip() for line in text.splitlines())

    def json(self, value: object, key: str = "") -> Any:
        """A JSON value with what varies replaced."""
        if isinstance(value, dict):
            return {
                self.text(str(name)): self.json(part, str(name)) for name, part in value.items()
            }
        if _VARYING_KEYS.match(key) and value is not None:
            return f"{{{type(value).__name__}}}"
        if isinstance(value, list):
            return [self.json(part) for part in value]
        if isinstance(value, str):
            return self.text(value)
        return _rounded(value)


def _rounded(value: object) -> Any:
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            return repr(value)
        return float(f"{value:.9g}")
    return value


def help_options(text: str) -> list[str]:
    """Options of a help page with types, ranges and defaults, without the words around them."""
    shown: list[str] = []
    for line in text.splitlines():
        if not line.startswith("│"):
            continue
        content = line.strip("│ ")
        option = re.match(
            r"(\*\s+)?(-[-a-zA-Z0-9, ]*?)\s+((<[^>]*>|[A-Z=]+)( \[[^\]]*\])?)?", content
        )
        argument = re.match(r"(\*)?\s*([A-Za-z_0-9]+)\s+(<[^>]*>)", content)
        if content.startswith(("-", "*")) and option and option[2].strip().startswith("-"):
            star = "*" if option[1] else ""
            names = " ".join(option[2].split())
            shown.append(f"{names}{star} {option[3] or ''}".strip())
        elif argument:
            shown.append(f"{argument[2]}{argument[1] or ''} {argument[3]}")
        default = re.search(r"\[default: ([^\]]*)\]", content)
        if default and shown:
            value = default[1]
            shown[-1] += " = (words)" if re.match(r"\(.*[a-z]{3}", value) else f" = {value}"
    return shown


def describe_folder(
    folder: Path, paths: Iterable[Path], normaliser: Normaliser, skip: str
) -> dict[str, Any]:
    """Describe each file by its name below a folder."""
    described: dict[str, Any] = {}
    indexes = {parent for path in paths for parent in path.parents if parent.suffix == ".lance"}
    for path in paths:
        if indexes & set(path.parents):
            continue
        name = normaliser.text(path.relative_to(folder).as_posix())
        name = re.sub(r"\.[0-9a-f]{8}\.lock$", ".{hash}.lock", name)
        if skip and re.search(skip, name):
            continue
        described[name] = _described(path, normaliser)
    for index in sorted(indexes):
        if index.parent not in {other for other in indexes}:
            name = index.relative_to(folder).as_posix()
            described[name] = _guarded(_lance, index, normaliser)
    return dict(sorted(described.items()))


def _described(path: Path, normaliser: Normaliser) -> Any:
    kinds = {
        ".npy": _npy,
        ".npz": _npz,
        ".parquet": _parquet,
        ".arrow": _arrow,
        ".json": _json,
        ".jsonl": _jsonl,
        ".png": _png,
        ".safetensors": _safetensors,
        ".onnx": _onnx,
        ".sqlite": _sqlite,
        ".db": _sqlite,
    }
    if path.name == "tokenizer.json":
        return {"sha256": _digest(path.read_bytes())}
    return _guarded(kinds.get(path.suffix, _text), path, normaliser)


def _guarded(function: Any, path: Path, normaliser: Normaliser) -> Any:
    try:
        return function(path, normaliser)
    except Exception as error:
        return {"unreadable": type(error).__name__, "bytes": path.stat().st_size}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _text(path: Path, normaliser: Normaliser) -> Any:
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    try:
        text = normaliser.text(content.decode("utf-8"))
    except UnicodeDecodeError:
        return {"binary": True}
    if len(text) <= _TEXT_CHARACTERS:
        return text
    shortened = text[: _TEXT_CHARACTERS // 4]
    return {"characters": len(text), "begins": shortened, "sha256": _digest(text.encode())}


def _json(path: Path, normaliser: Normaliser) -> Any:
    value = normaliser.json(json.loads(path.read_text(encoding="utf-8")))
    return {"json": _shortened(value)}


def _jsonl(path: Path, normaliser: Normaliser) -> Any:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {"rows": len(rows), "json": _shortened(normaliser.json(rows[:_ROWS_SHOWN]))}


def _shortened(value: Any) -> Any:
    """Lists of many numbers become their length, the first of them and their sum."""
    if isinstance(value, dict):
        return {key: _shortened(part) for key, part in value.items()}
    if isinstance(value, list):
        numbers = [part for part in value if isinstance(part, int | float)]
        if len(value) > _NUMBERS_SHOWN and len(numbers) == len(value):
            return {"length": len(value), "first": value[:5], "sum": _rounded(float(sum(numbers)))}
        if len(value) > 3 * _NUMBERS_SHOWN:
            kept = [_shortened(part) for part in value[:_NUMBERS_SHOWN]]
            return {"length": len(value), "first": kept}
        return [_shortened(part) for part in value]
    return value


def _array(array: Any) -> dict[str, Any]:
    import numpy as np

    shown: dict[str, Any] = {"shape": list(array.shape), "dtype": str(array.dtype)}
    if array.dtype.kind in "fiub":
        numbers = array.astype(np.float64).ravel()
        shown["first"] = [round(float(number), _DIGITS) for number in numbers[:_NUMBERS_SHOWN]]
        shown["mean"] = round(float(numbers.mean()), _DIGITS) if numbers.size else None
        shown["mean of squares"] = (
            round(float((numbers**2).mean()), _DIGITS) if numbers.size else None
        )
        # Weighted by place, so that rows in another order are seen.
        places = np.cos(np.arange(numbers.size))
        shown["weighed"] = (
            round(float((numbers * places).mean()), _DIGITS) if numbers.size else None
        )
    else:
        shown["first"] = [str(cell) for cell in array.ravel()[:_NUMBERS_SHOWN]]
    return shown


def _npy(path: Path, _normaliser: Normaliser) -> Any:
    import numpy as np

    return _array(np.load(path))


def _npz(path: Path, _normaliser: Normaliser) -> Any:
    import numpy as np

    with np.load(path) as arrays:
        return {name: _array(arrays[name]) for name in sorted(arrays.files)}


def _table(table: Any, normaliser: Normaliser) -> dict[str, Any]:
    import numpy as np

    shown: dict[str, Any] = {
        "rows": table.num_rows,
        "schema": {field.name: str(field.type) for field in table.schema},
    }
    first = table.slice(0, _ROWS_SHOWN)
    for field in first.schema:
        if "list" in str(field.type):
            vectors = np.array([row or [] for row in table[field.name].to_pylist()], dtype=object)
            with_numbers = [np.asarray(row, np.float64) for row in vectors]
            if len({row.shape for row in with_numbers}) == 1:
                shown[f"vectors {field.name}"] = _array(np.stack(with_numbers))
            first = first.drop_columns([field.name])
    shown["first"] = normaliser.json(json.loads(json.dumps(first.to_pylist(), default=str)))
    return shown


def _parquet(path: Path, normaliser: Normaliser) -> Any:
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    kept = sorted((table.schema.metadata or {}).keys())
    return {**_table(table, normaliser), "metadata": [key.decode() for key in kept]}


def _arrow(path: Path, normaliser: Normaliser) -> Any:
    import pyarrow as pa

    for opener in (pa.ipc.open_file, pa.ipc.open_stream):
        try:
            return _table(opener(path.read_bytes()).read_all(), normaliser)
        except pa.ArrowInvalid:
            continue
    return {"binary": True}


def _lance(path: Path, normaliser: Normaliser) -> Any:
    import lancedb

    connection = lancedb.connect(str(path.parent))
    table = connection.open_table(path.stem)
    return _table(table.to_arrow(), normaliser)


def _png(path: Path, _normaliser: Normaliser) -> Any:
    width, height = struct.unpack(">II", path.read_bytes()[16:24])
    return {"pixels": [width, height]}


def _safetensors(path: Path, _normaliser: Normaliser) -> Any:
    from safetensors.numpy import load_file

    return {name: _array(array) for name, array in sorted(load_file(path).items())}


def _onnx(path: Path, _normaliser: Normaliser) -> Any:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return {
        "inputs": [[one.name, one.type] for one in session.get_inputs()],
        "outputs": [[one.name, one.type] for one in session.get_outputs()],
    }


def _sqlite(path: Path, _normaliser: Normaliser) -> Any:
    import sqlite3

    connection = sqlite3.connect(path)
    try:
        names = [
            name
            for (name,) in connection.execute(
                "select name from sqlite_master where type = 'table' order by name"
            )
        ]
        return {
            name: connection.execute(f'select count(*) from "{name}"').fetchone()[0]
            for name in names
        }
    finally:
        connection.close()
