"""From ratings to a data set: labels, agreement, splits, leakage, card."""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.construction.dataset.agreement import (
        fleiss_kappa as fleiss_kappa,
        krippendorff_alpha as krippendorff_alpha,
        measure_agreement as measure_agreement,
        model_agreement as model_agreement,
        one_person_agreement as one_person_agreement,
    )
    from condsim.construction.dataset.card import Description as Description, Source as Source
    from condsim.construction.dataset.figures import (
        Cells as Cells,
        agreement_cells as agreement_cells,
        blind_cells as blind_cells,
        model_cells as model_cells,
        number as number,
        percent as percent,
        shared_cells as shared_cells,
    )
    from condsim.construction.dataset.labels import (
        LabelRules as LabelRules,
        collect_votes as collect_votes,
        decide_labels as decide_labels,
        unrated_conditions as unrated_conditions,
    )
    from condsim.construction.dataset.leakage import (
        LeakageReport as LeakageReport,
        find_leakage as find_leakage,
    )
    from condsim.construction.dataset.quality import (
        AnnotatorQuality as AnnotatorQuality,
        RatingReport as RatingReport,
        annotator_quality as annotator_quality,
        report_ratings as report_ratings,
        time_per_rating as time_per_rating,
    )
    from condsim.construction.dataset.splits import (
        SplitRules as SplitRules,
        pair_groups as pair_groups,
        sentence_groups as sentence_groups,
        sentence_key as sentence_key,
        split_rows as split_rows,
    )
    from condsim.construction.dataset.writing import (
        Making as Making,
        assemble as assemble,
        prepare_folder as prepare_folder,
        read_labelled_file as read_labelled_file,
        to_dataset_rows as to_dataset_rows,
        write_dataset as write_dataset,
    )

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "agreement": (
            "fleiss_kappa krippendorff_alpha measure_agreement model_agreement one_person_agreement"
        ),
        "card": "Description Source",
        "figures": "Cells agreement_cells blind_cells model_cells number percent shared_cells",
        "labels": "LabelRules collect_votes decide_labels unrated_conditions",
        "leakage": "LeakageReport find_leakage",
        "quality": "AnnotatorQuality RatingReport annotator_quality report_ratings time_per_rating",
        "splits": "SplitRules pair_groups sentence_groups sentence_key split_rows",
        "writing": (
            "Making assemble prepare_folder read_labelled_file to_dataset_rows write_dataset"
        ),
    },
    extra="build",
)
