from .formats import (
    csv_records as csv_records,
    delimited_rows as delimited_rows,
    file_lines as file_lines,
    open_bytes as open_bytes,
    tsv_records as tsv_records,
)
from .reading import (
    check_file as check_file,
    column_names as column_names,
    iter_rows as iter_rows,
    iter_stream as iter_stream,
    never_empty as never_empty,
    stem_of as stem_of,
    suffix_of as suffix_of,
    text_lines as text_lines,
)
from .row import (
    Cell as Cell,
    Row as Row,
    Wanted as Wanted,
    label_fix as label_fix,
    number_of as number_of,
    place as place,
    score_of as score_of,
    shown as shown,
    unique_names as unique_names,
)
from .writing import (
    aligned_records as aligned_records,
    is_table as is_table,
    kept_record as kept_record,
    write_records as write_records,
    write_tsv as write_tsv,
)
