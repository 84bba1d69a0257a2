from .building import (
    WeakReport as WeakReport,
    WeakSettings as WeakSettings,
    build_weak as build_weak,
    read_pool as read_pool,
)
from .editing import (
    CounterEdit as CounterEdit,
    CounterEditReport as CounterEditReport,
    build_counter_edits as build_counter_edits,
    counter_edits as counter_edits,
)
from .functions import (
    ABSENT as ABSENT,
    LabellingFunction as LabellingFunction,
    condition_key as condition_key,
    graded as graded,
    yes_or_no as yes_or_no,
)
from .language import (
    Sentence as Sentence,
    Taxonomy as Taxonomy,
    plural as plural,
    taxonomy as taxonomy,
    verb_forms as verb_forms,
)
from .registry import (
    REGISTRY as REGISTRY,
    AgreementReport as AgreementReport,
    Coverage as Coverage,
    Registry as Registry,
    agreement as agreement,
    coverage as coverage,
    labelling_function as labelling_function,
)
from .teachers import (
    ANSWER_TOKENS as ANSWER_TOKENS,
    answer_file as answer_file,
    answers as answers,
    function_answers as function_answers,
    model_answers as model_answers,
    read_answer as read_answer,
    teach as teach,
    teach_file as teach_file,
    teach_pairs as teach_pairs,
    with_answers as with_answers,
)
