"""Weak labels from raw text: functions that read an attribute and compare two values of it.

Programmatic labelling after Ratner et al. (2016), "Data programming: creating large training sets,
quickly"; conditions and scale are those of C-STS. `docs/weak-labels.md` shows a function of your
own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.construction.weak.answering import (
        ANSWER_TOKENS as ANSWER_TOKENS,
        Answerer as Answerer,
        FunctionAnswerer as FunctionAnswerer,
        ModelAnswerer as ModelAnswerer,
        answer_file as answer_file,
        answers as answers,
        read_answer as read_answer,
        with_answers as with_answers,
    )
    from condsim.construction.weak.building import (
        WeakReport as WeakReport,
        build_weak as build_weak,
    )
    from condsim.construction.weak.checking import (
        AgreementReport as AgreementReport,
        Coverage as Coverage,
        agreement as agreement,
        coverage as coverage,
    )
    from condsim.construction.weak.conditions import condition_key as condition_key
    from condsim.construction.weak.functions import (
        ABSENT as ABSENT,
        LabellingFunction as LabellingFunction,
        graded as graded,
        yes_or_no as yes_or_no,
    )
    from condsim.construction.weak.language import (
        Sentence as Sentence,
        Taxonomy as Taxonomy,
        taxonomy as taxonomy,
    )
    from condsim.construction.weak.pool import WeakSettings as WeakSettings, read_pool as read_pool
    from condsim.construction.weak.registry import (
        REGISTRY as REGISTRY,
        Registry as Registry,
        labelling_function as labelling_function,
    )
    from condsim.construction.weak.rows import TrainingRow as TrainingRow
    from condsim.construction.weak.teachers import (
        teach as teach,
        teach_file as teach_file,
        teach_pairs as teach_pairs,
    )
    from condsim.construction.weak.words import plural as plural, verb_forms as verb_forms

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "answering": (
            "ANSWER_TOKENS Answerer FunctionAnswerer ModelAnswerer answer_file answers "
            "read_answer with_answers"
        ),
        "building": "WeakReport build_weak",
        "checking": "AgreementReport Coverage agreement coverage",
        "conditions": "condition_key",
        "functions": "ABSENT LabellingFunction graded yes_or_no",
        "language": "Sentence Taxonomy taxonomy",
        "pool": "WeakSettings read_pool",
        "registry": "REGISTRY Registry labelling_function",
        "rows": "TrainingRow",
        "teachers": "teach teach_file teach_pairs",
        "words": "plural verb_forms",
    },
    extra="build",
)
