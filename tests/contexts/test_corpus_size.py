from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from condsim.contexts.corpus.preparing import prepare_corpus


def prepare(files: list[Path], folder: Path) -> list[tuple[int, int]]:
    """Makes a corpus; gives the progress."""
    told: list[tuple[int, int]] = []
    prepare_corpus(files, folder, progress=lambda *what: told.append(what))
    return told


def test_prepare_corpus_tells_how_far_it_is_in_bytes_of_plain_and_gzipped_text(tmp_path):
    text = "\n".join(f"Line {'very ' * (n % 40)}long {n}." for n in range(30_000)).encode()
    files = [tmp_path / "a.txt", tmp_path / "b.txt.gz"]
    files[0].write_bytes(text)
    files[1].write_bytes(gzip.compress(text))
    told = prepare(files, tmp_path / "corpus")
    total = 2 * len(text)
    assert len(told) > 3
    assert told == sorted(told)
    assert {what for _, what in told} == {total}
    assert told[-1] == (total, total)
    assert prepare(files, tmp_path / "corpus") == []


def test_prepare_corpus_takes_parquet_to_be_three_times_as_long_as_its_file(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    file = tmp_path / "c.parquet"
    table = arrow.table({"text": ["The old mill stands by the river."]})
    pytest.importorskip("pyarrow.parquet").write_table(table, file)
    size = 3 * file.stat().st_size
    assert prepare([file], tmp_path / "corpus") == [(size, size)]
