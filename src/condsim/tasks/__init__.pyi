from .afs import load_afs as load_afs, load_afs_topics as load_afs_topics
from .criteria import (
    CriteriaPair as CriteriaPair,
    CriteriaText as CriteriaText,
    iter_criteria as iter_criteria,
)
from .csts import (
    CstsRow as CstsRow,
    iter_csts as iter_csts,
    load_applicability as load_applicability,
    load_csts as load_csts,
)
from .graded import load_cxc_sts as load_cxc_sts, load_scored_pairs as load_scored_pairs
from .held_out import (
    HeldOutTexts as HeldOutTexts,
    held_out_texts as held_out_texts,
    text_digest as text_digest,
)
from .load import (
    HubName as HubName,
    iter_conditional as iter_conditional,
    load_task as load_task,
    parse_hub_name as parse_hub_name,
)
from .nli import NLI_CLASSES as NLI_CLASSES, NliTask as NliTask, load_nli as load_nli
from .rewordings import (
    BUNDLED_REWORDINGS as BUNDLED_REWORDINGS,
    Rewordings as Rewordings,
    load_rewordings as load_rewordings,
)
from .rows import (
    Cell as Cell,
    Row as Row,
    aligned_records as aligned_records,
    check_file as check_file,
    column_names as column_names,
    is_table as is_table,
    iter_rows as iter_rows,
    iter_stream as iter_stream,
    kept_record as kept_record,
    shown as shown,
    stem_of as stem_of,
    suffix_of as suffix_of,
    text_lines as text_lines,
    unique_names as unique_names,
    write_records as write_records,
    write_tsv as write_tsv,
)
from .sick import load_sick as load_sick
from .statistics import (
    Fold as Fold,
    Lengths as Lengths,
    Pairing as Pairing,
    TaskStatistics as TaskStatistics,
    cross_validation as cross_validation,
    describe as describe,
    draw_folds as draw_folds,
    pair_rows as pair_rows,
)
from .sts import (
    STS_COUNTS as STS_COUNTS,
    STS_YEARS as STS_YEARS,
    join_tasks as join_tasks,
    load_sts as load_sts,
    load_sts_year as load_sts_year,
    subset_of as subset_of,
)
from .stsb import load_stsb as load_stsb, load_stsb_glue as load_stsb_glue
from .triplets import (
    SectionTriplets as SectionTriplets,
    Triplets as Triplets,
    draw_section_triplets as draw_section_triplets,
    is_triplets as is_triplets,
    load_triplets as load_triplets,
    write_triplets as write_triplets,
)
from .written import (
    WrittenPair as WrittenPair,
    WrittenTask as WrittenTask,
    is_written as is_written,
    iter_written as iter_written,
    load_written as load_written,
    write_written as write_written,
)
