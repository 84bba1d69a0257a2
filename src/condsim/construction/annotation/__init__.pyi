from .hints import HINT_RULES as HINT_RULES, NO_HINTS as NO_HINTS, hints_of as hints_of
from .items import (
    condition_items as condition_items,
    items_to_annotate as items_to_annotate,
    qualification_items as qualification_items,
    verification_items as verification_items,
)
from .mturk import (
    export_mturk as export_mturk,
    import_mturk as import_mturk,
    mturk_form as mturk_form,
)
from .pool import decide_by_hand as decide_by_hand, score_test as score_test
from .prefilling import (
    prefill as prefill,
    propose_conditions as propose_conditions,
    rate_rows as rate_rows,
    read_proposal as read_proposal,
)
from .pulling import (
    Pulled as Pulled,
    give_hints as give_hints,
    pull as pull,
    stage_status as stage_status,
)
from .pushing import push as push
from .server import (
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
from .stages import (
    FIELDS as FIELDS,
    STAGES as STAGES,
    VERDICTS as VERDICTS,
    Answer as Answer,
    Item as Item,
    Stage as Stage,
    guidelines as guidelines,
    labelling_config as labelling_config,
    rating_of as rating_of,
)
from .store import (
    AnnotationStore as AnnotationStore,
    PoolMember as PoolMember,
    Proposal as Proposal,
)
from .written import (
    conditions_of as conditions_of,
    outcome_of as outcome_of,
    ratings_of as ratings_of,
    write_stage as write_stage,
)
