from __future__ import annotations

import gzip
from pathlib import Path

from condsim.contexts.corpus import prepare_corpus, unpacked_bytes


def write(folder: Path) -> list[Path]:
    text = "\n".join(f"Line {'very ' * (n % 40)}long {n}." for n in range(30_000)).encode()
    (folder / "a.txt").write_bytes(text)
    (folder / "b.txt.gz").write_bytes(gzip.compress(text))
    return [folder / "a.txt", folder / "b.txt.gz"]


def test_unpacked_bytes_of_plain_and_gzipped_text(tmp_path):
    plain, packed = write(tmp_path)
    size = plain.stat().st_size
    assert unpacked_bytes([plain, packed]) == 2 * size > 2 * packed.stat().st_size
    (tmp_path / "short.txt.gz").write_bytes(b"1234")
    (tmp_path / "c.parquet").write_bytes(b"1234")
    assert unpacked_bytes([tmp_path / "short.txt.gz", tmp_path / "c.parquet"]) == 4 + 12


def test_prepare_corpus_tells_how_far_it_is(tmp_path):
    told: list[tuple[int, int]] = []
    files = write(tmp_path)
    prepare_corpus(files, tmp_path / "corpus", progress=lambda *what: told.append(what))
    total = unpacked_bytes(files)
    assert len(told) > 3
    assert told == sorted(told)
    assert {what for _, what in told} == {total}
    assert told[-1] == (total, total)
    told.clear()
    prepare_corpus(files, tmp_path / "corpus", progress=lambda *what: told.append(what))
    assert told == []
