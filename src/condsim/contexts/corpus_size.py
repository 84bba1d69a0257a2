"""How much text there is in the input files of a corpus, to tell how far reading is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from condsim.contexts.corpus_reading import Paragraph

__all__ = ["told", "unpacked_bytes"]

_OFTEN = 1 << 20  # bytes between two calls
_PACKED = 3  # what Parquet saves, about


def unpacked_bytes(files: Sequence[Path]) -> int:
    """Adds up the sizes of files without reading them.

    Args:
        files: The files.

    Returns:
        Bytes of text in them, about: gzip notes it at its end (modulo 4 GiB), of Parquet it is
        guessed.
    """
    return sum(map(_unpacked, files))


def told(
    paragraphs: Iterator[Paragraph], progress: Callable[[int, int], None], total: int
) -> Iterator[Paragraph]:
    """Passes paragraphs on and tells how far they are.

    Args:
        paragraphs: The paragraphs.
        progress: Called after each megabyte, and at the end, with the bytes read and in all.
        total: What `unpacked_bytes` gave.

    Yields:
        The paragraphs.
    """
    done = last = 0
    for paragraph in paragraphs:
        done += len(paragraph.text.encode()) + 1
        if done - last >= _OFTEN:
            last = done
            progress(min(done, total), total)
        yield paragraph
    progress(total, total)


def _unpacked(file: Path) -> int:
    size = file.stat().st_size
    if file.suffix.lower() == ".parquet":
        return _PACKED * size
    if file.suffix.lower() != ".gz" or size < 8:
        return size
    with file.open("rb") as stream:
        stream.seek(-4, 2)
        return max(size, int.from_bytes(stream.read(4), "little"))
