"""What is measured: data files become validated tasks, and their rows high-low pairs.

`load_task` reads a file of similarities of any kind into a `condsim.types.Task`; `load_csts`,
`load_stsb` and so on read one kind, `iter_csts` streams C-STS of any size. `load_nli` reads classes
and `load_triplets` triplets, for training. `pair_rows` finds the high and the low row of each
sentence pair, `describe` computes statistics, `iter_rows` reads the rows of any file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.tasks.afs import load_afs as load_afs, load_afs_topics as load_afs_topics
    from condsim.tasks.csts import (
        CstsRow as CstsRow,
        iter_csts as iter_csts,
        load_applicability as load_applicability,
        load_csts as load_csts,
    )
    from condsim.tasks.graded import (
        load_cxc_sts as load_cxc_sts,
        load_scored_pairs as load_scored_pairs,
    )
    from condsim.tasks.hub import HubName as HubName, parse_hub_name as parse_hub_name
    from condsim.tasks.load import load_task as load_task
    from condsim.tasks.nli import (
        NLI_CLASSES as NLI_CLASSES,
        NliTask as NliTask,
        load_nli as load_nli,
    )
    from condsim.tasks.pairs import (
        Fold as Fold,
        Pairing as Pairing,
        cross_validation as cross_validation,
        draw_folds as draw_folds,
        pair_rows as pair_rows,
    )
    from condsim.tasks.rewordings import (
        BUNDLED_REWORDINGS as BUNDLED_REWORDINGS,
        Rewordings as Rewordings,
        load_rewordings as load_rewordings,
    )
    from condsim.tasks.rows import (
        Cell as Cell,
        Row as Row,
        check_file as check_file,
        column_names as column_names,
        iter_rows as iter_rows,
        iter_stream as iter_stream,
        shown as shown,
        stem_of as stem_of,
        suffix_of as suffix_of,
        text_lines as text_lines,
    )
    from condsim.tasks.sections import (
        SectionTriplets as SectionTriplets,
        draw_section_triplets as draw_section_triplets,
    )
    from condsim.tasks.sick import load_sick as load_sick
    from condsim.tasks.statistics import (
        Lengths as Lengths,
        TaskStatistics as TaskStatistics,
        describe as describe,
    )
    from condsim.tasks.sts import (
        STS_COUNTS as STS_COUNTS,
        STS_YEARS as STS_YEARS,
        join_tasks as join_tasks,
        load_sts as load_sts,
        load_sts_year as load_sts_year,
        subset_of as subset_of,
    )
    from condsim.tasks.stsb import load_stsb as load_stsb, load_stsb_glue as load_stsb_glue
    from condsim.tasks.triplets import (
        Triplets as Triplets,
        is_triplets as is_triplets,
        load_triplets as load_triplets,
        write_triplets as write_triplets,
    )

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "afs": "load_afs load_afs_topics",
        "csts": "CstsRow iter_csts load_applicability load_csts",
        "graded": "load_cxc_sts load_scored_pairs",
        "hub": "HubName parse_hub_name",
        "load": "load_task",
        "nli": "NLI_CLASSES NliTask load_nli",
        "pairs": "Fold Pairing cross_validation draw_folds pair_rows",
        "rewordings": "BUNDLED_REWORDINGS Rewordings load_rewordings",
        "rows": (
            "Cell Row check_file column_names iter_rows iter_stream shown stem_of suffix_of "
            "text_lines"
        ),
        "sections": "SectionTriplets draw_section_triplets",
        "sick": "load_sick",
        "statistics": "Lengths TaskStatistics describe",
        "sts": "STS_COUNTS STS_YEARS join_tasks load_sts load_sts_year subset_of",
        "stsb": "load_stsb load_stsb_glue",
        "triplets": "Triplets is_triplets load_triplets write_triplets",
    },
)
