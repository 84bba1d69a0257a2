"""A corpus: documents of many kinds of files as sentences in order, on disk.

>>> from tempfile import TemporaryDirectory
>>> with TemporaryDirectory() as folder:
...     text = Path(folder, "rain.txt")
...     _ = text.write_text("It rains all day. The street is wet. Nobody goes out to play.")
...     corpus = prepare_corpus([text], Path(folder, "corpus"))
...     corpus.neighbours(np.array([0]), left=1, right=1).tolist(), corpus.counts.words
([[-1, 1]], 13)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from condsim.cache import build_once, changed_values, read_manifest, write_manifest
from condsim.contexts.corpus.reading import (
    Paragraph,
    count_bytes,
    find_inputs,
    read_paragraphs,
    split_sentences,
    unpacked_bytes,
)
from condsim.contexts.corpus.stored import FORMAT, WHAT, Corpus, CorpusWriter
from condsim.contexts.settings import CorpusCounts, CorpusSettings
from condsim.errors import InputError
from condsim.io import sha256_of
from condsim.types import BoolArray


def prepare_corpus(
    inputs: Sequence[Path],
    output: Path,
    *,
    settings: CorpusSettings | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Corpus:
    """Makes a corpus of text files, JSONL, Parquet and captions.

    The suffix says what an input is; all but Parquet may be gzipped (``.gz``):

    - ``.txt``: every line is a paragraph, so text wrapped at a line's width must be unwrapped
      first. ``= Title =`` begins a document, lines such as ``== Heading ==`` are left out. In a
      file without titles a blank line ends a document, or with ``documents="file"`` nothing does.
    - ``.jsonl`` and ``.parquet``: a document a row, its text in ``text_field``; the lines of a
      text are its paragraphs.
    - ``.tsv``: a header, then a row for each document of one sentence, in ``caption_field``.

    Sentences too short or long, of control characters or without a letter or digit, and those of
    the same words as one before are dropped and counted; their neighbours close up. Text is read
    as a stream: memory holds eight bytes a sentence and some thousand sentences.

    Args:
        inputs: Files, and folders that stand for all files in them.
        output: Folder of the corpus. One that holds this corpus already is opened at once.
        progress: Called with the bytes of text read and the total, about.

    Raises:
        InputError: If an input breaks a rule, no sentence is left, ``output`` holds
            something else, or cannot be written.
        MissingExtraError: If the ``contexts`` extra is not installed.
    """
    settings = settings or CorpusSettings()
    files = find_inputs(inputs)
    found = read_manifest(output, what=WHAT)
    hashes = [sha256_of(file) for file in files]
    if found is None:
        with build_once(output, what=WHAT) as folder:
            if folder is not None:
                _build(files, hashes, folder, settings, progress)
        found = read_manifest(output, what=WHAT)
    _check_same(found or {}, hashes, settings, output)
    return Corpus(output)


def _build(
    files: Sequence[Path],
    hashes: Sequence[str],
    folder: Path,
    settings: CorpusSettings,
    progress: Callable[[int, int], None] | None,
) -> None:
    counts = CorpusCounts()
    taken = _taken_documents(files, settings, counts)
    every = read_paragraphs(files, settings)
    if progress is not None:
        every = count_bytes(every, progress, sum(map(unpacked_bytes, files)))
    paragraphs = _counted(every, taken, counts)
    with ExitStack() as stack:
        writer = CorpusWriter(
            folder, stack, chunk_sentences=settings.chunk_sentences, counts=counts
        )
        for sentences in split_sentences(paragraphs, settings, counts):
            writer.write(sentences)
        writer.finish()
    if not counts.sentences:
        dropped = ", ".join(f"{reason} {count}" for reason, count in counts.dropped.items())
        raise InputError(
            f"The corpus is empty: {', '.join(file.name for file in files)} has no sentence of "
            f"{settings.min_words} to {settings.max_words} words (dropped: {dropped})."
        )
    identity = [settings.model_dump(), list(hashes), writer.content, FORMAT]
    revision = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:12]
    sources = [
        {"name": file.name, "sha256": sha256, "bytes": file.stat().st_size}
        for file, sha256 in zip(files, hashes, strict=True)
    ]
    content = {
        "format": FORMAT,
        "revision": revision,
        "settings": settings.model_dump(),
        "inputs": sources,
        "counts": asdict(counts),
    }
    write_manifest(folder, content, what=WHAT)


def _taken_documents(
    files: Sequence[Path], settings: CorpusSettings, counts: CorpusCounts
) -> BoolArray | None:
    """Which documents are taken, ``(documents,)``; None for all. Reads the files once."""
    if settings.max_words_total is None:
        return None
    sizes: list[int] = []
    for document, text, _ in read_paragraphs(files, settings):
        if document >= len(sizes):
            sizes += [0] * (document + 1 - len(sizes))
        sizes[document] += len(text.split())
    order = np.random.default_rng(settings.seed).permutation(len(sizes))
    words = np.cumsum(np.array(sizes, dtype=np.int64)[order])
    enough = int(np.searchsorted(words, settings.max_words_total)) + 1
    taken = np.zeros(len(sizes), dtype=np.bool_)
    taken[order[:enough]] = True
    counts.documents_left = int((~taken).sum())
    return taken


def _counted(
    paragraphs: Iterator[Paragraph], taken: BoolArray | None, counts: CorpusCounts
) -> Iterator[Paragraph]:
    """The paragraphs of the documents taken, which are counted."""
    last = -1
    for paragraph in paragraphs:
        if taken is not None and not taken[paragraph.document]:
            continue
        if paragraph.document != last:
            counts.documents_read += 1
            last = paragraph.document
        yield paragraph


def _check_same(
    found: dict[str, Any], hashes: Sequence[str], settings: CorpusSettings, output: Path
) -> None:
    changed = changed_values(settings.model_dump(), found.get("settings", {}))
    if [source.get("sha256") for source in found.get("inputs", [])] != list(hashes):
        changed.insert(0, "its input files are others")
    if changed:
        raise InputError(
            f"{output} holds another corpus: {', '.join(changed)}. Give another folder, or remove "
            "this one and what was made from it."
        )
