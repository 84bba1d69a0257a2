from .card import (
    PlainTable as PlainTable,
    leakage_tables as leakage_tables,
    rating_tables as rating_tables,
)
from .labels import (
    LabelRules as LabelRules,
    collect_votes as collect_votes,
    decide_labels as decide_labels,
    unrated_conditions as unrated_conditions,
)
from .quality import (
    RatingReport as RatingReport,
    annotator_quality as annotator_quality,
    fleiss_kappa as fleiss_kappa,
    krippendorff_alpha as krippendorff_alpha,
    measure_agreement as measure_agreement,
    model_agreement as model_agreement,
    one_person_agreement as one_person_agreement,
    report_ratings as report_ratings,
    time_per_rating as time_per_rating,
)
from .splits import (
    LeakageReport as LeakageReport,
    SplitRules as SplitRules,
    find_leakage as find_leakage,
    pair_groups as pair_groups,
    sentence_groups as sentence_groups,
    sentence_key as sentence_key,
    split_rows as split_rows,
)
from .writing import (
    Target as Target,
    build_dataset as build_dataset,
    split_dataset as split_dataset,
)
