"""The one reader of rows: CSV, TSV, JSONL and Parquet, packed or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.tasks.rows.formats import open_bytes as open_bytes, tsv_records as tsv_records
    from condsim.tasks.rows.reading import (
        check_file as check_file,
        column_names as column_names,
        iter_rows as iter_rows,
        scan_rows as scan_rows,
        scan_stream as scan_stream,
        stem_of as stem_of,
        suffix_of as suffix_of,
        text_lines as text_lines,
    )
    from condsim.tasks.rows.row import (
        Cell as Cell,
        Row as Row,
        check_columns as check_columns,
        check_header as check_header,
        place as place,
        score_of as score_of,
        shown as shown,
    )

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "formats": "open_bytes tsv_records",
        "reading": (
            "check_file column_names iter_rows scan_rows scan_stream stem_of suffix_of text_lines"
        ),
        "row": "Cell Row check_columns check_header place score_of shown",
    },
)
