"""Annotation of a new data set in three stages, as C-STS was made (C-STS §2.2.2, Appendix C).

```
               push                     pull                        what comes of it
qualification  a test with known   ──►  answers, scored        ──►  the pool of annotators
conditions     sentence pairs      ──►  C-High and C-Low       ──►  conditions.parquet
verification   pairs + conditions  ──►  1 to 5, or no meaning  ──►  ratings.parquet
```

- ``stages``, ``guidelines``, ``labelling``, ``hints``: what annotators see, the same in Label
  Studio (``server``) and in a form for Mechanical Turk (``mturk``).
- ``store``: one SQLite file beside the data set: what was given out, what came back.
- ``push``, ``pull``, ``progress``, ``pool``, ``outcome``: the steps; ``prefill``: help of models.

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
    from condsim.construction.annotation.labelling import (
        guidelines as guidelines,
        labelling_config as labelling_config,
        result_of as result_of,
    )
    from condsim.construction.annotation.mturk import (
        MTURK as MTURK,
        export_mturk as export_mturk,
        import_mturk as import_mturk,
        mturk_form as mturk_form,
    )
    from condsim.construction.annotation.outcome import outcome_of as outcome_of
    from condsim.construction.annotation.pool import (
        decide_by_hand as decide_by_hand,
        score_test as score_test,
    )
    from condsim.construction.annotation.prefill import (
        PROPOSAL_TOKENS as PROPOSAL_TOKENS,
        propose_conditions as propose_conditions,
        rate_rows as rate_rows,
        read_proposal as read_proposal,
    )
    from condsim.construction.annotation.progress import progress_of as progress_of
    from condsim.construction.annotation.pulling import (
        Pulled as Pulled,
        give_hints as give_hints,
        pull as pull,
    )
    from condsim.construction.annotation.pushing import push as push
    from condsim.construction.annotation.remote import (
        ITEM as ITEM,
        Prediction as Prediction,
        ProjectState as ProjectState,
        RemoteAnswer as RemoteAnswer,
        RemoteTask as RemoteTask,
    )
    from condsim.construction.annotation.results import (
        answer_of as answer_of,
        rating_of as rating_of,
    )
    from condsim.construction.annotation.server import (
        TOKEN as TOKEN,
        LabelStudioServer as LabelStudioServer,
        open_server as open_server,
    )
    from condsim.construction.annotation.stages import (
        FIELDS as FIELDS,
        STAGES as STAGES,
        VERDICTS as VERDICTS,
        Answer as Answer,
        Stage as Stage,
        Work as Work,
        stage_of as stage_of,
    )
    from condsim.construction.annotation.store import (
        PoolMember as PoolMember,
        Proposal as Proposal,
        Store as Store,
    )
    from condsim.construction.annotation.works import (
        condition_works as condition_works,
        qualification_works as qualification_works,
        verification_works as verification_works,
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
        "labelling": "guidelines labelling_config result_of",
        "mturk": "MTURK export_mturk import_mturk mturk_form",
        "outcome": "outcome_of",
        "pool": "decide_by_hand score_test",
        "prefill": "PROPOSAL_TOKENS propose_conditions rate_rows read_proposal",
        "progress": "progress_of",
        "pulling": "Pulled give_hints pull",
        "pushing": "push",
        "remote": "ITEM Prediction ProjectState RemoteAnswer RemoteTask",
        "results": "answer_of rating_of",
        "server": "LabelStudioServer TOKEN open_server",
        "stages": "Answer FIELDS STAGES Stage VERDICTS Work stage_of",
        "store": "PoolMember Proposal Store",
        "works": "condition_works qualification_works verification_works",
        "written": "conditions_of ratings_of write_stage",
    },
    extra="build",
)
