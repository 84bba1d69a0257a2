"""The one reader of rows: CSV, TSV, JSONL and Parquet, packed or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.tasks.rows.formats import (
        decoded_lines as decoded_lines,
        open_bytes as open_bytes,
        tsv_records as tsv_records,
    )
    from condsim.tasks.rows.reading import (
        check_file as check_file,
        column_names as column_names,
        iter_rows as iter_rows,
        scan_rows as scan_rows,
        stem_of as stem_of,
    )
    from condsim.tasks.rows.row import (
        Cell as Cell,
        Row as Row,
        check_header as check_header,
        place as place,
        score_of as score_of,
        shown as shown,
        text_cell as text_cell,
    )

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "formats": "decoded_lines open_bytes tsv_records",
        "reading": "check_file column_names iter_rows scan_rows stem_of",
        "row": "Cell Row check_header place score_of shown text_cell",
    },
)
