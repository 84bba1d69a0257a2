from .balancing import GroupRow as GroupRow, PairRow as PairRow
from .building import (
    CriteriaReport as CriteriaReport,
    SetReport as SetReport,
    build_criteria as build_criteria,
    criteria_rows as criteria_rows,
)
from .collecting import (
    Criterion as Criterion,
    LabelledTexts as LabelledTexts,
    canonical_value as canonical_value,
    collect_texts as collect_texts,
)
from .drawing import Judged as Judged, TextGroup as TextGroup, draw_groups as draw_groups
from .settings import (
    CriteriaSettings as CriteriaSettings,
    CriterionSettings as CriterionSettings,
    derive_wordings as derive_wordings,
)
