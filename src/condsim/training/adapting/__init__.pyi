from .result import Adaptation as Adaptation
from .rows import (
    FEWEST as FEWEST,
    LabelledRow as LabelledRow,
    Rehearsal as Rehearsal,
    load_rehearsal as load_rehearsal,
    read_labelled as read_labelled,
    split_labelled as split_labelled,
)
from .running import AdaptSettings as AdaptSettings, adapt as adapt
