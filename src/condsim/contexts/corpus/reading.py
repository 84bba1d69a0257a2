"""The input files of a corpus, read as a stream of paragraphs."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from condsim.contexts.settings import CorpusSettings
from condsim.errors import InputError, require

SUFFIXES = (".txt", ".txt.gz", ".jsonl", ".jsonl.gz", ".tsv", ".tsv.gz", ".parquet")
"""Names of input files end in one of these."""

_TITLE = re.compile(r"= ([^=].*) =")
_HEADING = re.compile(r"(==+|= =).*=")
_ROWS = 1024  # of Parquet, read at once
_OFTEN = 1 << 20  # bytes between two reports of progress
_PARQUET_RATIO = 3  # text to file size, about


class Paragraph(NamedTuple):
    """A paragraph of a document."""

    document: int  # from 0 over all input files
    name: str  # of the document: its title or id, or its file and number
    text: str  # may be empty
    is_sentence: bool = False  # whether it must not be split


# What one file's reader yields: number of the document within the file, its name, text.
_Part = tuple[int, str | None, str]


def find_inputs(inputs: Sequence[Path]) -> list[Path]:
    """Checks the input files before anything is read; a folder stands for the files in it.

    Args:
        inputs: Files, and folders that are searched with their sub-folders.

    Returns:
        The files: as given, those of a folder by name.

    Raises:
        InputError: If none is given, or one is missing, of no known suffix or given twice, or a
            folder holds none.
    """
    if not inputs:
        raise InputError("A corpus needs at least one input file. Got none.")
    known = f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
    files: list[Path] = []
    for path in inputs:
        if path.is_dir():
            found = sorted(file for file in path.rglob("*") if _suffix(file) and file.is_file())
            if not found:
                raise InputError(f"{path} holds no file that ends in {known}.")
            files += found
        elif not path.is_file():
            raise InputError(f"{path} does not exist.")
        elif not _suffix(path):
            raise InputError(f"{path} must end in {known}.")
        else:
            files.append(path)
    for file in files:
        if files.count(file) > 1:
            raise InputError(f"{file} is given twice.")
    return files


def unpacked_bytes(files: Sequence[Path]) -> int:
    """Adds up the sizes of the text in files without reading them, about."""
    return sum(map(_unpacked, files))


def _unpacked(file: Path) -> int:
    size = file.stat().st_size
    if file.suffix.lower() == ".parquet":
        return _PARQUET_RATIO * size
    if file.suffix.lower() != ".gz" or size < 8:
        return size
    with file.open("rb") as stream:
        stream.seek(-4, 2)
        return max(size, int.from_bytes(stream.read(4), "little"))


def count_bytes(
    paragraphs: Iterator[Paragraph], progress: Callable[[int, int], None], total: int
) -> Iterator[Paragraph]:
    """Passes paragraphs on and reports their bytes."""
    done = last = 0
    for paragraph in paragraphs:
        done += len(paragraph.text.encode()) + 1
        if done - last >= _OFTEN:
            last = done
            progress(min(done, total), total)
        yield paragraph
    progress(total, total)


def read_paragraphs(files: Sequence[Path], settings: CorpusSettings) -> Iterator[Paragraph]:
    """Reads files one after the other, holding no more than a row or line of each."""
    base = 0
    for path in files:
        kind = _suffix(path).removesuffix(".gz")
        number = -1
        for number, name, text in _READERS[kind](path, settings):
            yield Paragraph(
                base + number, name or f"{path.name}#{number + 1}", text, kind == ".tsv"
            )
        base += number + 1


def _suffix(path: Path) -> str:
    name = path.name.lower()
    return next((suffix for suffix in SUFFIXES if name.endswith(suffix)), "")


def _read_text(path: Path, settings: CorpusSettings) -> Iterator[_Part]:
    number, name, titled = -1, None, False
    inside = False
    if settings.documents == "file":
        number, inside, titled = 0, True, True  # no line ends the document
    for _, line in _lines(path):
        text = line.strip()
        if not text:
            inside = inside and titled
        elif text[0] == "=" and (title := _TITLE.fullmatch(text)):
            if settings.documents == "blank-line":
                # The document begins with its first paragraph: one of a title alone is none.
                name, titled, inside = title[1], True, False
        elif text[0] == "=" and _HEADING.fullmatch(text):
            continue
        else:
            number, inside = number + (not inside), True
            yield number, name, text


def _read_jsonl(path: Path, settings: CorpusSettings) -> Iterator[_Part]:
    number = -1
    for place, line in _lines(path):
        if not line.strip():
            continue
        number += 1
        where = f"{path}, line {place}"
        try:
            row = json.loads(line)
        except ValueError as error:
            raise InputError(f"{where}: not valid JSON: {error}.") from error
        if not isinstance(row, dict):
            raise InputError(f"{where}: each line must be a JSON object. Got {line.strip()[:40]}.")
        yield from _document(number, row, settings.text_field, where)


def _read_parquet(path: Path, settings: CorpusSettings) -> Iterator[_Part]:
    pyarrow = require("pyarrow", extra="contexts")
    parquet = require("pyarrow.parquet", extra="contexts")
    number = -1
    try:
        with closing(parquet.ParquetFile(path)) as table:
            columns = table.schema_arrow.names
            if settings.text_field not in columns:
                raise _no_field(str(path), settings.text_field, columns)
            wanted = [settings.text_field, *(["id"] if "id" in columns else [])]
            for batch in table.iter_batches(_ROWS, columns=wanted):
                for row in batch.to_pylist():
                    number += 1
                    where = f"{path}, row {number + 1}"
                    yield from _document(number, row, settings.text_field, where)
    except (OSError, pyarrow.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} cannot be read as Parquet: {reason}") from error


def _read_tsv(path: Path, settings: CorpusSettings) -> Iterator[_Part]:
    column, width = -1, 0
    for place, line in _lines(path):
        cells = line.rstrip("\r\n").split("\t")
        if column < 0:
            if settings.caption_field not in cells:
                raise _no_field(f"{path}, line 1", settings.caption_field, cells)
            column, width = cells.index(settings.caption_field), len(cells)
        elif len(cells) != width:
            raise InputError(
                f"{path}, line {place}: {len(cells)} columns where the header has {width}; the "
                "file must be tab-separated, without quoting."
            )
        else:
            yield place - 2, None, cells[column]


_READERS: dict[str, Callable[[Path, CorpusSettings], Iterator[_Part]]] = {
    ".txt": _read_text,
    ".jsonl": _read_jsonl,
    ".tsv": _read_tsv,
    ".parquet": _read_parquet,
}


def _document(number: int, row: dict[str, Any], field: str, where: str) -> Iterator[_Part]:
    """The paragraphs of a row that is a document: the lines of its text, without headings."""
    if field not in row:
        raise _no_field(where, field, list(row))
    text, name = row[field], row.get("id")
    if not isinstance(text, str):
        raise InputError(f"{where}: '{field}' must be a text. Got {text!r:.40}.")
    if "\0" in text:
        raise _binary(where, "a NUL character")
    lines = filter(None, (line.strip() for line in text.split("\n")))
    kept = [line for line in lines if not (_TITLE.fullmatch(line) or _HEADING.fullmatch(line))]
    for line in kept or [""]:
        yield number, None if name is None else str(name), line


def _no_field(where: str, field: str, names: Sequence[str]) -> InputError:
    found = ", ".join(map(repr, names[:10])) or "none"
    option = "the caption field" if field == "caption" else "the text field"
    return InputError(f"{where}: there is no field '{field}', only {found}; name {option}.")


def _binary(where: str, what: str) -> InputError:
    return InputError(
        f"{where}: {what}; a corpus is made of UTF-8 text. Is this a binary file, or in another "
        "encoding?"
    )


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines of a file with their numbers from 1."""
    number = 0
    try:
        with gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb") as stream:
            for number, raw in enumerate(stream, 1):
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
                if "\0" in text:
                    raise _binary(f"{path}, line {number}", "a NUL character")
                yield number, text
    except UnicodeDecodeError as error:
        what = f"byte 0x{error.object[error.start]:02x} is not UTF-8"
        raise _binary(f"{path}, line {number}", what) from error
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read after line {number}: {error}.") from error
