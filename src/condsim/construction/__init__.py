"""Building a conditional-similarity data set of one's own, the way C-STS was built.

Each step has rows on disk before and after:

1. ``candidates``: items with captions to near items, every pair of their captions, and those that
   are neither too alike nor too far apart (C-STS §2.2.1, A.2, Table 6).
2. ``annotation``: qualification, conditions and verification in Label Studio (§2.2.2).
3. ``dataset``: ratings to a data set that condsim trains on.

``weak`` makes labels without people. Needs ``pip install 'condsim[build]'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.construction.annotation import (
        AnnotationStore as AnnotationStore,
        Item as Item,
        Pulled as Pulled,
        decide_by_hand as decide_by_hand,
        export_mturk as export_mturk,
        give_hints as give_hints,
        import_mturk as import_mturk,
        items_to_annotate as items_to_annotate,
        open_server as open_server,
        prefill as prefill,
        pull as pull,
        push as push,
        score_test as score_test,
        stage_status as stage_status,
        write_stage as write_stage,
    )
    from condsim.construction.candidates import (
        CandidateReport as CandidateReport,
        CandidateSettings as CandidateSettings,
        FilterCounts as FilterCounts,
        FilterSettings as FilterSettings,
        PairFilter as PairFilter,
        embed as embed,
        filter_files as filter_files,
        load_text_encoder as load_text_encoder,
        make_candidates as make_candidates,
        preset as preset,
        read_items as read_items,
        read_pairs as read_pairs,
        read_stop_words as read_stop_words,
        read_texts as read_texts,
    )
    from condsim.construction.dataset import (
        LabelRules as LabelRules,
        PlainTable as PlainTable,
        SplitRules as SplitRules,
        Target as Target,
        build_dataset as build_dataset,
        collect_votes as collect_votes,
        decide_labels as decide_labels,
        find_leakage as find_leakage,
        fleiss_kappa as fleiss_kappa,
        krippendorff_alpha as krippendorff_alpha,
        leakage_tables as leakage_tables,
        rating_tables as rating_tables,
        report_ratings as report_ratings,
        split_dataset as split_dataset,
        split_rows as split_rows,
    )
    from condsim.construction.row_files import (
        plain_values as plain_values,
        read_manifest as read_manifest,
        read_rows as read_rows,
        write_rows as write_rows,
    )
    from condsim.construction.rows import (
        Candidate as Candidate,
        Condition as Condition,
        DatasetRow as DatasetRow,
        Rating as Rating,
        TableRow as TableRow,
        pair_id_of as pair_id_of,
        row_id_of as row_id_of,
    )
    from condsim.construction.weak import (
        ANSWER_TOKENS as ANSWER_TOKENS,
        REGISTRY as REGISTRY,
        AgreementReport as AgreementReport,
        Answerer as Answerer,
        Coverage as Coverage,
        FunctionAnswerer as FunctionAnswerer,
        ModelAnswerer as ModelAnswerer,
        TrainingRow as TrainingRow,
        WeakReport as WeakReport,
        WeakSettings as WeakSettings,
        agreement as agreement,
        answer_file as answer_file,
        build_weak as build_weak,
        coverage as coverage,
        read_pool as read_pool,
        teach_file as teach_file,
    )

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "annotation": (
            "AnnotationStore Item Pulled decide_by_hand export_mturk give_hints import_mturk "
            "items_to_annotate open_server prefill pull push score_test stage_status write_stage"
        ),
        "candidates": (
            "CandidateReport CandidateSettings FilterCounts FilterSettings PairFilter embed "
            "filter_files load_text_encoder make_candidates preset read_items read_pairs "
            "read_stop_words read_texts"
        ),
        "dataset": (
            "LabelRules PlainTable SplitRules Target build_dataset "
            "collect_votes decide_labels find_leakage fleiss_kappa krippendorff_alpha "
            "leakage_tables rating_tables report_ratings split_dataset split_rows"
        ),
        "rows": "Candidate Condition DatasetRow Rating TableRow pair_id_of row_id_of",
        "row_files": "plain_values read_manifest read_rows write_rows",
        "weak": (
            "ANSWER_TOKENS AgreementReport Answerer Coverage FunctionAnswerer ModelAnswerer "
            "REGISTRY TrainingRow WeakReport WeakSettings agreement answer_file build_weak "
            "coverage read_pool teach_file"
        ),
    },
    extra="build",
)
