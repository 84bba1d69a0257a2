from .exchange import (
    Pulled as Pulled,
    give_hints as give_hints,
    pull as pull,
    push as push,
    stage_status as stage_status,
)
from .mturk import (
    export_mturk as export_mturk,
    import_mturk as import_mturk,
    mturk_form as mturk_form,
)
from .outcome import (
    conditions_of as conditions_of,
    decide_by_hand as decide_by_hand,
    outcome_of as outcome_of,
    ratings_of as ratings_of,
    score_test as score_test,
    write_stage as write_stage,
)
from .prefilling import (
    prefill as prefill,
    propose_conditions as propose_conditions,
    rate_rows as rate_rows,
    read_proposal as read_proposal,
)
from .server import (
    ITEM as ITEM,
    TOKEN as TOKEN,
    LabelStudioServer as LabelStudioServer,
    Prediction as Prediction,
    RemoteAnswer as RemoteAnswer,
    RemoteTask as RemoteTask,
    answer_of as answer_of,
    open_server as open_server,
    result_of as result_of,
)
from .stages import (
    FIELDS as FIELDS,
    HINT_RULES as HINT_RULES,
    NO_HINTS as NO_HINTS,
    STAGES as STAGES,
    VERDICTS as VERDICTS,
    Answer as Answer,
    Item as Item,
    Stage as Stage,
    condition_items as condition_items,
    guidelines as guidelines,
    hints_of as hints_of,
    items_to_annotate as items_to_annotate,
    labelling_config as labelling_config,
    qualification_items as qualification_items,
    rating_of as rating_of,
    verification_items as verification_items,
)
from .store import (
    AnnotationStore as AnnotationStore,
    PoolMember as PoolMember,
    Proposal as Proposal,
)
