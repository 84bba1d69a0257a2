from .answering import (
    ANSWER_TOKENS as ANSWER_TOKENS,
    Answerer as Answerer,
    FunctionAnswerer as FunctionAnswerer,
    ModelAnswerer as ModelAnswerer,
    answer_file as answer_file,
    answers as answers,
    read_answer as read_answer,
    with_answers as with_answers,
)
from .building import WeakReport as WeakReport, build_weak as build_weak
from .checking import (
    AgreementReport as AgreementReport,
    Coverage as Coverage,
    agreement as agreement,
    coverage as coverage,
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
from .language import Sentence as Sentence, Taxonomy as Taxonomy, taxonomy as taxonomy
from .pool import WeakSettings as WeakSettings, read_pool as read_pool
from .registry import (
    REGISTRY as REGISTRY,
    Registry as Registry,
    labelling_function as labelling_function,
)
from .teachers import teach as teach, teach_file as teach_file, teach_pairs as teach_pairs
from .words import plural as plural, verb_forms as verb_forms
