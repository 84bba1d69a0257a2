from __future__ import annotations

import dataclasses

import pytest

from condsim.errors import InputError
from condsim.rows.records import write_rows
from condsim_annotation.records import Rating
from condsim_annotation.tables import read_manifest, read_rows

COLUMNS = [field.name for field in dataclasses.fields(Rating)]
RATINGS = [
    Rating("p-1", "p", 'A "quoted", text', "two\nlines", "c", "high", "ann", -1),
    Rating("p-2", "p", "a", "b", "c", "low", "ann", 3, 1.5, "some model", "2026-01-01T00:00:00Z"),
    Rating("p-3", "p", "a", "b", "c", "low", "ben", 3, prefilled_by="m", condition_origin="llm"),
]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_rows_written_are_read_back(tmp_path, suffix):
    path = tmp_path / f"ratings.{suffix}"
    assert write_rows(iter(RATINGS), path, kind=Rating) == 3
    assert list(read_rows(path, Rating)) == RATINGS
    with pytest.raises(InputError, match=r"must be \.parquet or \.csv"):
        write_rows(RATINGS, tmp_path / "ratings.txt", kind=Rating)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("label", "", r"row 1 \(line 2\), column 'label': must not be empty"),
        ("label", "2.5", "column 'label': must be a whole number"),
        ("label", "7", r"row 1 \(line 2\): 'label' of a rating must be"),
        ("seconds", "soon", "column 'seconds': must be a number"),
        ("annotator", "", "column 'annotator': must not be empty"),
    ],
)
def test_rows_bad_cell_named_by_file_row_and_column(tmp_path, column, value, message):
    cells = dict(zip(COLUMNS, "r p a b c high ann 3 1 human t m human".split(), strict=True))
    cells[column] = value
    path = tmp_path / "ratings.csv"
    path.write_text(",".join(cells) + "\n" + ",".join(cells.values()) + "\n")
    with pytest.raises(InputError, match=message):
        list(read_rows(path, Rating))


def test_manifest_lies_beside_its_file(tmp_path):
    path = tmp_path / "pairs.parquet"
    assert read_manifest(path) is None
    manifest = tmp_path / "pairs.manifest.json"
    manifest.write_text('{"rows": 3}')
    assert read_manifest(path) == {"rows": 3}
    manifest.write_text("{")
    with pytest.raises(InputError, match=r"pairs\.manifest\.json cannot be read"):
        read_manifest(path)
