"""Annotation of a new data set in three stages, as C-STS was made (C-STS §2.2.2, Appendix C).

```
               push                     pull                        what comes of it
qualification  a test with known   ──►  answers, scored        ──►  the pool of annotators
conditions     sentence pairs      ──►  C-High and C-Low       ──►  conditions.parquet
verification   pairs + conditions  ──►  1 to 5, or no meaning  ──►  ratings.parquet
```

- ``stages``, ``items``, ``labelling``, ``hints``: what annotators see, the same in Label Studio
  (``server``) and in a form for Mechanical Turk (``mturk``).
- ``store``: one SQLite file beside the data set: what was handed out, what came back.
- ``pushing``, ``pulling``, ``pool``, ``outcome``, ``written``: the steps; ``prefilling``: help of
  models.

Needs ``pip install 'condsim[build]'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from condsim.lazy import face

if TYPE_CHECKING:
    from condsim.construction.annotation.hints import (
        HINT_RULES as HINT_RULES,
        NO_HINTS as NO_HINTS,
        hints_of as hints_of,
    )
    from condsim.construction.annotation.items import (
        condition_items as condition_items,
        items_to_annotate as items_to_annotate,
        qualification_items as qualification_items,
        verification_items as verification_items,
    )
    from condsim.construction.annotation.labelling import (
        guidelines as guidelines,
        labelling_config as labelling_config,
    )
    from condsim.construction.annotation.mturk import (
        export_mturk as export_mturk,
        import_mturk as import_mturk,
        mturk_form as mturk_form,
    )
    from condsim.construction.annotation.outcome import outcome_of as outcome_of
    from condsim.construction.annotation.pool import (
        decide_by_hand as decide_by_hand,
        score_test as score_test,
    )
    from condsim.construction.annotation.prefilling import (
        prefill as prefill,
        propose_conditions as propose_conditions,
        rate_rows as rate_rows,
        read_proposal as read_proposal,
    )
    from condsim.construction.annotation.pulling import (
        Pulled as Pulled,
        give_hints as give_hints,
        pull as pull,
        stage_status as stage_status,
    )
    from condsim.construction.annotation.pushing import push as push
    from condsim.construction.annotation.server import (
        ITEM as ITEM,
        TOKEN as TOKEN,
        LabelStudioServer as LabelStudioServer,
        Prediction as Prediction,
        ProjectState as ProjectState,
        RemoteAnswer as RemoteAnswer,
        RemoteTask as RemoteTask,
        answer_of as answer_of,
        open_server as open_server,
        result_of as result_of,
    )
    from condsim.construction.annotation.stages import (
        FIELDS as FIELDS,
        STAGES as STAGES,
        VERDICTS as VERDICTS,
        Answer as Answer,
        Item as Item,
        Stage as Stage,
        rating_of as rating_of,
    )
    from condsim.construction.annotation.store import (
        AnnotationStore as AnnotationStore,
        PoolMember as PoolMember,
        Proposal as Proposal,
    )
    from condsim.construction.annotation.written import (
        conditions_of as conditions_of,
        ratings_of as ratings_of,
        write_stage as write_stage,
    )

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "hints": "HINT_RULES NO_HINTS hints_of",
        "items": "condition_items items_to_annotate qualification_items verification_items",
        "labelling": "guidelines labelling_config",
        "mturk": "export_mturk import_mturk mturk_form",
        "outcome": "outcome_of",
        "pool": "decide_by_hand score_test",
        "prefilling": "prefill propose_conditions rate_rows read_proposal",
        "pulling": "Pulled give_hints pull stage_status",
        "pushing": "push",
        "server": (
            "ITEM LabelStudioServer Prediction ProjectState RemoteAnswer RemoteTask TOKEN "
            "answer_of open_server result_of"
        ),
        "stages": "Answer FIELDS Item STAGES Stage VERDICTS rating_of",
        "store": "AnnotationStore PoolMember Proposal",
        "written": "conditions_of ratings_of write_stage",
    },
    extra="build",
)
